//! What is refused, and that what is offered for it can be written.

use proptest::prelude::*;
use serde_json::json;

use crate::workflow::Pattern;
use crate::workflow::dialect::{Asked, translate};

#[track_caller]
fn check(text: &str, instead: &str) {
    let error = translate(text, Asked::Value).expect_err(text);
    let said = error.suggestion.clone().unwrap_or_default();
    assert!(said.contains(instead) && said.len() < 120, "{text}: {error:?}");
}

#[test]
fn signs() {
    check("a ? b : c", "A if CONDITION else B");
    check("a?.b", "default('')");
    check("a ?? b", "`… || …`");
    check("a.length > 2", "| length");
    check("`x`", "one after the other");
    check("a.map(x => x)", "filter");
    check("a ||", "context.who || 'nobody'");
    check("(|| a)", "context.who || 'nobody'");
    assert!(translate("'never closed", Asked::Value).is_err());
}

#[track_caller]
fn reads(text: &str, ours: &str) {
    assert_eq!(translate(text, Asked::Value).unwrap(), ours, "{text}");
}

#[test]
fn methods_that_mean_the_same_are_read() {
    reads("context.task.labels.includes('agent')", "('agent' in context.task.labels)");
    reads("a.b\n  .includes( 'VALUE' )", "('VALUE' in a.b)");
    reads("a.get('x')[0].get(1).c", "a['x'][0][1].c");
    reads("a.get(b + 1)", "a[(b + 1)]");
    reads("'x' in a.get('b') and [a.get('c')]", "'x' in a['b'] and [a['c']]");
    reads("a.includes([1, 2])", "(([1, 2]) in a)");
    reads("a.includes('x') || b.has('y')", "('x' in a) or ('y' in b)");
    reads("f | length(a.startsWith('x') || b)", "f | length((a is startingwith('x')) or (b) | default(false))");
    reads(
        "!context.mine['x'].includes( 'a' ) && b['c']",
        "(not (('a' in context.mine['x'])) | otherwise(false)) and (b['c']) | default(false)",
    );
    reads("task.goal.startsWith('a')", "(task.goal is startingwith('a'))");
    reads("task.goal.toLowerCase() == 'a'", "(task.goal | lower) == 'a'");
    reads("a and task.goal.toUpperCase().endsWith('A')", "a and ((task.goal | upper) is endingwith('A'))");
    reads("a.includes(b || c.toUpperCase())", "(((b if (b | otherwise(none)) is not none else ((c | upper)))) in a)");
    reads("data.includes == 1", "data.includes == 1");
}

#[test]
fn methods_that_do_not_are_refused() {
    check("context.task.labels.indexOf('agent') >= 0", "`'agent' in task.labels`");
    check("a.includes('b', 2)", "`'b' in a`");
    check("context.flag.toString() === 'true'", "`context.flag | string`");
    check(&format!("{}a.includes('b')", "!".repeat(300)), "`'b' in a`");
    check("/^a?/i.test(task.goal)", "startingwith");
    check("a.test(b)", "startingwith");
    check(".includes('a')", "`");
    check("a.includes()", "`");
}

/// What is offered can be written, and means something.
#[track_caller]
fn leads_to(text: &str, instead: &str, value: &serde_json::Value) {
    let error = translate(text, Asked::Value).expect_err(text);
    let said = error.suggestion.clone().unwrap_or_default();
    assert!(said.starts_with(&format!("write `{instead}`")), "{text}: {error:?}");
    let context = json!({
        "task": {"goal": "Mend, it", "labels": ["b", "a"], "priority": 2},
        "context": {"n": 2.75, "map": {"k": "v"}, "text": " x "},
    });
    let filled = Pattern::parse(&json!(format!("${{{instead}}}"))).expect(instead).fill(&context);
    assert_eq!(filled.expect(instead), *value, "{instead}");
}

#[test]
fn hints_work_when_they_are_followed() {
    leads_to("task.goal.split(', ')", "task.goal | split(', ')", &json!(["Mend", "it"]));
    leads_to("context.task.labels.join(', ')", "task.labels | join(', ')", &json!("b, a"));
    leads_to("task.goal.replace('it', 'us')", "task.goal | replace('it', 'us')", &json!("Mend, us"));
    leads_to("task.goal.replace(/it/g, 'us')", "task.goal | replace('from', 'to')", &json!("Mend, it"));
    leads_to("context.text.trim()", "context.text | trim", &json!("x"));
    leads_to("task.labels.sort()", "task.labels | sort", &json!(["a", "b"]));
    leads_to("task.labels.contains('a')", "'a' in task.labels", &json!(true));
    leads_to("!task.labels.contains('a') && task.goal", "'a' in task.labels", &json!(true));
    leads_to("task.goal.startswith('M')", "task.goal is startingwith('M')", &json!(true));
    leads_to("task.goal.EndsWith('M')", "task.goal is endingwith('M')", &json!(false));
    leads_to("task.goal.toLowercase()", "task.goal | lower", &json!("mend, it"));
    leads_to("task.goal.substring(0, 4)", "task.goal[0:4]", &json!("Mend"));
    leads_to("task.goal.substr(1, 2)", "task.goal[1:1 + 2]", &json!("en"));
    leads_to("task.labels.slice(1)", "task.labels[1:]", &json!(["a"]));
    leads_to("context.map.get('x', 'no')", "context.map['x'] | default('no')", &json!("no"));
    leads_to("context.map.keys()", "context.map | list", &json!(["k"]));
    leads_to("task.labels.concat(['c'])", "task.labels + ['c']", &json!(["b", "a", "c"]));
    leads_to("context.n.toFixed(0)", "context.n | round(0)", &json!(3.0));
    leads_to("task.labels.filter(context.f)", "task.labels | select('in', ['a', 'b'])", &json!(["b", "a"]));
    leads_to("task.labels.map(context.f)", "task.labels | map('upper')", &json!(["B", "A"]));
    leads_to("(task.labels || []).length", "(task.labels || []) | length", &json!(2));
    leads_to("task.labels.length > 1", "task.labels | length", &json!(2));
    leads_to("task.labels\n  .length", "task.labels | length", &json!(2));
    leads_to("{{ task.priority }} > 1", "task.priority", &json!(2));
}

