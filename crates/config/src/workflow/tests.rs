//! Tests of workflow errors, with their place and suggestion.

use super::*;

/// Returns a workflow with these steps.
fn workflow_of_steps(steps: &str) -> String {
    format!("id: w\nsteps:\n{steps}")
}

/// Returns a workflow with one step of this type and configuration.
fn single_step(kind: &str, config: &str) -> String {
    workflow_of_steps(&format!("  - id: a\n    type: {kind}\n    config: {config}\n"))
}

fn refused(text: &str) -> (String, String) {
    let problem = parse_workflow(text, "file", false).expect_err(text);
    let at = problem.at.and_then(|at| text.get(at)).unwrap_or_default();
    (format!("{} [{at}]", problem.message), problem.suggestion.unwrap_or_default())
}

#[track_caller]
fn check_refused(text: &str, message: &str, suggestion: &str) {
    check_message(text, message, suggestion);
    let (said, instead) = refused(text);
    assert!(!instead.is_empty(), "it is not said what to write instead of\n{text}\n{said}");
}

#[track_caller]
fn check_message(text: &str, message: &str, suggestion: &str) {
    let (said, instead) = refused(text);
    assert!(said.contains(message), "{text}\n{said}");
    assert!(instead.contains(suggestion), "{text}\n{instead}");
}

#[test]
fn shipped_workflows_parse() {
    for (id, text) in SHIPPED_WORKFLOWS {
        assert_eq!(shipped_workflow(id, text).expect(id).workflow.id, id);
    }
}

#[test]
fn json_file_with_camel_case_names_is_read() {
    let text = r#"{
        // The seed's own spelling.
        "id": "review", "name": "Review", "steps": [
            {"id": "make", "type": "create_task", "config": {"goal": "Review: ${context.task.goal}", "parentTaskId": {"fromContext": "task.id"}}, "onSuccess": "done"},
            {"id": "done", "type": "noop"}
        ]
    }"#;
    let workflow = parse_workflow(text, "x", true).expect("a workflow");
    assert_eq!((workflow.id.as_str(), workflow.steps.len()), ("review", 2));
    assert_eq!(parse_workflow("steps: [{id: a, type: noop}]", "by-its-file", false).expect("one").id, "by-its-file");
}

#[test]
fn malformed_file_is_refused_with_hint() {
    check_refused("", "a workflow is a map", "write `id: …`");
    check_refused("- {id: a, type: noop}\n", "and this is a list", "write `steps:` above it");
    check_refused(
        "id: w\nsteps: [{id: a, type: noop}]\n---\nid: x\n",
        "a second document starts here",
        "remove the `---`",
    );
    check_refused("id: w\n", "this needs its `steps`", "write `steps: [{id: first, type: noop}]`");
    check_refused("id: w\nsteps: {}\n", "`steps` is a list", "- id");
    check_refused("id: w\nsteps: []\n", "from 1 to 200", "write `steps: [{");
    check_refused("id: 'a b'\nsteps: [{id: a, type: noop}]\n", "the id of a workflow has letters, digits", "`check-1`");
    check_refused("id: 7\nsteps: [{id: a, type: noop}]\n", "`id` is text [7]", "`id: '…'`");
    check_refused("idd: w\nsteps: []\n", "unknown key `idd` [idd]", "did you mean `id`?");
    check_refused("id: w\nsteps: [{id: a, type: noop}]\nsteps: []\n", "", "");
}

/// A file without an id takes its name as the id.
#[test]
fn invalid_file_name_as_id_is_refused() {
    let problem = parse_workflow("steps: [{id: a, type: noop}]\n", "my flow (2)", false).expect_err("no id");
    assert!(
        problem.message.starts_with("without an `id` the file name is the id of the workflow"),
        "{}",
        problem.message
    );
    assert_eq!(problem.suggestion.as_deref(), Some("write an `id`"));
}

