//! Properties of every text that is read as an expression, a template or a pattern. For tests and fuzzing only.
//!
//! Each law takes bytes and panics if it does not hold. The byte 0xff, which no text contains, separates the two texts of an input.

use serde_json::{Value, json};

use crate::{
    Condition, ExpressionError, ExpressionNames, TextTemplate, ValueExpression, ValuePattern, parse_predicate,
};

/// Separates the texts of an input.
const TEXT_SEPARATOR: u8 = 0xff;
/// The maximum length of a result.
const MAX_RESULT_BYTES: usize = 256 * 1024;

/// Checks that the parser refuses an expression with its place, or that the expression has the same value at each evaluation,
/// within its bounds.
pub fn check_expression(bytes: &[u8]) {
    let (text, value) = split_texts(bytes);
    let context = hostile_context(&value);
    for names in [ExpressionNames::for_hook(), ExpressionNames::for_rules(), ExpressionNames::for_workflow()] {
        match Condition::parse(&text, &names) {
            Err(error) => check_place(&error, &text),
            Ok(condition) => {
                assert_eq!(condition.text(), text);
                let formula = ValueExpression::parse(&text, &names).expect("a condition is an expression");
                let (holds, came) = (condition.is_satisfied(&context), formula.evaluate(&context));
                assert_eq!(holds, condition.is_satisfied(&context), "asked twice, it means the same");
                assert_eq!(came, formula.evaluate(&context), "asked twice, it comes to the same");
                match (holds, came) {
                    (Ok(holds), Ok(Value::Bool(came))) => assert_eq!(holds, came),
                    (Ok(holds), Ok(Value::String(came))) => assert_eq!(holds, !came.is_empty()),
                    (Err(fault), Err(other)) => assert_eq!(fault, other),
                    (Err(fault), Ok(came)) => panic!("{fault}, and yet it comes to {came}"),
                    (Ok(_), _) => {}
                }
            }
        }
    }
}

/// Checks that the parser refuses a template with its place, or that the template renders to a text within its bounds. Values
/// are inserted unchanged, and expressions in values are not evaluated.
pub fn check_template(bytes: &[u8]) {
    let (text, value) = split_texts(bytes);
    let context = hostile_context(&value);
    for names in [ExpressionNames::for_feedback(), ExpressionNames::for_prompt()] {
        match TextTemplate::parse(&text, &names) {
            Err(error) => check_place(&error, &text),
            Ok(template) => {
                assert_eq!(template.text(), text);
                let rendered = template.render(&context);
                assert_eq!(rendered, template.render(&context), "asked twice, it says the same");
                if let Ok(rendered) = rendered {
                    assert!(rendered.len() <= MAX_RESULT_BYTES, "{} bytes", rendered.len());
                    // Rendering drops the newline at the end of the last line.
                    let rest = text.strip_prefix(&rendered).unwrap_or("lost");
                    assert!(text.contains('{') || matches!(rest, "" | "\n" | "\r" | "\r\n"), "{text:?}: {rendered:?}");
                }
            }
        }
    }
    let plain = TextTemplate::parse("<{{ error }}>", &ExpressionNames::for_feedback()).expect("a template");
    assert_eq!(plain.render(&context).as_deref(), Ok(format!("<{value}>").as_str()), "a value arrives as it is");
}

/// Checks that the parser refuses a pattern with its place, or that the pattern can be filled within its bounds.
pub fn check_pattern(bytes: &[u8]) {
    let (text, value) = split_texts(bytes);
    let context = hostile_context(&value);
    let pattern = serde_json::from_str(&text).unwrap_or_else(|_| Value::from(text.as_str()));
    match ValuePattern::parse(&pattern) {
        Err(refused) => check_place(&refused.error, &refused.text),
        Ok(filled) => {
            let came = filled.fill_values(&context);
            assert_eq!(came, filled.fill_values(&context), "asked twice, it comes to the same");
            if let Ok(came) = came {
                assert!(
                    value_size(&came) <= value_size(&pattern) + 2 * MAX_RESULT_BYTES,
                    "{} bytes",
                    value_size(&came)
                );
                if !text.contains("${") && !text.contains("romContext") && !text.contains("rom_context") {
                    assert!(came == pattern, "what names nothing stays as it is");
                }
            }
        }
    }
    if let Err(error) = parse_predicate(&text) {
        check_place(&error, &text);
    }
}

/// Checks that the marked range lies in the text.
fn check_place(error: &ExpressionError, text: &str) {
    assert!(!error.message.is_empty());
    if let Some(at) = &error.at {
        assert!(text.get(at.clone()).is_some(), "{at:?} is no place in {text:?}: {}", error.message);
    }
}

fn split_texts(bytes: &[u8]) -> (String, String) {
    let mut parts = bytes.splitn(2, |byte| *byte == TEXT_SEPARATOR);
    let mut next = || String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    (next(), next())
}

/// Returns the approximate size of a value.
fn value_size(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(|item| value_size(item) + 1).sum(),
        Value::Object(fields) => fields.iter().map(|(name, field)| name.len() + value_size(field) + 1).sum(),
        Value::String(text) => text.len(),
        _ => 1,
    }
}

/// Returns a context with a hostile text and large values.
fn hostile_context(text: &str) -> Value {
    json!({
        "point": "stop",
        "session": "main",
        "iteration": 3,
        "retries": u64::MAX,
        "goal": text,
        "error": text,
        "output": "line of many\n".repeat(1000),
        "promise": null,
        "task": {"id": "T1", "goal": text, "labels": ["agent", text], "priority": 0, "deliverables": []},
        "event": {"type": "turn_finished", "data": {"exit": -1, "list": (0..300).collect::<Vec<_>>(), "text": text}},
        "tool_input": {"command": text, "depth": {"a": {"b": [1.5, null, true]}}},
        "filesModified": ["a.rs", text],
        "agentOutput": text,
        "steps": {"a": {"data": {"taskId": "T7"}, "success": true}},
        "data": {"out": text},
        "context": {"task": {"id": "T1"}, "out": text, "list": [1, [2, [3]]]},
        "reason": text,
        "stdout": text,
        "exit": "exit 1",
    })
}

#[cfg(test)]
mod tests {
    use windlass_testkit::hostile::check_law;

    #[test]
    fn expressions_are_bounded() {
        check_law("expression", super::check_expression);
    }

    #[test]
    fn templates_are_bounded_and_evaluate_no_values() {
        check_law("template", super::check_template);
    }

    #[test]
    fn patterns_are_bounded() {
        check_law("pattern", super::check_pattern);
    }
}
