//! The language: its filters, tests and one function, a subset of minijinja's. Filters whose result can be longer than their
//! input are bounded here, so that no expression produces much from little, even if its author is hostile. Filters that
//! conditions do not need are absent. Each entry declares its cost, which `cost` charges.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::LazyLock;

use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State, UndefinedBehavior, Value, filters, tests};

use crate::bounds::{MAX_EVALUATION_STEPS, MAX_OUTPUT_BYTES, MAX_RANGE_ELEMENTS};
use crate::cost::{self, FunctionCost, metered_function};

/// The maximum nesting of loops.
const MAX_LOOP_NESTING: usize = 32;

const FREE: FunctionCost = FunctionCost::Free;
const ONCE: FunctionCost = FunctionCost::Once;
const EACH: FunctionCost = FunctionCost::Each;
const SORTED: FunctionCost = FunctionCost::Sorted;

/// Defines a list of names and the function that registers them, so that both agree.
macro_rules! known {
    ($names:ident, $add:ident, $method:ident: $($name:literal $cost:ident => $function:expr),* $(,)?) => {
        pub const $names: &[&str] = &[$($name),*];

        fn $add(environment: &mut Environment<'_>) {
            $(environment.$method($name, metered_function($cost, Value::from_function($function)));)*
        }
    };
}

known! { FILTERS, add_filters, add_filter:
    "abs" FREE => filters::abs,
    "bool" FREE => filters::bool,
    "capitalize" ONCE => filters::capitalize,
    "count" ONCE => filters::length,
    "d" FREE => filters::default,
    "default" FREE => filters::default,
    "dictsort" SORTED => filters::dictsort,
    "first" ONCE => filters::first,
    "float" ONCE => filters::float,
    "indent" ONCE => indent_lines,
    "int" ONCE => filters::int,
    "items" ONCE => filters::items,
    "join" ONCE => join_bounded,
    "last" ONCE => filters::last,
    "length" ONCE => filters::length,
    "lines" ONCE => filters::lines,
    "list" ONCE => filters::list,
    "lower" ONCE => filters::lower,
    "map" EACH => filters::map,
    "max" ONCE => filters::max,
    "min" ONCE => filters::min,
    "reject" EACH => filters::reject,
    "rejectattr" EACH => filters::rejectattr,
    "replace" ONCE => replace_bounded,
    "reverse" ONCE => filters::reverse,
    "round" FREE => filters::round,
    "select" EACH => filters::select,
    "selectattr" EACH => filters::selectattr,
    "sort" SORTED => filters::sort,
    "split" ONCE => filters::split,
    "string" ONCE => value_to_string,
    "title" ONCE => filters::title,
    "tojson" ONCE => value_to_json,
    "trim" ONCE => filters::trim,
    "unique" SORTED => filters::unique,
    "upper" ONCE => filters::upper,
}

known! { TESTS, add_tests, add_test:
    "boolean" FREE => tests::is_boolean,
    "containing" ONCE => is_containing,
    "defined" FREE => tests::is_defined,
    "divisibleby" FREE => is_divisible_by,
    "endingwith" ONCE => tests::is_endingwith,
    "eq" ONCE => tests::is_eq,
    "equalto" ONCE => tests::is_eq,
    "even" FREE => tests::is_even,
    "false" FREE => tests::is_false,
    "float" FREE => tests::is_float,
    "ge" ONCE => tests::is_ge,
    "gt" ONCE => tests::is_gt,
    "in" ONCE => tests::is_in,
    "integer" FREE => tests::is_integer,
    "iterable" FREE => tests::is_iterable,
    "le" ONCE => tests::is_le,
    "lower" ONCE => tests::is_lower,
    "lt" ONCE => tests::is_lt,
    "mapping" FREE => tests::is_mapping,
    "ne" ONCE => tests::is_ne,
    "none" FREE => tests::is_none,
    "number" FREE => tests::is_number,
    "odd" FREE => tests::is_odd,
    "sequence" FREE => tests::is_sequence,
    "startingwith" ONCE => tests::is_startingwith,
    "string" FREE => tests::is_string,
    "true" FREE => tests::is_true,
    "undefined" FREE => tests::is_undefined,
    "upper" ONCE => tests::is_upper,
}

known! { FUNCTIONS, add_functions, add_function:
    "range" FREE => integer_range,
}

/// Filters that `map` may apply by name: none of them lengthens its text.
pub const MAPPABLE_FILTERS: &[&str] =
    &["abs", "bool", "capitalize", "first", "float", "int", "last", "length", "lower", "title", "trim", "upper"];

/// Fields of the `loop` variable.
pub const LOOP_FIELDS: &[&str] =
    &["index", "index0", "revindex", "revindex0", "first", "last", "length", "depth", "depth0"];