#[test]
fn malformed_step_is_refused_with_hint() {
    check_refused(&workflow_of_steps("  - type: noop\n"), "this needs an `id`", "write `id: check`");
    check_refused(&workflow_of_steps("  - id: a\n"), "this needs a `type`", "write `type: execute_command`");
    check_refused(
        &workflow_of_steps("  - {id: a, type: create_tsak}\n"),
        "unknown type of step `create_tsak` [create_tsak]",
        "create_task",
    );
    check_refused(&workflow_of_steps("  - {id: a, type: noop, onsucces: b}\n"), "unknown key `onsucces`", "onSuccess");
    check_refused(
        &workflow_of_steps("  - {id: a, type: noop, onSuccess: b, on_success: c}\n"),
        "given twice, in two spellings",
        "leave one of the two out",
    );
    check_refused(&workflow_of_steps("  - {id: a/b, type: noop}\n"), "letters, digits", "`check-1`");
    check_refused(&workflow_of_steps("  - {id: 1, type: noop}\n"), "`id` is text [1]", "`id: '…'`");
    check_refused(
        &workflow_of_steps("  - {id: a, type: noop, onSuccess: [b]}\n"),
        "`onSuccess` is text [[",
        "`onSuccess: '…'`",
    );
    check_refused(
        &workflow_of_steps("  - {id: a, type: noop, config: {x: 1}}\n"),
        "unknown key `x`",
        "a `noop` has no configuration: leave it out",
    );
    check_refused(&workflow_of_steps("  - noop\n"), "a step is a map", "write `id: …`");
}

#[test]
fn invalid_step_links_are_refused() {
    check_refused(
        &workflow_of_steps("  - {id: a, type: noop, onSuccess: bb}\n  - {id: b, type: noop}\n"),
        "no step outside a `parallel` has that id [bb]",
        "did you mean `b`?",
    );
    check_refused(
        &workflow_of_steps("  - {id: a, type: noop}\n  - {id: b, type: noop}\n"),
        "no step leads to `b` [b]",
        "write `onSuccess: b` in `a`",
    );
    check_refused(
        &workflow_of_steps("  - {id: a, type: noop, onSuccess: b}\n  - {id: b, type: noop, onSuccess: a}\n"),
        "repeat for ever",
        "condition",
    );
    check_refused(&workflow_of_steps("  - {id: a, type: noop, onSuccess: a}\n"), "no path leads to the end", "");
    check_refused(
        &workflow_of_steps("  - {id: a, type: noop, onSuccess: a}\n  - {id: a, type: noop}\n"),
        "two steps are called `a`",
        "as in `id: a-2`",
    );
    let gate = "  - {id: a, type: condition, config: {predicate: 'true', onTrue: a, onFalse: nowhere}}\n  - {id: b, type: noop}\n";
    check_refused(&workflow_of_steps(gate), "`onFalse` names the step `nowhere`", "known here: `a`, `b`");
    let both = "  - {id: both, type: parallel, config: {steps: [{id: x, type: noop}]}, onSuccess: a}\n  - {id: a, type: noop, onFailure: x}\n";
    check_refused(
        &workflow_of_steps(both),
        "names the step `x`, and no step outside a `parallel` has that id [x]",
        "`a`",
    );
    // A way out only by failure does not count: a loop must end without an accident.
    check_refused(
        &workflow_of_steps(
            "  - {id: a, type: noop, onSuccess: a, onFailure: b}\n  - {id: b, type: noop, onSuccess: a}\n",
        ),
        "for ever",
        "",
    );
}

#[test]
fn values_are_refused_where_a_program_evaluates_them() {
    check_refused(
        &single_step("execute_command", "{command: sh, args: [-c, 'echo ${task.goal}']}"),
        "cannot put a value in the arguments of `sh`: it runs text as commands ['echo ${task.goal}']",
        "`args: [-c, 'echo \"$1\"', sh, '${…}']`",
    );
    check_refused(
        &single_step("execute_command", "{command: sh, args: [-c, {fromContext: task.goal}]}"),
        "cannot put a value in the arguments of `sh`",
        "",
    );
    check_refused(
        &single_step("execute_command", "{command: git, args: [clone, '--upload-pack=${task.goal}', x]}"),
        "after `--upload-pack` of `git`: it may be run as a command ['--upload-pack=${task.goal}']",
        "give it to a script of yours",
    );
    check_refused(
        &single_step("execute_command", "{command: bash, args: '${context.words}'}"),
        "cannot put a value in the arguments",
        "",
    );
    for command in [
        "${task.goal}",
        "${context.task.goal}",
        "./${data.x}",
        "${steps.a.data.stdout}",
        "${context | first}",
        "${context.x}",
        "${context.data.y}",
    ] {
        check_refused(
            &single_step("execute_command", &format!("{{command: '{command}', storeAs: x}}")),
            "would choose what runs [",
            "context.NAME",
        );
    }
}

