//! What is written in the words of JavaScript means what it means there.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Pattern, predicate};
use crate::expression::Allowance;

/// Questions as they are asked elsewhere, and in our words.
const QUESTIONS: [(&str, &str); 6] = [
    ("context.labels.includes(context.word)", "context.word in context.labels"),
    ("!context.labels.has(context.word)", "context.word not in context.labels"),
    ("context.text\n.startsWith('a')", "context.text is startingwith('a')"),
    ("context.text.toUpperCase().endsWith('B')", "(context.text | upper) is endingwith('B')"),
    ("context.texts.get(context.word).includes('a')", "'a' in context.texts[context.word]"),
    ("(context.text || context.word) === 'a'", "(context.text or context.word) == 'a'"),
];

/// Something that holds or does not, as it may be guarded.
#[derive(Debug, Clone)]
enum Guard {
    Path(&'static str),
    /// Whether something is null or missing, or not.
    Null(&'static str, &'static str),
    Equal(&'static str, &'static str),
    Not(Box<Guard>),
    And(Box<Guard>, Box<Guard>),
    Or(Box<Guard>, Box<Guard>),
}

const PATHS: &[&str] =
    &["context.a", "context.a.b", "context.none", "context.no", "context.list[0].x", "context.get('a')"];
const NULLS: &[&str] = &["=== null", "!== undefined", "== null", "!= null", "== undefined"];

fn guards() -> impl Strategy<Value = Guard> {
    let path = || proptest::sample::select(PATHS);
    let leaf = prop_oneof![
        path().prop_map(Guard::Path),
        (path(), proptest::sample::select(NULLS)).prop_map(|(path, sign)| Guard::Null(path, sign)),
        (path(), proptest::sample::select(&["1", "'x'"][..])).prop_map(|(path, value)| Guard::Equal(path, value)),
    ];
    leaf.prop_recursive(4, 16, 2, |inner| {
        let two = || (inner.clone().prop_map(Box::new), inner.clone().prop_map(Box::new));
        prop_oneof![
            inner.clone().prop_map(|inner| Guard::Not(Box::new(inner))),
            two().prop_map(|(one, other)| Guard::And(one, other)),
            two().prop_map(|(one, other)| Guard::Or(one, other)),
        ]
    })
}

impl Guard {
    /// As it is written, with no more brackets than it needs.
    fn text(&self) -> String {
        let within = |inner: &Self| match inner {
            Self::Or(..) => format!("({})", inner.text()),
            _ => inner.text(),
        };
        match self {
            Self::Path(path) => (*path).to_owned(),
            Self::Null(path, sign) if sign.len() == 7 => format!("{} {path}", turned(sign)),
            Self::Null(path, sign) => format!("{path} {sign}"),
            Self::Equal(path, value) => format!("{path} === {value}"),
            Self::Not(inner) if matches!(**inner, Self::Path(_) | Self::Not(_)) => format!("!{}", inner.text()),
            Self::Not(inner) => format!("!({})", inner.text()),
            Self::And(one, other) => format!("{} && {}", within(one), within(other)),
            Self::Or(one, other) => format!("{}||{}", one.text(), other.text()),
        }
    }

    /// What it comes to: nothing where something is compared that is missing.
    fn holds(&self, context: &Value) -> Option<bool> {
        let value = |path: &str| match path {
            "context.a" | "context.get('a')" => context.pointer("/context/a"),
            "context.list[0].x" => context.pointer("/context/list/0/x"),
            path => context.pointer(&format!("/{}", path.replace('.', "/"))),
        };
        match self {
            Self::Path(path) => Some(value(path).is_some_and(is_true)),
            Self::Null(path, sign) => Some(value(path).is_none_or(Value::is_null) != sign.starts_with('!')),
            Self::Equal(path, other) => Some(*value(path)? == if *other == "1" { json!(1) } else { json!("x") }),
            Self::Not(inner) => inner.holds(context).map(|holds| !holds),
            Self::And(one, other) => {
                if one.holds(context)? {
                    other.holds(context)
                } else {
                    Some(false)
                }
            }
            Self::Or(one, other) => {
                if one.holds(context)? {
                    Some(true)
                } else {
                    other.holds(context)
                }
            }
        }
    }
}

/// `== null` before what it is asked of.
fn turned(sign: &str) -> String {
    let (sign, null) = sign.split_once(' ').unwrap_or((sign, ""));
    format!("{null} {sign}")
}

fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(truth) => *truth,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    }
}

fn contexts() -> impl Strategy<Value = Value> {
    let values =
        [json!(null), json!(0), json!(1), json!(""), json!("x"), json!(false), json!({"b": 1}), json!({"b": null})];
    let value = || proptest::option::of(proptest::sample::select(values.to_vec()));
    (value(), value(), proptest::option::of(value())).prop_map(|(a, none, list)| {
        let mut context = json!({"no": false});
        for (name, value) in [("a", a), ("none", none)] {
            if let Some(value) = value {
                context[name] = value;
            }
        }
        if let Some(x) = list {
            context["list"] = x.map_or_else(|| json!([]), |x| json!([{"x": x}]));
        }
        json!({"context": context})
    })
}

