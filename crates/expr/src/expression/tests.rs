//! Tests of the cost limit. Each of these expressions once took seconds, or gigabytes.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use crate::cost::{self, MAX_EVALUATION_WORK, TOO_MUCH_WORK};
use crate::language::ENVIRONMENT;
use crate::tests::{hostile_expression, sample_context};
use crate::*;

fn large_context() -> Value {
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

fn parse_condition(text: &str) -> Condition {
    Condition::parse(text, &ExpressionNames::for_hook()).unwrap_or_else(|error| panic!("{text}: {error:?}"))
}

#[track_caller]
fn check_cut_off(text: &str) {
    assert_eq!(parse_condition(text).is_satisfied(&large_context()).expect_err(text).reason, TOO_MUCH_WORK, "{text}");
}

#[track_caller]
fn check_satisfied(text: &str) {
    assert_eq!(parse_condition(text).is_satisfied(&large_context()), Ok(true), "{text}");
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
    check_satisfied("(output * 3 + event.data.x) | length > 100000");
    check_satisfied(&format!("({}) | length > 5", sum("goal", 100)));
}

#[test]
fn work_inside_filters_and_tests_is_charged() {
    check_cut_off("range(10000) | select('in', range(10000)) | list");
    check_cut_off("event.data.words | reject('in', event.data.words) | list");
    check_cut_off(&format!("event.data.words | map(attribute='{}a') | list", "a.".repeat(20_000)));
    check_cut_off(&format!("output{} | length", " | upper | lower".repeat(100)));
    check_cut_off(&format!("event.data.words{} | length", " | sort".repeat(50)));
    check_cut_off(&format!("event.data.words{} | length", " | unique".repeat(50)));
    check_cut_off(&format!("[{}] | length", vec!["output | split('')"; 70].join(", ")));
    check_cut_off(&format!("[{}] | length", vec!["range(10000)"; 100].join(", ")));
    check_cut_off(&format!("event.data.words{} | length", " | reverse".repeat(200)));
    check_satisfied("range(10000) | select('odd') | list | length == 5000");
    check_satisfied("event.data.words | select('endingwith', '7') | list | length == 500");
    check_satisfied("event.data.words | sort | first == 'word 0'");
    check_satisfied("'word 4999' in event.data.words and output | split('x') | length > 1000");
}

#[test]
fn index_lookup_is_charged() {
    let rendered =
        |text: &str| TextTemplate::parse(text, &ExpressionNames::for_hook()).expect(text).render(&large_context());
    let each = |inner: &str| format!("{{% for i in range(5000) %}}{inner}{{% endfor %}}");
    for inner in
        ["{{ output[40000 + i] }}", "{% if output[i:] is string %}{% endif %}", "{% if output == output %}{% endif %}"]
    {
        assert_eq!(rendered(&each(inner)).expect_err(inner).reason, TOO_MUCH_WORK, "{inner}");
    }
    for inner in ["{% for x in output + output %}{% endfor %}", "{% for x in [1] * 1000 %}{% endfor %}"] {
        assert!(rendered(&each(inner)).is_err(), "{inner}");
    }
    assert!(rendered(&each("{{ event.data.words[i] }}")).expect("cheap").contains("word 4999"));
    check_satisfied("(event.data.words[10:] + event.data.words)[1:][:3][0] == 'word 11'");
    check_satisfied("(output)[0] == 'x' and (goal if goal else output)[1:][0] == 'e'");
    check_satisfied("goal is eq goal[0:] and goal[0] is in goal[0:2]");
    check_satisfied("goal is startingwith 'mend' and iteration is not odd or goal is eq 'mend it'");
}

#[test]
fn values_of_context_are_charged() {
    let huge = json!({"event": {"data": {"list": vec![0; 600_000], "text": "x".repeat(40_000_000), "small": 1}}});
    for text in ["event.data.list | length", "event.data.text", "event.data"] {
        assert_eq!(parse_condition(text).is_satisfied(&huge).expect_err(text).reason, TOO_MUCH_WORK, "{text}");
    }
    assert_eq!(parse_condition("event.data.small").is_satisfied(&huge), Ok(true));
}

#[test]
fn evaluations_with_one_budget_share_it() {
    let formula = ValueExpression::parse("output | upper | length", &ExpressionNames::for_hook()).expect("a formula");
    let (context, mut left) = (large_context(), EvaluationBudget::default());
    let done = (0..1_000).take_while(|_| formula.evaluate_within(&context, &mut left).is_ok()).count();
    assert!((10..200).contains(&done), "{done}");
    assert!(formula.evaluate(&context).is_ok(), "another one has all of it");
}

#[test]
fn existence_test_of_missing_name_is_answered() {
    check_satisfied("event.data.no.such.thing is undefined");
    check_satisfied("event.data.deep.a.b is not defined");
    check_satisfied("event['data']['no']['such'] is undefined and (event.data.no.such) is undefined");
    check_satisfied("event.data.no.such | default('x') == 'x'");
    check_satisfied("event.data.no['it\\'s'].such | d(1) + 1 == 2");
    check_satisfied(
        "event.data.no[0].such is undefined and event.data.words[0] is defined and event.data.words[9000000] is undefined",
    );
    check_satisfied("(event.data.words | first) is defined and task.labels is defined");
    for text in ["event.data.no.such == 1", "event.data.no.such", "event.data.no[iteration] is defined"] {
        assert!(parse_condition(text).is_satisfied(&large_context()).expect_err(text).is_undefined(), "{text}");
    }
}

#[test]
fn order_of_text_and_number_is_error() {
    for text in ["goal > 3", "3 <= goal", "1 < goal < 5", "event.data.words[0] < 2", "(goal | upper) > 2"] {
        let reason = parse_condition(text).is_satisfied(&large_context()).expect_err(text).reason;
        assert!(reason.contains("write `… | int`"), "{text}: {reason}");
    }
    for text in ["iteration > '0'", "'3' < iteration"] {
        let reason = parse_condition(text).is_satisfied(&large_context()).expect_err(text).reason;
        assert!(reason.contains("a number is compared with a text"), "{text}: {reason}");
    }
    check_satisfied("iteration | string < '9'");
    check_satisfied("'7' | int > 5 and iteration > 2 and 1 < iteration < 5 and goal < 'n' and goal != 3");
}

/// The grammar needs no space after a text or a bracket.
#[test]
fn word_directly_after_marked_operand_is_read() {
    let text = format!("'{0}'in'{0}'", "x".repeat(100));
    for text in [text.as_str(), "task.labels[0]in task.labels", "(task.labels)[0]if true else 'x'"] {
        check_satisfied(text);
    }
}

fn evaluate_unmarked(text: &str, context: &Value) -> Result<String, String> {
    let used = parse_condition(text);
    cost::evaluate_within(&mut { MAX_EVALUATION_WORK }, || {
        let plain = ENVIRONMENT.compile_expression(text).map_err(|error| error.to_string())?;
        let context = used.0.used.select_values(context).map_err(|error| error.to_string())?;
        plain.eval(context).map(|value| value.to_string()).map_err(|error| error.to_string())
    })
}

/// Operators and operands without brackets or spaces between them.
fn adjacent_expressions() -> impl Strategy<Value = String> {
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

fn check_same_value(text: &str) -> Result<(), TestCaseError> {
    let Ok(marked) = Condition::parse(text, &ExpressionNames::for_hook()) else { return Ok(()) };
    let context = sample_context();
    match (marked.0.evaluate_with_work(&context, &mut { MAX_EVALUATION_WORK }), evaluate_unmarked(text, &context)) {
        (Ok(marked), Ok(plain)) => prop_assert_eq!(marked.to_string(), plain),
        (Err(fault), Ok(_)) => {
            let is_meant = fault.reason == TOO_MUCH_WORK || fault.reason.contains("compared with a");
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
    fn marks_change_no_value(text in hostile_expression()) {
        check_same_value(&text)?;
    }

    #[test]
    fn adjacent_marks_change_no_value(text in adjacent_expressions()) {
        check_same_value(&text)?;
        let template = format!("{{% for x in {text} %}}{{{{ x }}}}{{% if {text} %}}!{{% endif %}}{{% endfor %}}");
        if let Ok(template) = TextTemplate::parse(&template, &ExpressionNames::for_hook()) {
            let _ = template.render(&sample_context());
        }
    }
}