#[test]
fn functions() {
    leads_to("Math.max(1, task.priority)", "[1, task.priority] | max", &json!(2));
    leads_to("Math.min(...task.labels)", "task.labels | min", &json!("a"));
    leads_to("Math.round(context.n + 1)", "(context.n + 1) | round", &json!(4.0));
    leads_to("Math.floor(context.n)", "context.n // 1", &json!(2.0));
    leads_to("JSON.stringify(context.map)", "context.map | tojson", &json!("{\"k\": \"v\"}"));
    leads_to("Object.keys(context.map)", "context.map | list", &json!(["k"]));
    leads_to("Object.entries(context.map)", "context.map | items", &json!([["k", "v"]]));
    leads_to("Object.values(context.map)", "context.map | items | map(attribute=1)", &json!(["v"]));
    leads_to("Array.isArray(task.labels)", "task.labels is sequence", &json!(true));
    leads_to("parseInt('7', 10) + 1", "'7' | int", &json!(7));
    leads_to("parseFloat('7.5')", "'7.5' | float", &json!(7.5));
    leads_to("Number('7') > 2", "'7' | int", &json!(7));
    leads_to("String(task.priority)", "task.priority | string", &json!("2"));
    leads_to("isNaN('x')", "'x' is not number", &json!(true));
    leads_to("len(task.labels)", "task.labels | length", &json!(2));
    leads_to("contains(task.labels, 'a')", "'a' in task.labels", &json!(true));
    leads_to("default(context.no, 3)", "context.no | default(3)", &json!(3));
    check("JSON.parse(data.x)", "`storeAs`");
    check("Date.now() > 3", "`event.timestamp`");
    check("new Date() > 3", "`event.timestamp`");
    check("Date()", "`event.timestamp`");
    check("fetch('x')", "the only function is `range`");
    check("console.log(task)", "leave it out");
    reads("range(3) || 'a' is in(['a']) || not (a)", "(range(3)) | default(false) or 'a' is in(['a']) or not (a)");
}

#[test]
fn words_and_what_is_not_closed() {
    check("typeof a === 'string'", "is string");
    check("a instanceof Array", "is sequence");
    check("new Set([1])", "`[…]`");
    check("return true", "leave it out");
    check("true;", "leave the `;` out");
    check("task.goal =~ /x/", "startingwith");
    check("{{ task.goal", "task.priority < 2");
    check("a &&", "context.who && context.urgent");
    check("a && || b", "context.who && context.urgent");
    check("task.goal ===", "write it as in `task.priority === 2`");
    check("(< 2) || a", "write it as in `task.priority < 2`");
    check("a && !", "`!context.urgent`");
    check("a AND b", "write `and`");
    check("a b", "between them");
    check("task.goal 'x'", "between them");
    check("(a) 2", "between them");
    reads("'a' 'b' is eq 'ab' && c is not divisibleby 3", "'a' 'b' is eq 'ab' and c is not divisibleby 3");
    let open = |text: &str| {
        let error = translate(text, Asked::Value).expect_err(text);
        (error.message, error.at.expect("a place").start, error.suggestion.unwrap_or_default())
    };
    let bracket = |at, bracket: &str, close: &str| {
        (format!("this `{bracket}` is not closed"), at, format!("close it with `{close}`"))
    };
    assert_eq!(open("task.labels.includes("), bracket(20, "(", ")"));
    assert_eq!(open("a.includes('b']"), bracket(10, "(", ")"));
    assert_eq!(open("stepResults.get("), bracket(15, "(", ")"));
    assert_eq!(open("[1, (2), {'a': 3}"), bracket(0, "[", "]"));
    assert_eq!(open("a == 'b"), ("this text is not closed".to_owned(), 5, "close it with `'`".to_owned()));
}

#[test]
fn results_of_steps() {
    reads("context.stepResults.get('x').error", "context.steps['x'].error");
    reads("context.stepResults['x']", "context.steps['x']");
    reads("stepResults.x.data.taskId", "steps.x.data.taskId");
    reads("data.stepResults", "data.stepResults");
}

#[test]
fn names_with_dashes() {
    check("steps.a-b.success", "`steps['a-b'].success`");
    check("steps.a-b.data.stdout.includes('x')", "`steps['a-b'].data.stdout`");
    check("context.steps.a-b-2.data.taskId == 1", "`context.steps['a-b-2'].data.taskId`");
    check("data.my-name", "`data['my-name']`");
    assert!(translate("data.count-1 + context.n-iteration", Asked::Value).is_ok());
}

proptest! {
    #[test]
    fn no_text_panics(text in "([a-c!|&.() \\[\\]{}:,='/-]|steps|context|stepResults|includes\\(|get| if | in |é|null|==|;|Math\\.max\\(|parseInt\\(|slice| not |\\$\\{){0,40}") {
        let _ = translate(&text, Asked::Value);
        let _ = translate(&text, Asked::Truth);
        let _ = Pattern::parse(&json!(format!("${{{text}}}")));
    }
}
