//! What the language has: filters, tests, one function. A chosen part of minijinja's, so that no expression, whoever
//! wrote it, makes much out of little: filters whose result can be longer than what they were given are bounded here,
//! and those that nobody needs are absent.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::LazyLock;

use minijinja::value::Kwargs;
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior, Value, filters, tests};

use super::bounds::{OUTPUT, RANGE, STEPS};

/// Loops within each other.
const NESTING: usize = 32;

/// Names what it adds as well, so that the list cannot disagree with the language.
macro_rules! known {
    ($names:ident, $add:ident, $method:ident: $($name:literal => $function:expr),* $(,)?) => {
        pub const $names: &[&str] = &[$($name),*];

        fn $add(environment: &mut Environment<'_>) {
            $(environment.$method($name, $function);)*
        }
    };
}

known! { FILTERS, add_filters, add_filter:
    "abs" => filters::abs,
    "bool" => filters::bool,
    "capitalize" => filters::capitalize,
    "count" => filters::length,
    "d" => filters::default,
    "default" => filters::default,
    "dictsort" => filters::dictsort,
    "first" => filters::first,
    "float" => filters::float,
    "indent" => indent,
    "int" => filters::int,
    "items" => filters::items,
    "join" => join,
    "last" => filters::last,
    "length" => filters::length,
    "lines" => filters::lines,
    "list" => filters::list,
    "lower" => filters::lower,
    "map" => filters::map,
    "max" => filters::max,
    "min" => filters::min,
    "otherwise" => otherwise,
    "reject" => filters::reject,
    "rejectattr" => filters::rejectattr,
    "replace" => replace,
    "reverse" => filters::reverse,
    "round" => filters::round,
    "select" => filters::select,
    "selectattr" => filters::selectattr,
    "sort" => filters::sort,
    "split" => filters::split,
    "string" => string,
    "title" => filters::title,
    "tojson" => tojson,
    "trim" => filters::trim,
    "unique" => filters::unique,
    "upper" => filters::upper,
}

known! { TESTS, add_tests, add_test:
    "boolean" => tests::is_boolean,
    "defined" => tests::is_defined,
    "divisibleby" => is_divisible_by,
    "endingwith" => tests::is_endingwith,
    "eq" => tests::is_eq,
    "equalto" => tests::is_eq,
    "even" => tests::is_even,
    "false" => tests::is_false,
    "float" => tests::is_float,
    "ge" => tests::is_ge,
    "gt" => tests::is_gt,
    "in" => tests::is_in,
    "integer" => tests::is_integer,
    "iterable" => tests::is_iterable,
    "le" => tests::is_le,
    "lower" => tests::is_lower,
    "lt" => tests::is_lt,
    "mapping" => tests::is_mapping,
    "ne" => tests::is_ne,
    "none" => tests::is_none,
    "number" => tests::is_number,
    "odd" => tests::is_odd,
    "sequence" => tests::is_sequence,
    "startingwith" => tests::is_startingwith,
    "string" => tests::is_string,
    "true" => tests::is_true,
    "undefined" => tests::is_undefined,
    "upper" => tests::is_upper,
}

known! { FUNCTIONS, add_functions, add_function:
    "range" => range,
}

/// Filters that `map` may apply by name: none of them makes its text longer.
pub const MAPPED: &[&str] =
    &["abs", "bool", "capitalize", "first", "float", "int", "last", "length", "lower", "title", "trim", "upper"];

/// What a loop knows about itself.
pub const LOOP: &[&str] =
    &["index", "index0", "revindex", "revindex0", "first", "last", "length", "depth", "depth0", "cycle", "changed"];

/// The one environment of all conditions; templates have copies of it.
pub static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = Environment::empty();
    add_filters(&mut environment);
    add_tests(&mut environment);
    add_functions(&mut environment);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(STEPS));
    environment.set_recursion_limit(NESTING);
    environment.set_debug(false);
    environment
});

fn invalid(message: impl Into<Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message)
}

fn bounded(length: usize) -> Result<(), Error> {
    match length > OUTPUT {
        true => Err(invalid(format!("the result of a filter is longer than {OUTPUT} bytes"))),
        false => Ok(()),
    }
}

/// Another value for what is missing, null or an empty text. 0 and false are values.
fn otherwise(value: &Value, other: &Value) -> Value {
    let is_nothing = value.is_undefined() || value.is_none() || value.as_str() == Some("");
    if is_nothing { other.clone() } else { value.clone() }
}

fn join(list: &Value, separator: Option<Cow<'_, str>>) -> Result<String, Error> {
    let separator = separator.unwrap_or_default();
    let mut joined = String::new();
    for (index, item) in list.try_iter()?.enumerate() {
        if item.is_undefined() {
            return Err(Error::from(ErrorKind::UndefinedError));
        }
        if index > 0 {
            joined.push_str(&separator);
        }
        write!(joined, "{item}").map_err(|_| invalid("an element has no text"))?;
        bounded(joined.len())?;
    }
    Ok(joined)
}

#[expect(clippy::needless_pass_by_value, reason = "arguments of filters are taken by value")]
fn replace(text: Cow<'_, str>, from: Cow<'_, str>, to: Cow<'_, str>) -> Result<String, Error> {
    let found = text.matches(&*from).count();
    bounded(text.len().saturating_add(found.saturating_mul(to.len())))?;
    Ok(text.replace(&*from, &to))
}

#[expect(clippy::needless_pass_by_value, reason = "arguments of filters are taken by value")]
fn indent(text: Cow<'_, str>, width: Option<usize>) -> Result<String, Error> {
    let width = width.unwrap_or(4);
    let lines = text.matches('\n').count();
    bounded(text.len().saturating_add(lines.saturating_mul(width)))?;
    let margin = " ".repeat(width.min(OUTPUT));
    let indented =
        |line: &str| if line.is_empty() || line == "\r" { line.to_owned() } else { format!("{margin}{line}") };
    let mut lines = text.split('\n');
    let first = lines.next().unwrap_or_default();
    Ok(lines.fold(first.to_owned(), |whole, line| whole + "\n" + &indented(line)))
}

fn string(value: &Value) -> Result<String, Error> {
    if value.is_undefined() {
        return Err(Error::from(ErrorKind::UndefinedError));
    }
    let text = value.to_string();
    bounded(text.len())?;
    Ok(text)
}

fn tojson(value: &Value) -> Result<Value, Error> {
    let none: [(String, Value); 0] = [];
    let json = filters::tojson(value, None, Kwargs::from_iter(none))?;
    bounded(json.as_str().map_or(0, str::len))?;
    Ok(json)
}

/// Nothing is divisible by 0; minijinja's own test panics there.
fn is_divisible_by(number: i64, by: i64) -> bool {
    number.checked_rem(by) == Some(0)
}

/// `range(end)` or `range(start, end)`: whole numbers, the end not included.
fn range(first: i64, second: Option<i64>) -> Result<Value, Error> {
    let (start, end) = second.map_or((0, first), |end| (first, end));
    match end.checked_sub(start).map(usize::try_from) {
        Some(Ok(length)) if length <= RANGE => Ok((start..end).collect()),
        Some(Err(_)) => Ok(Value::from_iter::<[i64; 0]>([])),
        _ => Err(invalid(format!("a range has at most {RANGE} elements"))),
    }
}