#[test]
fn ids_and_numbers_are_accepted_anywhere() {
    for config in [
        "{command: make, args: [deploy, 'TASK=${task.id}']}",
        "{command: docker, args: [build, -t, 'app:${task_id}-${iteration}', .]}",
        "{command: sh, args: [-c, 'exit ${steps.a.data.exitCode}']}",
        "{command: sh, args: [-c, 'exit $0', {fromContext: steps.a.data.exitCode}]}",
        "{command: type, args: ['${task.goal}']}",
    ] {
        let first = "  - {id: a, type: execute_command, config: {command: 'true'}, onSuccess: b}";
        let text = workflow_of_steps(&format!("{first}\n  - {{id: b, type: execute_command, config: {config}}}\n"));
        let read = parse_workflow(&text, "file", false);
        assert!(read.is_ok(), "{config}: {read:?}");
    }
    for path in ["context.task.id", "task", "data.x", "context.session"] {
        let text =
            single_step("execute_command", &format!("{{command: sh, args: [-c, 'echo ${{{path}}}'], storeAs: x}}"));
        check_refused(&text, "cannot put a value in the arguments of `sh`", "$1");
    }
}

#[test]
fn invalid_step_config_is_refused() {
    check_refused(&single_step("create_task", "{}"), "this needs a `goal`", "write `goal: 'Review ${task.goal}'`");
    check_refused(&single_step("create_task", "{goal: ''}"), "`goal` is empty", "write a value");
    check_refused(&single_step("create_task", "{goal: [a]}"), "`goal` is text", "write ");
    check_refused(&single_step("create_task", "{goal: x, labels: bug}"), "`labels` is a list [bug]", "write `[bug]`");
    check_refused(&single_step("create_task", "{goal: x, priority: 9}"), "from 0 (most urgent) to 4 [9]", "");
    check_refused(&single_step("create_task", "{goal: x, prio: 1}"), "unknown key `prio`", "");
    check_refused(&single_step("update_task", "{action: start}"), "this needs a `taskId`", "");
    check_refused(&single_step("update_task", "{taskId: T1}"), "this needs an `action`", "");
    check_refused(&single_step("update_task", "{taskId: T1, action: finish}"), "unknown action `finish` [finish]", "");
    check_refused(&single_step("execute_command", "{}"), "this needs a `command`", "write `command: make`");
    check_refused(
        &single_step("execute_command", "{command: [echo, hi]}"),
        "`command` is the name of one program [[",
        "`args: [one, two]`",
    );
    check_refused(
        &single_step("execute_command", "{command: npm test}"),
        "no shell looks at",
        "write `command: npm` and `args: [test]`",
    );
    check_refused(
        &single_step("execute_command", "{command: \"echo 'hi' | wc\"}"),
        "no shell looks at",
        "`command: sh` and `args: [-c, '…']`",
    );
    check_refused(&single_step("execute_command", "{command: cd x && make}"), "no shell looks at", "`args: [-c, '…']`");
    check_refused(&single_step("execute_command", "{command: ls>x}"), "no shell looks at", "`args: [-c, '…']`");
    check_refused(&single_step("execute_command", "{command: ls, args: [{a: b}]}"), "an argument is text", "tojson");
    check_refused(&single_step("execute_command", "{command: ls, args: -l}"), "`args` is a list", "write `[-l]`");
    check_refused(
        &single_step("execute_command", "{command: ls, timeout: 30000}"),
        "a number as large as 30000 needs a unit [30000]",
        "write `30000ms`",
    );
    check_refused(
        &single_step("execute_command", "{command: ls, timeout: 0}"),
        "longer than 0",
        "write it as in `timeout: 30s`",
    );
    check_refused(&single_step("execute_command", "{command: ls, timeout: soon}"), "", "30s");
    check_refused(
        &single_step("execute_command", "{command: ls, timeout: 200h}"),
        "must not be longer than 7 days",
        "168h",
    );
    check_refused(
        &single_step("execute_command", "{command: ls, captureOutput: yes}"),
        "`true` or `false`",
        "write `captureOutput: true`",
    );
    check_refused(
        &single_step("execute_command", "{command: ls, captureOutput: 1}"),
        "`true` or `false` [1]",
        "write `captureOutput: true`",
    );
    check_refused(
        &single_step("execute_command", "{command: ls, captureOutput: false, storeAs: x}"),
        "nothing to store",
        "",
    );
    check_refused(&single_step("execute_command", "{command: ls, storeAs: 'a b'}"), "letters, digits", "");
    check_refused(&single_step("condition", "{}"), "this needs a `predicate`", "write `predicate: task.priority < 2`");
    check_refused(&single_step("condition", "{predicate: true}"), "`predicate` is text [true]", "`predicate: '…'`");
    check_refused(&single_step("condition", "{predicate: 'a ${task.id} b'}"), "one expression", "task.priority");
    check_refused(&single_step("parallel", "{}"), "this needs `steps`", "write `steps: [{");
    check_refused(
        &single_step("parallel", "{steps: [{id: x, type: condition, config: {predicate: 'true'}}]}"),
        "cannot be one of the steps",
        "",
    );
    check_refused(
        &single_step("parallel", "{steps: [{id: x, type: noop, onSuccess: a}]}"),
        "is not allowed inside",
        "",
    );
}