/// The environment of all conditions. Templates use copies of it.
pub static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = Environment::empty();
    add_filters(&mut environment);
    add_tests(&mut environment);
    add_functions(&mut environment);
    // Expressions cannot name these filters: the checker accepts only the lists above.
    environment.add_filter("_weighed", cost::charge_operand);
    environment.add_filter("_counted", cost::charge_lookup);
    environment.add_filter("_no_text", cost::reject_text);
    environment.add_filter("_no_number", cost::reject_number);
    environment.add_filter("_field", cost::lookup_field);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(MAX_EVALUATION_STEPS));
    environment.set_recursion_limit(MAX_LOOP_NESTING);
    environment.set_debug(false);
    environment
});

fn invalid_operation(message: impl Into<Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message)
}

fn check_output_length(length: usize) -> Result<(), Error> {
    match length > MAX_OUTPUT_BYTES {
        true => Err(invalid_operation(format!("the result of a filter is longer than {MAX_OUTPUT_BYTES} bytes"))),
        false => Ok(()),
    }
}

fn join_bounded(list: &Value, separator: Option<Cow<'_, str>>) -> Result<String, Error> {
    let separator = separator.unwrap_or_default();
    let mut joined = String::new();
    for (index, item) in list.try_iter()?.enumerate() {
        if item.is_undefined() {
            return Err(Error::from(ErrorKind::UndefinedError));
        }
        if index > 0 {
            joined.push_str(&separator);
        }
        write!(joined, "{item}").map_err(|_| invalid_operation("an element has no text"))?;
        check_output_length(joined.len())?;
    }
    Ok(joined)
}

#[expect(clippy::needless_pass_by_value, reason = "arguments of filters are taken by value")]
fn replace_bounded(text: Cow<'_, str>, from: Cow<'_, str>, to: Cow<'_, str>) -> Result<String, Error> {
    let found = text.matches(&*from).count();
    check_output_length(text.len().saturating_add(found.saturating_mul(to.len())))?;
    Ok(text.replace(&*from, &to))
}

#[expect(clippy::needless_pass_by_value, reason = "arguments of filters are taken by value")]
fn indent_lines(text: Cow<'_, str>, width: Option<usize>) -> Result<String, Error> {
    let width = width.unwrap_or(4);
    let lines = text.matches('\n').count();
    check_output_length(text.len().saturating_add(lines.saturating_mul(width)))?;
    let margin = " ".repeat(width.min(MAX_OUTPUT_BYTES));
    let indented =
        |line: &str| if line.is_empty() || line == "\r" { line.to_owned() } else { format!("{margin}{line}") };
    let mut lines = text.split('\n');
    let first = lines.next().unwrap_or_default();
    Ok(lines.fold(first.to_owned(), |whole, line| whole + "\n" + &indented(line)))
}

fn value_to_string(value: &Value) -> Result<String, Error> {
    if value.is_undefined() {
        return Err(Error::from(ErrorKind::UndefinedError));
    }
    let text = value.to_string();
    check_output_length(text.len())?;
    Ok(text)
}

fn value_to_json(value: &Value) -> Result<Value, Error> {
    let none: [(String, Value); 0] = [];
    let json = filters::tojson(value, None, Kwargs::from_iter(none))?;
    check_output_length(json.as_str().map_or(0, str::len))?;
    Ok(json)
}

fn is_containing(state: &State<'_, '_>, whole: &Value, part: &Value) -> Result<bool, Error> {
    match whole.kind() {
        ValueKind::String | ValueKind::Seq | ValueKind::Map => tests::is_in(state, part, whole),
        kind => Err(invalid_operation(format!("a {kind} contains nothing: it is not a text, list or map"))),
    }
}

/// Returns `false` for a divisor of 0, where minijinja's own test panics.
fn is_divisible_by(number: i64, by: i64) -> bool {
    number.checked_rem(by) == Some(0)
}

/// Implements `range(end)` and `range(start, end)`: whole numbers, the end not included.
fn integer_range(first: i64, second: Option<i64>) -> Result<Value, Error> {
    let (start, end) = second.map_or((0, first), |end| (first, end));
    match end.checked_sub(start).map(usize::try_from) {
        Some(Ok(length)) if length <= MAX_RANGE_ELEMENTS => {
            let list: Value = (start..end).collect();
            cost::charge_created_value(&list)?;
            Ok(list)
        }
        Some(Err(_)) => Ok(Value::from_iter::<[i64; 0]>([])),
        _ => Err(invalid_operation(format!("a range has at most {MAX_RANGE_ELEMENTS} elements"))),
    }
}
