//! Tests of the cost limit. Each of these expressions once took seconds, or gigabytes.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use crate::cost::{self, TOO_MUCH, WORK};
use crate::language::ENVIRONMENT;
use crate::tests::{context, expression};
use crate::*;

fn large() -> Value {
    let words: Vec<String> = (0..5_000).map(|number| format!("word {number}")).collect();
    json!({
        "goal": "mend it",
        "iteration": 3,
        "output": "x".repeat(48 * 1024),
        "task": {"labels": ["agent", "ui"], "priority": 0},
        "event": {"type": "t", "data": {"x": "y".repeat(48 * 1024), "words": words, "deep": {"a": null}}},
        "tool_input": {"many": vec!["z".repeat(1_000); 1_000]},
    })
}

fn condition(text: &str) -> Condition {
    Condition::parse(text, &Names::hook()).unwrap_or_else(|error| panic!("{text}: {error:?}"))
}

#[track_caller]
fn check_cut_off(text: &str) {
    assert_eq!(condition(text).holds(&large()).expect_err(text).reason, TOO_MUCH, "{text}");
}

#[track_caller]
fn check_fine(text: &str) {
    assert_eq!(condition(text).holds(&large()), Ok(true), "{text}");
}

#[test]
fn sums_and_products_are_cut_off() {
    let sum = |term: &str, times: usize| vec![term; times].join(" + ");
    check_cut_off(&format!("({}) | length", sum("event.data.x * 1000", 40)));
    check_cut_off(&format!("({}) | length", sum("output", 200)));
    check_cut_off(&format!("({}) | length > 1", sum("event.data.words * 1000", 40)));
    check_cut_off(&format!("{} == 'x'", sum("output * 100", 2)));
    check_cut_off("output * 1000 in output");
    check_cut_off(&format!("'{}' * 1000 == output", "q".repeat(20_000)));
    check_cut_off("[output, [event.data.x, event.data.words] * 1000] | string | length");
    check_cut_off("(output if goal else goal) * 1000 == goal");
    check_cut_off("(output or goal) * 1000 == goal");
    check_fine("(output * 3 + event.data.x) | length > 100000");
    check_fine(&format!("({}) | length > 5", sum("goal", 100)));
}

#[test]
fn filters_and_tests_are_counted_inside() {
    check_cut_off("range(10000) | select('in', range(10000)) | list");
    check_cut_off("event.data.words | reject('in', event.data.words) | list");
    check_cut_off(&format!("event.data.words | map(attribute='{}a') | list", "a.".repeat(20_000)));
    check_cut_off(&format!("output{} | length", " | upper | lower".repeat(100)));
    check_cut_off(&format!("event.data.words{} | length", " | sort".repeat(50)));
    check_cut_off(&format!("event.data.words{} | length", " | unique".repeat(50)));
    check_cut_off(&format!("[{}] | length", vec!["output | split('')"; 70].join(", ")));
    check_cut_off(&format!("[{}] | length", vec!["range(10000)"; 100].join(", ")));
    check_cut_off(&format!("event.data.words{} | length", " | reverse".repeat(200)));
    check_fine("range(10000) | select('odd') | list | length == 5000");
    check_fine("event.data.words | select('endingwith', '7') | list | length == 500");
    check_fine("event.data.words | sort | first == 'word 0'");
    check_fine("'word 4999' in event.data.words and output | split('x') | length > 1000");
}

#[test]
fn looking_a_place_up_is_counted() {
    let rendered = |text: &str| Template::parse(text, &Names::hook()).expect(text).render(&large());
    let each = |inner: &str| format!("{{% for i in range(5000) %}}{inner}{{% endfor %}}");
    for inner in
        ["{{ output[40000 + i] }}", "{% if output[i:] is string %}{% endif %}", "{% if output == output %}{% endif %}"]
    {
        assert_eq!(rendered(&each(inner)).expect_err(inner).reason, TOO_MUCH, "{inner}");
    }
    for inner in ["{% for x in output + output %}{% endfor %}", "{% for x in [1] * 1000 %}{% endfor %}"] {
        assert!(rendered(&each(inner)).is_err(), "{inner}");
    }
    assert!(rendered(&each("{{ event.data.words[i] }}")).expect("cheap").contains("word 4999"));
    check_fine("(event.data.words[10:] + event.data.words)[1:][:3][0] == 'word 11'");
    check_fine("(output)[0] == 'x' and (goal if goal else output)[1:][0] == 'e'");
    check_fine("goal is eq goal[0:] and goal[0] is in goal[0:2]");
    check_fine("goal is startingwith 'mend' and iteration is not odd or goal is eq 'mend it'");
}

#[test]
fn what_is_brought_along_is_counted() {
    let huge = json!({"event": {"data": {"list": vec![0; 600_000], "text": "x".repeat(40_000_000), "small": 1}}});
    for text in ["event.data.list | length", "event.data.text", "event.data"] {
        assert_eq!(condition(text).holds(&huge).expect_err(text).reason, TOO_MUCH, "{text}");
    }
    assert_eq!(condition("event.data.small").holds(&huge), Ok(true));
}