/// Literal values are checked when the file is read, not when the step runs.
#[test]
fn invalid_create_task_is_refused_when_read() {
    let make = |fields: &str| single_step("create_task", &format!("{{goal: x, {fields}}}"));
    check_refused(&make("labels: [1]"), "an entry of `labels` is text [1]", "`labels: [one, 'two']`");
    check_refused(&make("labels: [true]"), "an entry of `labels` is text [true]", "");
    check_refused(&make("labels: ['']"), "an entry of `labels` is empty", "");
    check_refused(&make("labels: [[a]]"), "an entry of `labels` is text", "");
    check_refused(&make("labels: '${task.id} ${task.goal}'"), "`labels` is a list", "");
    check_refused(&make("deliverables: [{a: b}]"), "an entry of `deliverables` is text", "");
    check_refused(&make("priority: high"), "from 0 (most urgent) to 4 [high]", "write `priority: 1`");
    check_refused(&make("priority: '2'"), "from 0 (most urgent) to 4", "write `priority: 1`");
    check_refused(&make("priority: 'P${task.priority}'"), "from 0 (most urgent) to 4", "");
    check_refused(&make("priority: 1.5"), "from 0 (most urgent) to 4 [1.5]", "");
    check_refused(&make("depends: [7]"), "`depends` is the id of a task [7]", "write `T7`");
    check_refused(&make("dependsOn: [review]"), "`dependsOn` is the id of a task [review]", "`${task.id}`");
    check_refused(&make("parentTaskId: bogus"), "`parentTaskId` is the id of a task [bogus]", "`T7`");
    check_refused(&make("parentTaskId: 3"), "the id of a task [3]", "write `T7`");
    check_refused(&make("reviews: bogus"), "`reviews` is the id of a task [bogus]", "`T7`");
    check_refused(&make("report: often"), "`report` is `true` or `false` [often]", "write `report: true`");
    check_refused(
        &make("parentTaskId: {fromContext: 7}"),
        "`fromContext` is a path: names with dots between them [7]",
        "steps.make",
    );
    check_refused(&make("parentTaskId: {fromContext: task.id, x: y}"), "`fromContext` stands alone [fromContext]", "");
    check_refused(&make("parentTaskId: {task: id}"), "the id of a task", "");
    check_refused(&make("type: [a]"), "`type` is text", "");
    check_refused(&make("body: 7"), "`body` is text [7]", "`body: '…'`");
    check_refused(&make("7: x"), "a key is text [7]", "");
    check_refused(&single_step("create_task", "{goal: {a: b}}"), "`goal` is text", "write ");
    check_refused(
        &single_step("create_task", "{goal: 'Review {{ task.goal }}'}"),
        "not filled in here ['Review {{ task.goal }}']",
        "write `${task.goal}`",
    );
    check_refused(&single_step("create_task", "{goal: 'Review {{task_id}}'}"), "not filled in here", "");
    check_refused(&make("body: 'a {{ task.goal }}'"), "not filled in here", "write `${task.goal}`");
    check_refused(&make("labels: [a, '{{task.id}}']"), "not filled in here ['{{task.id}}']", "write `${task.id}`");
    check_refused(&make("deliverables: ['{{task.id}}']"), "not filled in here", "");
    let fine = make(
        "labels: [a, '${task.labels}', 'n${task.id}'], priority: '${task.priority}', depends: ['${task.id}', T1], body: \"a ${'{{'} name }}\", parentTaskId: {fromContext: task.id}",
    );
    parse_workflow(&fine, "w", false).expect("all of this can be made");
    let braces = single_step("create_task", "{goal: \"Write ${'{{'} name }} for ${task.goal}\"}");
    parse_workflow(&braces, "w", false).expect("these are meant as they stand");
}

