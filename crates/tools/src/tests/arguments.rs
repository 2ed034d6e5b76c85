//! Tests of wrong arguments: each error has its remedy.

use insta::assert_snapshot;
use serde_json::{Value, json};

use super::test_router;

#[track_caller]
fn check_error(tool: &str, arguments: Value, expected: &str) {
    assert_eq!(test_router().call_error(tool, arguments), expected);
}

#[test]
fn unknown_tool_error_names_others() {
    check_error("task_gett", json!({}), "[unknown_tool] there is no tool `task_gett`\nhint: did you mean `task_get`?");
    let error = test_router().call_error("\u{1b}[31mrm -rf /\n", json!({}));
    assert!(
        error.starts_with("[unknown_tool] there is no tool `\\u{1b}[31mrm -rf /\\u{a}`\nhint: there are"),
        "{error}"
    );
}

#[test]
fn arguments_that_are_no_object_are_refused() {
    check_error("task_get", json!([1]), "[invalid] arguments: a list is not an object; give the fields by name");
    check_error(
        "task_get",
        Value::Null,
        "[invalid] taskId: is missing; give one such as T12, as `task_list` shows them",
    );
}

#[test]
fn malformed_ids_are_refused() {
    for given in ["../../etc/passwd", "T1/..", "T1\0", "T0", "1", "", "t", "T-1", "T1 ", "T99999999999999999999"] {
        let error = test_router().call_error("task_get", json!({"taskId": given}));
        assert!(error.starts_with("[invalid] taskId: the text `") && !error.contains('\0'), "{error}");
    }
    check_error(
        "task_get",
        json!({"taskId": 7}),
        "[invalid] taskId: 7 is not a task id; give one such as T12, as `task_list` shows them",
    );
    check_error(
        "task_get",
        json!({"taskId": "T7"}),
        "[not_found] there is no task T7\nhint: `task_list` shows the tasks",
    );
    assert_eq!(
        test_router().call_error("task_create", json!({"goal": "a", "dependsOn": ["T1", "x"]})),
        "[invalid] dependsOn[1]: the text `x` is not a task id; give one such as T12, as `task_list` shows them"
    );
}

#[test]
fn numbers_are_whole_and_within_bounds() {
    let errors = [json!(2.5), json!(0), json!(501), json!(-1), json!("5"), json!(1e300), json!(true)]
        .map(|limit| test_router().call_error("task_list", json!({"limit": limit})));
    assert_snapshot!(errors.join("\n"), @"
    [invalid] limit: 2.5 is not a whole number; give a whole number from 1 to 500
    [invalid] limit: 0 is out of bounds; give a whole number from 1 to 500
    [invalid] limit: 501 is out of bounds; give a whole number from 1 to 500
    [invalid] limit: -1 is out of bounds; give a whole number from 1 to 500
    [invalid] limit: the text `5` is not a whole number; give a whole number from 1 to 500, without quotes
    [invalid] limit: 1e+300 is out of bounds; give a whole number from 1 to 500
    [invalid] limit: true is not a whole number; give a whole number from 1 to 500
    ");
    // JSON has only one type of number: 3.0 is 3. Null counts as missing.
    let mut router = test_router();
    router.call_ok("task_list", json!({"limit": 3.0, "label": null}));
}

#[test]
fn argument_errors_are_reported_up_to_a_bound() {
    let wrong = json!({"gaol": "x", "labels": "bug", "priority": 9, "type": "a b", "dependsOn": "T1", "parent": null});
    assert_snapshot!(test_router().call_error("task_create", wrong), @"
    [invalid] labels: the text `bug` is not a list; give a list, each a string
    priority: 9 is out of bounds; give a whole number from 0 to 4
    type: the text `a b` is not a type name; give letters, digits, _ and -, at most 64
    dependsOn: the text `T1` is not a list; give a list, each one such as T12, as `task_list` shows them
    gaol: there is no such field; did you mean goal?
    ");
    let many: serde_json::Map<String, Value> = (0..1000).map(|n| (format!("field{n}"), json!(n))).collect();
    assert_eq!(test_router().call_error("task_next", Value::Object(many)).lines().count(), 5);
}

#[test]
fn texts_have_bounds() {
    check_error("task_create", json!({"goal": " \n"}), "[invalid] goal: is empty; give a text");
    check_error("task_create", json!({"goal": "a\0b"}), "[invalid] goal: contains a NUL byte; leave it out");
    check_error(
        "task_create",
        json!({"goal": "x".repeat(70_000)}),
        "[invalid] goal: has 70000 bytes; give at most 65536, and name a file for the rest",
    );
    check_error(
        "task_create",
        json!({"goal": "a", "labels": vec!["x"; 65]}),
        "[invalid] labels: has 65 entries; give at most 64",
    );
}

#[test]
fn two_aliases_of_one_field_are_refused() {
    check_error(
        "task_create",
        json!({"goal": "a", "title": "b"}),
        "[invalid] title: goal is given too, and they mean the same; give one",
    );
    check_error(
        "task_create",
        json!({"body": "a"}),
        "[invalid] goal: is missing; give one line with the goal, as goal or title",
    );
}

mod any {
    use std::cell::RefCell;

    use proptest::prelude::*;
    use proptest::test_runner::{Config, TestRunner};
    use windlass_process::RunControl;

    use super::*;
    use crate::tool_catalogue;

    fn arbitrary_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "T[0-9]{1,3}|[a-z]{1,5}|\\PC{0,5}".prop_map(Value::from),
        ];
        let names = prop::sample::select(
            tool_catalogue().iter().flat_map(|tool| tool.fields).map(|field| field.name).collect::<Vec<_>>(),
        );
        leaf.prop_recursive(3, 24, 6, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(names.clone().prop_map(str::to_owned), inner, 0..8)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    /// Every call gets an answer, and an argument that cannot be read is reported by its field.
    #[test]
    fn arbitrary_arguments_get_an_answer() {
        let tools = prop::sample::select(tool_catalogue().iter().map(|tool| tool.name).collect::<Vec<_>>());
        let router = RefCell::new(test_router());
        let mut runner = TestRunner::new(Config::with_cases(1024));
        let answered = runner.run(&(tools, arbitrary_json()), |(tool, arguments)| {
            if let Err(error) = router.borrow_mut().call_tool(tool, arguments, &RunControl::new()) {
                let control = |letter: char| letter.is_control() && letter != '\n';
                prop_assert!(!error.to_string().contains(control), "{error:?}");
                prop_assert!(!error.message.contains("invalid type"), "{error:?}");
            }
            Ok(())
        });
        answered.unwrap();
    }
}