#[test]
fn evaluations_that_belong_together_share_what_may_be_spent() {
    let formula = Formula::parse("output | upper | length", &Names::hook()).expect("a formula");
    let (context, mut left) = (large(), Allowance::default());
    let done = (0..1_000).take_while(|_| formula.value_within(&context, &mut left).is_ok()).count();
    assert!((10..200).contains(&done), "{done}");
    assert!(formula.value(&context).is_ok(), "another one has all of it");
}

#[test]
fn whoever_asks_whether_something_is_there_is_answered() {
    check_fine("event.data.no.such.thing is undefined");
    check_fine("event.data.deep.a.b is not defined");
    check_fine("event['data']['no']['such'] is undefined and (event.data.no.such) is undefined");
    check_fine("event.data.no.such | default('x') == 'x'");
    check_fine("event.data.no['it\\'s'].such | d(1) + 1 == 2");
    check_fine(
        "event.data.no[0].such is undefined and event.data.words[0] is defined and event.data.words[9000000] is undefined",
    );
    check_fine("(event.data.words | first) is defined and task.labels is defined");
    for text in ["event.data.no.such == 1", "event.data.no.such", "event.data.no[iteration] is defined"] {
        assert!(condition(text).holds(&large()).expect_err(text).is_undefined(), "{text}");
    }
}

#[test]
fn a_text_is_neither_less_nor_more_than_a_number() {
    for text in ["goal > 3", "3 <= goal", "1 < goal < 5", "event.data.words[0] < 2", "(goal | upper) > 2"] {
        let reason = condition(text).holds(&large()).expect_err(text).reason;
        assert!(reason.contains("write `… | int`"), "{text}: {reason}");
    }
    for text in ["iteration > '0'", "'3' < iteration"] {
        let reason = condition(text).holds(&large()).expect_err(text).reason;
        assert!(reason.contains("a number is compared with a text"), "{text}: {reason}");
    }
    check_fine("iteration | string < '9'");
    check_fine("'7' | int > 5 and iteration > 2 and 1 < iteration < 5 and goal < 'n' and goal != 3");
}

/// The grammar needs no space after a text or a bracket.
#[test]
fn a_word_may_stand_right_behind_what_is_marked() {
    let text = format!("'{0}'in'{0}'", "x".repeat(100));
    for text in [text.as_str(), "task.labels[0]in task.labels", "(task.labels)[0]if true else 'x'"] {
        check_fine(text);
    }
}

fn value_of(text: &str, context: &Value) -> Result<String, String> {
    let used = condition(text);
    cost::within(&mut { WORK }, || {
        let plain = ENVIRONMENT.compile_expression(text).map_err(|error| error.to_string())?;
        let context = used.0.used.of(context).map_err(|error| error.to_string())?;
        plain.eval(context).map(|value| value.to_string()).map_err(|error| error.to_string())
    })
}

/// Operators and operands without brackets or spaces between them.
fn close() -> impl Strategy<Value = String> {
    let atoms =
        ["1", "-2", "'é'", "goal", "task", "task.labels", "event.data.files", "event.data.no", "tool_input['command']"];
    let leaf = select(atoms.to_vec()).prop_map(str::to_owned);
    leaf.prop_recursive(4, 24, 3, |inner| {
        let two = [
            "A+B",
            "A - B",
            "A==B",
            "A in B",
            "A not in B",
            "A and B",
            "A or B",
            "A is eq B",
            "A is not in B",
            "A|d(B)",
        ];
        let one =
            ["A[0]", "A[-1:]", "A.path", "A[0].lines", "(A)[:1]", "(A).path[0]", "A|first", "A|length", "A is defined"];
        let more =
            ["not A", "-A", "A * 3", "(A)", "[A, 1][0]", "{'k': A}.k", "range(3)[A]", "A|map('upper')", "A is odd"];
        let three =
            ["A if B else C", "A == B != C", "A+B+C", "[A, B, C]", "A|replace(B, C)", "A[B:C]", "A is eq B and C"];
        let forms = [&two[..], &one[..], &more[..], &three[..]].concat();
        (select(forms), inner.clone(), inner.clone(), inner)
            .prop_map(|(form, a, b, c)| form.replace('A', &a).replace('B', &b).replace('C', &c))
    })
}

fn check_same(text: &str) -> Result<(), TestCaseError> {
    let Ok(marked) = Condition::parse(text, &Names::hook()) else { return Ok(()) };
    let context = context();
    match (marked.0.value(&context, &mut { WORK }), value_of(text, &context)) {
        (Ok(marked), Ok(plain)) => prop_assert_eq!(marked.to_string(), plain),
        (Err(fault), Ok(_)) => {
            let is_meant = fault.reason == TOO_MUCH || fault.reason.contains("with a number");
            prop_assert!(fault.is_undefined() || is_meant, "{}", fault);
        }
        (Ok(_), Err(error)) => prop_assert!(error.contains("undefined"), "{}", error),
        (Err(_), Err(_)) => {}
    }
    Ok(())
}

proptest! {
    /// Marks change no value.
    #[test]
    fn marked_or_not_it_is_the_same(text in expression()) {
        check_same(&text)?;
    }

    #[test]
    fn however_close_the_marks_stand(text in close()) {
        check_same(&text)?;
        let template = format!("{{% for x in {text} %}}{{{{ x }}}}{{% if {text} %}}!{{% endif %}}{{% endfor %}}");
        if let Ok(template) = Template::parse(&template, &Names::hook()) {
            let _ = template.render(&context());
        }
    }
}