#[test]
fn invalid_update_task_is_refused_when_read() {
    let change = |fields: &str| single_step("update_task", &format!("{{taskId: T1, {fields}}}"));
    check_refused(
        &single_step("update_task", "{taskId: 1, action: start}"),
        "`taskId` is the id of a task [1]",
        "write `T7`",
    );
    check_refused(
        &single_step("update_task", "{taskId: task.id, action: start}"),
        "is the id of a task [task.id]",
        "`${task.id}`",
    );
    check_refused(&change("action: [start]"), "`action` is text", "");
    check_refused(
        &change("action: block"),
        "the action `block` needs `reason` [block]",
        "write `payload: {reason: why}`",
    );
    check_refused(&change("action: add_labels, payload: {}"), "needs `labels`", "write `payload: {labels: [one]}`");
    check_refused(
        &change("action: start, payload: {raeson: x}"),
        "unknown key `raeson` [raeson]",
        "did you mean `reason`?",
    );
    check_refused(&change("action: start, payload: [x]"), "is a map of keys and values", "");
    check_refused(&change("action: fail, payload: {reason: 7}"), "`reason` is text [7]", "`reason: '…'`");
    check_refused(&change("action: add_labels, payload: {labels: a}"), "`labels` is a list [a]", "write `[a]`");
    check_refused(&change("action: add_labels, payload: {labels: [1]}"), "an entry of `labels` is text [1]", "");
    check_refused(&change("action: fail, reason: 'not {{task.goal}}'"), "not filled in here", "write `${task.goal}`");
    check_refused(&change("action: complete, payload: {result: '{{task.goal}}'}"), "not filled in here", "");
    for fine in [
        "action: '${context.action}'",
        "action: block, payload: '${context.payload}'",
        "action: block, reason: x",
        "action: start, payload: {context: {any: [1]}}",
        "action: complete, payload: {result: done, artifacts: [a]}",
        "action: add_labels, payload: {labels: '${task.labels}'}",
    ] {
        parse_workflow(&change(fine), "w", false).expect(fine);
    }
}

#[test]
fn invalid_expressions_are_refused_with_hint() {
    check_refused(
        &single_step("create_task", "{goal: '${task.gaol}'}"),
        "unknown name `task.gaol` [task.gaol]",
        "did you mean `task.goal`?",
    );
    check_refused(&single_step("create_task", "{goal: '${context.task.gaol}'}"), "context.task.gaol", "goal");
    check_refused(&single_step("create_task", "{goal: 'x ${task.goal'}"), "has no `}`", "$${");
    check_refused(
        &single_step("create_task", "{goal: '${steps.later.data}'}"),
        "unknown name `steps.later` [steps.later.data]",
        "known here: `steps.a`",
    );
    check_refused(
        &single_step("create_task", "{goal: '${data.x}'}"),
        "unknown name `data.x` [data.x]",
        "`data` has no fields here",
    );
    check_refused(
        &single_step("create_task", "{goal: '${context.steps.nope.data}'}"),
        "`context.steps.nope`",
        "`context.steps.a`",
    );
    let path = "{goal: {fromContext: steps.nope.data.taskId}}";
    check_refused(
        &single_step("create_task", path),
        "`context.steps.nope` [steps.nope.data.taskId]",
        "`context.steps.a`",
    );
    let language = "docs/reference/expressions.md has the language";
    check_refused(
        &single_step("create_task", "{goal: x, labels: ['${task.labels.map(l => l)}']}"),
        "unexpected `>` [>]",
        language,
    );
    check_refused(&single_step("create_task", "{goal: '${task.id ? 1 : 2}'}"), "unexpected character [?]", language);
    check_refused(&single_step("create_task", "{goal: '${task?.id}'}"), "unexpected character [?]", language);
    check_refused(&single_step("create_task", "{goal: '${{ task.id }}'}"), "[", language);
    parse_workflow(&single_step("create_task", "{goal: x, body: \"${{'a': 1}}\"}"), "w", false).expect("a map");
    parse_workflow(&single_step("create_task", "{goal: '${task.labels.length}'}"), "w", false).expect("a number");
    check_message(&single_step("create_task", "{goal: '${}'}"), "must not be empty", "");
    check_refused(
        &single_step("create_task", "{goal: \"${task.id || 'x}\"}"),
        "has no `}`",
        "close it, and the texts in it",
    );
    check_refused(
        &single_step("condition", "{predicate: task.labels.indexOf('x')}"),
        "no methods",
        "`task.labels | length`",
    );
    check_refused(
        &single_step("condition", "{predicate: '${iteration} > 2'}"),
        "is one expression",
        "write it without `${…}`",
    );
    check_refused(&single_step("condition", "{predicate: '{{ iteration > 2 }}'}"), "without braces", "`iteration > 2`");
    check_refused(
        &single_step("create_task", "{goal: {fromContext: steps.a-b.data.taskId}}"),
        "unknown name `context.steps['a-b']` [steps.a-b",
        "",
    );
    check_refused(&single_step("execute_command", "{command: ls, args: ['${nope}']}"), "unknown name `nope`", "");
    check_refused(&single_step("create_task", "{goal: {fromContext: 'a b'}}"), "", "");
    check_refused(
        &single_step("create_task", "{goal: {fromContext: task.idd}}"),
        "`context.task.idd` [task.idd]",
        "`context.task.id`",
    );
    parse_workflow(&single_step("create_task", "{goal: {fromContext: context.steps.a.data.taskId}}"), "w", false)
        .expect("a path");
}

