//! What people write who come from other languages, and what to write here: methods and functions, with what they are
//! called on and given filled in. No guess is better than a wrong one.

use super::error::cut;
use super::language::{FILTERS, FUNCTIONS, MAPPED, TESTS};
use crate::naming::nearest;

/// What to write for a pattern.
pub const PATTERNS: &str = "write `… is startingwith('…')`, `… is endingwith('…')` or `'…' in …`";
/// What to write for a clock.
pub const TIME: &str = "`event.timestamp` is when the event happened";

/// Letters of a value or of an argument that are shown.
const SHOWN: usize = 60;

/// What to write for a method that is called on a value, or for a function of an object of JavaScript.
pub fn method(value: &str, name: &str, given: &str) -> String {
    let given = arguments(given);
    if let Some(instead) = of_object(value, name, &given) {
        return instead;
    }
    let value = operand(value);
    let like = like_ours(&value, name, &given).or_else(|| filter(&value, &plain(name), &given));
    like.unwrap_or_else(listed)
}

/// What to write for a function.
pub fn function(name: &str, given: &str) -> String {
    let given = arguments(given);
    let (value, others) = given.split_first().map_or(("…", &[][..]), |(value, others)| (*value, others));
    let value = operand(value);
    match name {
        "Number" => return format!("write `{value} | int` or `{value} | float`"),
        "Date" => return TIME.to_owned(),
        _ => {}
    }
    let known = match plain(name).as_str() {
        "parseint" => Some("int"),
        "parsefloat" => Some("float"),
        "str" | "tostring" => Some("string"),
        "boolean" => Some("bool"),
        "len" | "size" => Some("length"),
        "array" => Some("list"),
        _ => None,
    };
    let made = match (known, plain(name).as_str()) {
        (Some(filter), _) => Some(write(format!("{value} | {filter}"))),
        (_, "max" | "min") => Some(write(extreme(&plain(name), &given))),
        (_, "isnan") => Some(write(format!("{value} is not number"))),
        (_, "isarray") => Some(write(format!("{value} is sequence"))),
        (_, test) if TESTS.contains(&test) && !FILTERS.contains(&test) => {
            Some(write(format!("{value} is {test}{}", in_brackets(others))))
        }
        (_, filtered) => {
            like_ours(&value, name, others).filter(|_| !others.is_empty()).or_else(|| filter(&value, filtered, others))
        }
    };
    made.unwrap_or_else(|| match nearest(name, FUNCTIONS) {
        Some(near) => format!("did you mean `{near}`?"),
        None => {
            "the only function is `range`; what else can be done is a filter, as in `task.labels | length`".to_owned()
        }
    })
}

pub fn is_function(name: &str) -> bool {
    FUNCTIONS.contains(&name)
}

/// Functions that JavaScript keeps in objects.
fn of_object(object: &str, name: &str, given: &[&str]) -> Option<String> {
    let value = given.first().map_or_else(|| "…".to_owned(), |value| operand(value));
    Some(write(match (object, name) {
        ("JSON", "parse") => return Some("what a program prints as JSON is read already, by its `storeAs`".to_owned()),
        ("JSON", "stringify") => format!("{value} | tojson"),
        ("Object", "keys") | ("Array", "from") => format!("{value} | list"),
        ("Object", "entries") => format!("{value} | items"),
        ("Object", "values") => format!("{value} | items | map(attribute=1)"),
        ("Array", "isArray") => format!("{value} is sequence"),
        ("Math", "max" | "min") => extreme(name, given),
        ("Math", "abs" | "round") => format!("{value} | {name}"),
        ("Math", "trunc") => format!("{value} | int"),
        ("Math", "floor") => format!("{value} // 1"),
        ("Number", "isInteger") => format!("{value} is integer"),
        ("Number", "isNaN") => format!("{value} is not number"),
        ("Number", "parseInt") => format!("{value} | int"),
        ("Number", "parseFloat") => format!("{value} | float"),
        ("Date", _) => return Some(TIME.to_owned()),
        ("console", _) => return Some("leave it out: an expression prints nothing".to_owned()),
        ("JSON" | "Object" | "Array" | "Math" | "Number" | "String", _) => return Some(listed()),
        _ => return None,
    }))
}

/// The largest or smallest of what is given.
fn extreme(name: &str, given: &[&str]) -> String {
    match given {
        [list] => format!("{} | {name}", operand(list.trim_start_matches('.'))),
        given => format!("[{}] | {name}", given.iter().map(|given| shown(given)).collect::<Vec<_>>().join(", ")),
    }
}

