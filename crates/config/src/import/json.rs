//! Parser for JSON as agents' settings use it: with comments and trailing commas, every value with its place.
//!
//! Invariant: a duplicate key is an error, because programs disagree on which one counts.

use jsonc_parser::ast::{ObjectProp, Value as Json};
use jsonc_parser::common::{Range, Ranged};
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use crate::{ConfigNode, ConfigProblem, NodeValue, quote_text};

/// The maximum nesting of lists and objects.
const MAX_DEPTH: usize = 64;

/// Parses a file into a tree.
pub fn parse_json(text: &str) -> Result<ConfigNode, ConfigProblem> {
    let options = ParseOptions { allow_missing_commas: false, ..ParseOptions::default() };
    let parsed = parse_to_ast(text, &CollectOptions::default(), &options).map_err(|error| {
        let (Range { start, end }, mut cause) = (error.range(), error.kind().to_string());
        cause[..1].make_ascii_lowercase();
        let first_line = text.get(start..end).and_then(|marked| marked.lines().next()).unwrap_or_default();
        ConfigProblem::new(format!("cannot read JSON: {cause}"))
            .with_suggestion("comments, and commas before a closing bracket, are fine".to_owned())
            .with_range(start..start + first_line.len())
    })?;
    let Some(value) = parsed.value else {
        return Err(ConfigProblem::new("there is nothing in this file")
            .with_suggestion("expected a JSON object: `{…}`".to_owned()));
    };
    build_node(value, text, 0)
}

fn build_node(json: Json<'_>, text: &str, depth: usize) -> Result<ConfigNode, ConfigProblem> {
    let at = json.start()..json.end();
    if depth > MAX_DEPTH {
        return Err(
            ConfigProblem::new(format!("nested too deeply: at most {MAX_DEPTH} levels are allowed")).with_range(at)
        );
    }
    let value = match json {
        Json::NullKeyword(_) => NodeValue::Null,
        Json::BooleanLit(literal) => NodeValue::Bool(literal.value),
        Json::StringLit(literal) => NodeValue::Text(literal.value.into_owned()),
        Json::NumberLit(literal) => {
            let number: serde_json::Number = serde_json::from_str(literal.value).map_err(|_| {
                ConfigProblem::new(format!("{} is not a number", quote_text(literal.value))).with_range(at.clone())
            })?;
            match (number.as_i64(), number.as_u64(), number.as_f64()) {
                (Some(number), ..) => NodeValue::Integer(number),
                (_, Some(number), _) => NodeValue::Unsigned(number),
                (.., number) => NodeValue::Float(number.unwrap_or(f64::INFINITY)),
            }
        }
        Json::Array(list) => NodeValue::List(
            list.elements.into_iter().map(|value| build_node(value, text, depth + 1)).collect::<Result<_, _>>()?,
        ),
        Json::Object(object) => {
            let mut entries: Vec<(ConfigNode, ConfigNode)> = Vec::new();
            for ObjectProp { name, value, .. } in object.properties {
                let (at, name) = (name.start()..name.end(), name.into_string());
                let same = |(other, _): &&(ConfigNode, ConfigNode)| matches!(&other.value, NodeValue::Text(other) if *other == name);
                if let Some((first, _)) = entries.iter().find(same) {
                    let line = text[..first.at.start].matches('\n').count() + 1;
                    return Err(ConfigProblem::new(format!("the key {} is given twice", quote_text(&name)))
                        .with_suggestion(format!("the first one is on line {line}; keep one of them"))
                        .with_range(at));
                }
                entries.push((ConfigNode { at, value: NodeValue::Text(name) }, build_node(value, text, depth + 1)?));
            }
            NodeValue::Map(entries)
        }
    };
    Ok(ConfigNode { at, value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_trailing_commas_are_skipped() {
        let check = |text: &str, plain: &str| {
            assert_eq!(parse_json(text).expect("it is JSON"), crate::tree(plain).expect("it is YAML"), "{text}");
        };
        check(r#" {"a": [1, -2.5, "x"], "b": null} "#, "{a: [1, -2.5, x], b: null}");
        check("// first\n{ /* a */ \"a\" /* b */ : /**/ true, // end\n}", "a: true");
        check("[1, 2,]", "[1, 2]");
        check(r#"["http://x/*y*/", "a\"//b", "\\", "\u00e9\ud83d\ude00"]"#, r#"['http://x/*y*/', 'a"//b', '\', é😀]"#);
        check("18446744073709551615", "18446744073709551615");
    }

    #[test]
    fn problem_has_its_place() {
        let check = |text: &str, message: &str, marked: &str| {
            let problem = parse_json(text).expect_err("it is no JSON");
            let at = problem.at.clone().unwrap_or_default();
            assert_eq!((problem.message.as_str(), &text[at]), (message, marked), "{text}");
        };
        check(" // nothing", "there is nothing in this file", "");
        check("{\n\"a\": 1", "cannot read JSON: unterminated object", "{");
        check(r#"{"a": 1 "b": 2}"#, "cannot read JSON: expected comma", "");
        check(r#"{"a": 1, "\u0061": 2}"#, "the key `a` is given twice", r#""\u0061""#);
        check("[0x1]", "`0x1` is not a number", "0x1");
        assert!(parse_json(r#"["\ud83d"]"#).is_err());
        let deep = "[".repeat(100) + &"]".repeat(100);
        assert_eq!(
            parse_json(&deep).expect_err("it is deep").message,
            "nested too deeply: at most 64 levels are allowed"
        );
        assert!(parse_json(&"[".repeat(100_000)).is_err());
    }
}