/// Errors in JavaScript syntax are marked at their place, also across lines.
#[test]
fn expression_errors_are_marked_at_their_place() {
    let predicate = |text: &str| single_step("condition", &format!("\n      predicate: {text}"));
    let lines = "|\n        !task.goal ||\n        task.labels.includes('x') ||\n        task.gaol === 'x'";
    let problem = parse_workflow(&predicate(lines), "file", false).expect_err(lines);
    let line = |at: usize| predicate(lines)[..at].matches('\n').count() + 1;
    assert_eq!(problem.at.map(|at| line(at.start)), Some(9));
    for text in [
        lines,
        ">\n        task.labels &&\n        task.gaol",
        "\"!task.goal || task.gaol == 'x'\"",
        "context.a === null && [task.gaol]",
        "task.labels.includes(task.gaol) && task.goal.length > 2",
        "task.gaol.startsWith('task.gaol') || task.goal",
        "${task.goal || task.gaol}",
    ] {
        check_refused(&predicate(text), "unknown name `task.gaol` [task.gaol]", "did you mean `task.goal`?");
    }
    check_refused(&predicate("task.goal || task.id | uper"), "unknown filter `uper` [uper]", "upper");
    check_refused(&predicate("task.goal || task.id is strng"), "unknown test `strng` [strng]", "string");
    check_refused(&single_step("create_task", "{goal: 'Hi ${task.id || task.gaol}'}"), "[task.gaol]", "");
}

/// Returns two steps, each with this configuration.
fn two_steps(first: &str, second: &str) -> String {
    workflow_of_steps(&format!("  - {{id: a, {first}, onSuccess: b}}\n  - {{id: b, {second}}}\n"))
}