/// Methods that have another name here, or are no filters.
fn like_ours(value: &str, name: &str, given: &[&str]) -> Option<String> {
    let first = given.first().map_or_else(|| "'…'".to_owned(), |given| operand(given));
    let given: Vec<String> = given.iter().map(|given| shown(given)).collect();
    Some(write(match (plain(name).as_str(), given.as_slice()) {
        ("test" | "match" | "matches" | "matchall" | "search" | "exec", _) => return Some(PATTERNS.to_owned()),
        ("includes" | "contains" | "has" | "haskey" | "hasownproperty", _) => format!("{first} in {value}"),
        ("indexof" | "lastindexof", _) => {
            return Some(format!(
                "write `{first} in {value}`, or `{first} not in {value}` where it is compared with -1"
            ));
        }
        ("startswith" | "startingwith" | "beginswith", _) => format!("{value} is startingwith({first})"),
        ("endswith" | "endingwith", _) => format!("{value} is endingwith({first})"),
        ("tolowercase" | "tolocalelowercase" | "tolower" | "lowercase" | "downcase", _) => format!("{value} | lower"),
        ("touppercase" | "tolocaleuppercase" | "toupper" | "uppercase" | "upcase", _) => format!("{value} | upper"),
        ("tostring", _) => format!("{value} | string"),
        ("strip", []) => format!("{value} | trim"),
        ("splitlines", _) => format!("{value} | lines"),
        ("size" | "len", []) => format!("{value} | length"),
        ("tofixed", [digits]) => format!("{value} | round({digits})"),
        ("keys", []) => format!("{value} | list"),
        ("entries", []) => format!("{value} | items"),
        ("concat", [_]) => format!("{value} + {first}"),
        ("get" | "at" | "charat", [key, other, ..]) => format!("{value}[{key}] | default({other})"),
        ("get" | "at" | "charat", _) => format!("{value}[{first}]"),
        ("slice" | "substring", [from, to]) => format!("{value}[{from}:{to}]"),
        ("substr", [from, length]) if from == "0" => format!("{value}[0:{length}]"),
        ("substr", [from, length]) => format!("{value}[{from}:{from} + {length}]"),
        ("slice" | "substring" | "substr", [from]) => format!("{value}[{from}:]"),
        ("filter" | "find" | "some" | "every", _) => format!("{value} | select('in', ['a', 'b'])"),
        _ => return None,
    }))
}

/// A filter of this name, with what it is given.
fn filter(value: &str, name: &str, given: &[&str]) -> Option<String> {
    if !FILTERS.contains(&name) {
        return None;
    }
    let is_text = |text: &str| text.starts_with(['\'', '"']);
    let has_pattern = given.first().is_some_and(|given| given.starts_with('/'));
    Some(write(match (name, given) {
        ("replace", [_, _]) if !has_pattern => format!("{value} | replace{}", in_brackets(given)),
        ("replace", _) => format!("{value} | replace('from', 'to')"),
        ("split", _) if has_pattern => format!("{value} | split(',')"),
        ("split", ["''" | "\"\""]) => format!("{value} | list"),
        ("count" | "length", [_, ..]) => return Some(listed()),
        ("map", [given]) if MAPPED.contains(&given.trim_matches(['\'', '"'])) || given.starts_with("attribute=") => {
            format!("{value} | map({given})")
        }
        ("map", _) => format!("{value} | map('upper')"),
        ("select" | "reject", [first, ..]) if !is_text(first) => format!("{value} | {name}('in', ['a', 'b'])"),
        _ => format!("{value} | {name}{}", in_brackets(given)),
    }))
}

fn listed() -> String {
    format!("what can be done with a value is a filter: `{}`", FILTERS.join("`, `"))
}

fn write(instead: String) -> String {
    format!("write `{instead}`")
}

/// A name in whichever case.
fn plain(name: &str) -> String {
    name.chars().filter(|letter| *letter != '_').flat_map(char::to_lowercase).take(SHOWN).collect()
}

fn in_brackets(given: &[&str]) -> String {
    match given {
        [] => String::new(),
        given => format!("({})", given.iter().map(|given| shown(given)).collect::<Vec<_>>().join(", ")),
    }
}

/// A text that is not too long to be shown in a line.
fn shown(text: &str) -> String {
    if text.is_empty() || text.chars().nth(SHOWN).is_some() { "…".to_owned() } else { cut(text, SHOWN) }
}

/// Something that an operator or a filter may stand beside.
fn operand(text: &str) -> String {
    let text = text.trim();
    let is_one = outside(text).all(|(_, letter)| !letter.is_whitespace() && !"+-*/%<>=!&|~".contains(letter));
    if is_one { shown(text) } else { format!("({})", shown(text)) }
}

/// What stands between commas.
fn arguments(given: &str) -> Vec<&str> {
    if given.trim().is_empty() {
        return Vec::new();
    }
    let (mut parts, mut start) = (Vec::new(), 0);
    for (at, _) in outside(given).filter(|(_, letter)| *letter == ',') {
        parts.push(given[start..at].trim());
        start = at + 1;
    }
    parts.push(given[start..].trim());
    parts
}

/// The letters that are neither in quotes nor in brackets.
fn outside(text: &str) -> impl Iterator<Item = (usize, char)> + '_ {
    let (mut depth, mut quote, mut escaped) = (0_usize, None, false);
    text.char_indices().filter(move |(_, letter)| {
        match (quote, letter) {
            (Some(_), _) if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(open), letter) if open == *letter => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(*letter),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth = depth.saturating_sub(1),
            (None, _) => return depth == 0,
        }
        false
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_told_apart() {
        assert_eq!(arguments(" 'a,b' , [1, 2], f(x, y)"), ["'a,b'", "[1, 2]", "f(x, y)"]);
        assert_eq!(arguments("  "), [""; 0]);
        assert_eq!((operand("a['b c'].d"), operand("a or b")), ("a['b c'].d".to_owned(), "(a or b)".to_owned()));
    }

    #[test]
    fn no_guess_is_wrong() {
        for name in ["padStart", "toISOString", "forEach", "reduce", "repeat", "flat", "uper", "count"] {
            assert!(method("a", name, "1").starts_with("what can be done with a value is a filter: `abs`"), "{name}");
        }
        assert_eq!(method("a", "split", "''"), "write `a | list`");
        assert!(method("a", "indexOf", "'x'").contains("`'x' not in a` where it is compared with -1"));
        assert_eq!(function("min", "a.b"), "write `a.b | min`");
        assert_eq!(function("rang", "2"), "did you mean `range`?");
        assert!(function("fetch", "2").starts_with("the only function is `range`"));
        assert!(method(&"a".repeat(9_000), "trim", "").len() < 40);
    }
}