proptest! {
    #[test]
    fn what_is_asked_with_a_method_means_what_it_means_in_our_words(
        labels in proptest::collection::vec("[ab]", 0..3),
        text in "[ab]{1,3}",
        word in "[ab]",
        (one, other, join) in (0..6_usize, 0..6_usize, 0..2_usize),
    ) {
        let texts = json!({"a": text, "b": "b"});
        let context = json!({"context": {"labels": labels, "text": text, "word": word, "texts": texts}});
        let (theirs, ours) = [("||", "or"), ("&&", "and")][join];
        let (one, other) = (QUESTIONS[one], QUESTIONS[other]);
        let (theirs, ours) = (format!("{} {theirs} {}", one.0, other.0), format!("{} {ours} {}", one.1, other.1));
        let value = |text: &str| Pattern::parse(&json!(format!("${{{text}}}"))).unwrap().fill(&context).unwrap();
        prop_assert_eq!(value(&theirs), value(&ours), "{}", theirs);
        let truth = |text: &str| predicate(text).unwrap().value_within(&context, &mut Allowance::default()).unwrap();
        prop_assert_eq!(truth(&theirs), truth(&ours), "{}", theirs);
    }

    #[test]
    fn a_guard_means_what_it_means_there(guard in guards(), context in contexts()) {
        // A name alone guards nothing.
        let guard = if matches!(guard, Guard::Path(_)) { Guard::Not(Box::new(guard)) } else { guard };
        let text = guard.text();
        let value = predicate(&text).unwrap().value(&context);
        match guard.holds(&context) {
            Some(holds) => prop_assert_eq!(value.as_ref().map(is_true), Ok(holds), "{}: {:?}", text, value),
            // Nothing may be guessed.
            None => prop_assert!(value.as_ref().is_err_and(|fault| fault.is_undefined()), "{}: {:?}", text, value),
        }
    }
}

/// Each of these was written by somebody.
#[test]
fn guards_are_answered() {
    let context = json!({"context": {"b": {}}, "event": {"data": {}}, "steps": {"m": {}}, "task": {"labels": ["x"]}});
    let holds = |text: &str| predicate(text).expect(text).value(&context);
    for (text, value) in [
        ("context.a && context.a.b === 1", false),
        ("context.labels && context.labels.includes('x')", false),
        ("task.labels && task.labels.includes('x')", true),
        ("context.x === undefined", true),
        ("context.b.x.y !== undefined", false),
        ("event.data.result == null", true),
        ("event.data.result != null && event.data.result.ok", false),
        ("steps.m.x || steps.m.y", false),
        ("!context.a || context.a.b === 1", true),
        ("context.stepResults.get('no').data.x == null", true),
        ("(context.a || {}).b === undefined", true),
        ("context.list[0] && context.list[0].name", false),
    ] {
        assert_eq!(holds(text), Ok(json!(value)), "{text}");
    }
    for text in [
        "context.a and context.b",
        "context.a or true",
        "context.a == none",
        "not context.a",
        "context.a",
        "(context.a)",
    ] {
        assert!(holds(text).expect_err(text).is_undefined(), "{text}");
    }
    let both = |text: &str| Pattern::parse(&json!(text)).expect(text).fill(&context);
    assert_eq!(both("${context.a && 'x'}"), Ok(json!(false)));
    assert_eq!(both("${task.labels && 'x'}"), Ok(json!("x")));
    assert_eq!(both("${task.labels[0] || context.no.such}"), Ok(json!("x")));
    assert!(both("${context.a || context.no}").is_err());
}

/// What stands in brackets, or behind a space, means what it means without.
#[test]
fn brackets_and_spaces_change_nothing() {
    let context = json!({"context": {"a": false, "b": true, "one": 1, "two": 2, "s": "abc", "list": ["x"]}});
    let value = |text: &str| Pattern::parse(&json!(format!("${{{text}}}"))).unwrap().fill(&context).unwrap();
    for (text, expected) in [
        ("! (context.a || context.b)", json!(false)),
        ("!\n(context.a || context.b)", json!(false)),
        ("(context.one === 2) || (context.two === 2)", json!(true)),
        ("((context.one > 1)) || ((context.two > 1))", json!(true)),
        ("(context.b && 'x') || 'y'", json!("x")),
        ("(context.a && 'x') || 'y'", json!("y")),
        ("(!context.b) || (context.b)", json!(true)),
        ("context.a || (context.list.includes('x'))", json!(true)),
        ("((context.one === 2) || (context.two === 2)) === true", json!(true)),
        // A default that is not needed is not looked at.
        ("context.s || context.nope.toLowerCase()", json!("abc")),
        ("context.s || context.nope + 'x'", json!("abc")),
        ("context.nope.deep || context.s + 'x'", json!("abcx")),
        ("context.a || context.s + 'x'", json!(false)),
    ] {
        assert_eq!(value(text), expected, "{text}");
    }
}
