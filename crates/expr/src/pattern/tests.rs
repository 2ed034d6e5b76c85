//! Tests of patterns, by example.

use serde_json::json;

use super::*;
use crate::bounds::MAX_OUTPUT_BYTES;

fn parse_and_fill(pattern: &Value) -> Value {
    let context = json!({
        "task": {"goal": "Mend \"it\"", "labels": ["agent", "pump"], "priority": 0},
        "steps": {"a": {"data": {"taskId": "T7"}}},
        "context": {"who": null, "no": false, "deep": {"list": [1, 2]}, "a-b": {"1st": {"length": 3}}},
    });
    ValuePattern::parse(pattern).expect("a pattern").fill_values(&context).expect("filled")
}

#[test]
fn lone_placeholder_keeps_type_and_embedded_one_becomes_text() {
    assert_eq!(parse_and_fill(&json!("${task.priority}")), json!(0));
    assert_eq!(parse_and_fill(&json!("P${task.priority}: ${task.labels}")), json!("P0: [\"agent\",\"pump\"]"));
    assert_eq!(parse_and_fill(&json!("Review: ${task.goal}")), json!("Review: Mend \"it\""));
    assert_eq!(parse_and_fill(&json!(["review", "${task.labels}", "x"])), json!(["review", "agent", "pump", "x"]));
    assert_eq!(parse_and_fill(&json!({"a": [["${task.labels}"]], "b": 2})), json!({"a": [["agent", "pump"]], "b": 2}));
    assert_eq!(parse_and_fill(&json!("$${task.goal} ${'}'} {}")), json!("${task.goal} } {}"));
}

#[test]
fn many_expressions_come_to_no_more_than_one() {
    let context = json!({"task": {"goal": "x".repeat(MAX_OUTPUT_BYTES / 8)}});
    let many = |times| ValuePattern::parse(&json!({"a": ["${task.goal}".repeat(times)]})).expect("a pattern");
    assert!(many(7).fill_values(&context).is_ok());
    assert!(many(8).fill_values(&context).expect_err("too much").reason.contains("more than"));
    // A value in a text uses the budget by its rendered length.
    let context = json!({"task": {"labels": ["\u{1}".repeat(MAX_OUTPUT_BYTES / 8)]}});
    let in_text = ValuePattern::parse(&json!("Of ${task.labels}${task.labels}")).expect("a pattern");
    assert!(in_text.fill_values(&context).expect_err("too much").reason.contains("more than"));
}

#[test]
fn evaluation_error_quotes_text_as_written() {
    let fault = |pattern: Value| {
        let pattern = ValuePattern::parse(&pattern).expect("a pattern");
        pattern.fill_values(&json!({"context": {}, "task": {}})).expect_err("a fault").to_string()
    };
    let error = fault(json!("Hi ${ context.a === 1 || !context.b.c > 2 }"));
    assert!(error.starts_with("cannot evaluate `context.a === 1 || !context.b.c > 2`: "), "{error}");
    assert_eq!(fault(json!({"fromContext": "a-b"})), "cannot evaluate `a-b`: its value is undefined");
}

#[test]
fn pattern_with_from_context_reads_context_path() {
    assert_eq!(parse_and_fill(&json!({"fromContext": "deep.list[1]"})), json!(2));
    assert_eq!(parse_and_fill(&json!({"fromContext": "who"})), json!(null));
    assert_eq!(parse_and_fill(&json!({"fromContext": "a-b.1st.length"})), json!(3));
    assert_eq!(parse_and_fill(&json!({"fromContext": "context.deep.list[1]"})), json!(2));
    let wrong = ValuePattern::parse(&json!({"fromContext": "task.idd"})).expect_err("no such field").error;
    assert_eq!(
        (wrong.message.as_str(), wrong.suggestion.as_deref()),
        ("unknown name `context.task.idd`", Some("did you mean `context.task.id`?"))
    );
    for wrong in ["", "a..b", "a b", "a['b']", "a[b]", "who || 2"] {
        assert!(ValuePattern::parse(&json!({"fromContext": wrong})).is_err(), "{wrong}");
    }
    assert_eq!(parse_and_fill(&json!({"fromContext": "x", "other": 1})), json!({"fromContext": "x", "other": 1}));
}

#[test]
fn alternative_is_taken_where_a_name_is_missing_or_empty() {
    assert_eq!(parse_and_fill(&json!("${context.who || 'none'} ${context.missing || 2}")), json!("none 2"));
    assert_eq!(parse_and_fill(&json!("${task.priority || 2} ${context.no || true}")), json!("2 true"));
    assert_eq!(parse_and_fill(&json!("${context.no.such.thing || '' || 'x'}")), json!("x"));
    assert_eq!(parse_and_fill(&json!("${'x' if context.no || task.goal else 'y'}")), json!("x"));
    assert_eq!(parse_and_fill(&json!("${ {'reason': context.r || 'none'} }")), json!({"reason": "none"}));
    assert_eq!(
        parse_and_fill(&json!("${context.no.such is defined} ${context.no.such | default(1)}")),
        json!("false 1")
    );
}

#[test]
fn unusable_pattern_is_refused_with_place() {
    let refused = |text: &str| ValuePattern::parse(&json!(text)).expect_err(text).error;
    assert_eq!(refused("Hi ${!task.goal ||\n task.gaol}").at, Some(20..29));
    assert_eq!(refused("Hi ${context.who || 'x}").at, Some(3..23));
    assert_eq!(refused("Hi ${task.gaol}").at, Some(5..14));
    assert!(refused("${task.goal").message.contains("no `}`"));
    assert!(refused("${tsak.goal}").suggestion.unwrap().contains("task"));
    assert!(refused("${context.task.gaol}").suggestion.unwrap().contains("goal"));
    assert!(refused("${}").message.contains("empty"));
    let wrong = ValuePattern::parse(&json!({"fromContext": "list[1]]"})).expect_err("no path");
    assert_eq!((wrong.error.at, wrong.text.as_str()), (None, "list[1]]"));
}