/// The type of a step determines the fields of its result.
#[test]
fn unknown_field_of_step_result_is_refused() {
    let made = |goal: &str| {
        two_steps("type: create_task, config: {goal: x}", &format!("type: create_task, config: {{goal: {goal}}}"))
    };
    let ran = |goal: &str| {
        two_steps(
            "type: execute_command, config: {command: ls}",
            &format!("type: create_task, config: {{goal: \"{goal}\"}}"),
        )
    };
    check_refused(
        &ran("${steps.a.succes}"),
        "unknown name `steps.a.succes` [steps.a.succes]",
        "mean `steps.a.success`?",
    );
    check_refused(
        &ran("${steps.a.data.stdot}"),
        "unknown name `steps.a.data.stdot` [",
        "did you mean `steps.a.data.stdout`?",
    );
    check_refused(&ran("${steps.a.data.taskId}"), "", "known here: `steps.a.data.exitCode`, `steps.a.data.stdout`");
    check_refused(&ran("${steps['a'].data['stdot'] || 'none'}"), "`steps.a.data.stdot`", "stdout");
    check_refused(&made("'${steps.a.data.taskid}'"), "`steps.a.data.taskid`", "did you mean `steps.a.data.taskId`?");
    check_refused(&made("'${steps.a.nonsense}'"), "", "known here: `steps.a.success`, `steps.a.data`");
    check_refused(
        &made("{fromContext: steps.a.data.taskid}"),
        "unknown name `context.steps.a.data.taskid` [steps.a.data.taskid]",
        "`context.steps.a.data.taskId`?",
    );
    let silent = "type: execute_command, config: {command: ls, captureOutput: false}";
    let tell = "type: create_task, config: {goal: '${steps.a.data.stdout}'}";
    check_refused(&two_steps(silent, tell), "`steps.a.data.stdout`", "known here: `steps.a.data.exitCode`");
    check_refused(&two_steps("type: noop", tell), "`steps.a.data.stdout`", "`steps.a.data` has no fields here");
    for fine in [
        "${steps.a.data.stdout}",
        "${steps.a.data}",
        "${steps.a}",
        "${steps.a.error | default('')}",
        "${steps.a.durationMs} ${steps.a.stepId}",
    ] {
        parse_workflow(&ran(fine), "w", false).expect(fine);
    }
}

#[test]
fn stored_names_are_known_and_given_names_are_open() {
    let stored = |goal: &str| {
        two_steps(
            "type: execute_command, config: {command: ls, storeAs: found}",
            &format!("type: create_task, config: {{goal: '{goal}'}}"),
        )
    };
    check_refused(&stored("${data.fond}"), "unknown name `data.fond` [data.fond]", "did you mean `data.found`?");
    check_refused(&stored("${data.xyz}"), "", "known here: `data.found`");
    // The caller may supply these names.
    for fine in ["${context.data.fond}", "${context.fond}", "${data.found.any.thing}"] {
        parse_workflow(&stored(fine), "w", false).expect(fine);
    }
}

#[test]
fn result_of_parallel_step_is_unknown() {
    let both = |label: &str, way: &str| {
        workflow_of_steps(&format!(
            "  - id: both
    type: parallel
    onSuccess: more
    config:
      steps:
        - {{id: x, type: execute_command, config: {{command: ls, storeAs: found}}}}
        - {{id: y, type: create_task, config: {{goal: z, labels: ['${{{label}}}']}}}}
  - {{id: more, type: condition, config: {{predicate: data.found == '', onTrue: {way}}}}}
  - {{id: end, type: noop}}
"
        ))
    };
    check_refused(&both("steps.x.data.stdout", "end"), "unknown name `steps.x` [steps.x.data.stdout]", "`steps.more`");
    check_refused(&both("context.steps.y.success", "end"), "unknown name `context.steps.y`", "");
    check_refused(&both("data.found", "end"), "unknown name `data.found`", "`data` has no fields here");
    check_refused(&both("steps.both.success", "end"), "unknown name `steps.both`", "");
    // In the next round of a loop, results of this round are known.
    let again = both("steps.x.data.stdout || data.found", "both, onFalse: end");
    parse_workflow(&again, "w", false).expect("it is gone through again");
}

#[test]
fn expression_is_marked_at_its_place() {
    let stored = |fields: &str| {
        two_steps(
            "type: execute_command, config: {command: ls, storeAs: xyz}",
            &format!("type: create_task, config: {fields}"),
        )
    };
    let marked = |text: &str| {
        let at = parse_workflow(text, "w", false).expect_err(text).at.expect("a place");
        text[..at.end].rsplit('\n').next().unwrap_or_default().to_owned()
    };
    let line = marked(&stored("{goal: 'data.x is nice ${data.xyz}', labels: ['$${data.x}', 'of ${ data.x }']}"));
    assert!(line.ends_with("'of ${ data.x"), "{line}");
    let line = marked(&stored("{goal: 'data.x', labels: ['${data.x}']}"));
    assert!(line.ends_with("['${data.x"), "{line}");
    let line = marked(&stored("{goal: \"steps.q.data is ${steps.q.data}\"}"));
    assert!(line.ends_with("is ${steps.q.data"), "{line}");
    let line = marked(&stored("{goal: 'of steps.q.data', parentTaskId: {fromContext: steps.q.data}}"));
    assert!(line.ends_with("fromContext: steps.q.data"), "{line}");
}
