//! The cost limit of one evaluation. Counting steps is not enough: one filter may read a list of ten thousand elements, and one
//! sum may copy megabytes.
//!
//! Every operation on values is charged before it runs, by the size of its operands. Filters and tests declare their cost
//! (`FunctionCost`). Operators are charged by marks that are added to the text when it is read (`metering`). Lazy lists are
//! materialized when they are charged, so that every read is counted.
//!
//! Not here: how often an operator reads an operand (`metering`), how large a text or a result may be (`bounds`).

use std::cell::Cell;

use minijinja::value::{Rest, ValueKind, ValueOrKwargs};
use minijinja::{Error, ErrorKind, State, Value};

/// The maximum cost of one evaluation: about as many bytes read, which takes a tenth of a second at most.
pub const MAX_EVALUATION_WORK: u64 = 8_000_000;
/// The cost of one element of a list or a map, besides its content.
const ITEM_COST: u64 = 16;
/// How many copied bytes cost as much as one byte that is read.
const COPIED_BYTES_PER_UNIT: u64 = 4;

pub const TOO_MUCH_WORK: &str = "it takes too much work: its inputs or results are too large";

thread_local! {
    /// The budget left for the evaluation in progress on this thread.
    static LEFT: Cell<u64> = const { Cell::new(0) };
}

/// Evaluates something within a budget, and stores the rest in `left`.
pub fn evaluate_within<T>(left: &mut u64, evaluate: impl FnOnce() -> T) -> T {
    let around = LEFT.replace(*left);
    let value = evaluate();
    *left = LEFT.replace(around);
    value
}

pub fn charge_work(cost: u64) -> Result<(), Error> {
    let left = LEFT.get().checked_sub(cost);
    LEFT.set(left.unwrap_or(0));
    left.map(drop).ok_or_else(too_much_work_error)
}

/// Charges for a value that is copied from the context.
pub fn charge_copied_bytes(bytes: usize) -> Result<(), Error> {
    charge_work(ITEM_COST + bytes as u64 / COPIED_BYTES_PER_UNIT)
}

fn too_much_work_error() -> Error {
    Error::new(ErrorKind::InvalidOperation, TOO_MUCH_WORK)
}

/// How the cost of a filter or a test depends on its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FunctionCost {
    /// Almost nothing, for all arguments.
    Free,
    /// One pass over its arguments.
    Once,
    /// One operation per element, each of which reads the other arguments.
    Each,
    /// Comparisons of elements with each other, as in a sort.
    Sorted,
}

impl FunctionCost {
    /// Materializes the arguments of a call and charges for it.
    fn charge_function_call(self, mut values: Vec<Value>) -> Result<Vec<Value>, Error> {
        if self == Self::Free {
            return charge_work(1).map(|()| values);
        }
        for value in &mut values {
            materialize_list(value)?;
        }
        let Some((list, others)) = values.split_first() else { return charge_work(1).map(|()| values) };
        let others = others.iter().map(weigh_value).sum::<Result<u64, _>>()?;
        let elements = element_count(list);
        charge_work(match self {
            Self::Free => 1,
            Self::Once => weigh_value(list)?.saturating_add(others),
            Self::Each => elements.saturating_mul(ITEM_COST + others),
            Self::Sorted => {
                let rounds = 1 + u64::from(u64::BITS - elements.leading_zeros());
                weigh_value(list)?.saturating_mul(rounds).saturating_add(elements.saturating_mul(others))
            }
        })?;
        Ok(values)
    }
}

/// Wraps a filter or a test so that each call is charged, result included.
pub fn metered_function(
    cost: FunctionCost,
    inner: Value,
) -> impl Fn(&mut State<'_, '_>, Rest<ValueOrKwargs>) -> Result<Value, Error> {
    move |state, values| {
        let values = cost.charge_function_call(values.into_values())?;
        let made = inner.call(state, &values)?;
        if cost != FunctionCost::Free {
            charge_created_value(&made)?;
        }
        Ok(made)
    }
}

/// Charges for a new value.
pub fn charge_created_value(value: &Value) -> Result<(), Error> {
    charge_work(weigh_value(value)?)
}

/// Charges for an operand that `times` operators read.
pub fn charge_operand(mut value: Value, times: u64) -> Result<Value, Error> {
    materialize_list(&mut value)?;
    charge_work(weigh_value(&value)?.saturating_mul(times))?;
    Ok(value)
}

/// Charges for a value that is iterated or indexed.
pub fn charge_lookup(mut value: Value) -> Result<Value, Error> {
    materialize_list(&mut value)?;
    charge_work(value.as_str().map_or(1, |text| text.len() as u64))?;
    Ok(value)
}

/// Refuses a text in an order comparison with a number, even if the text looks like a number.
pub fn reject_text(value: Value) -> Result<Value, Error> {
    if value.kind() == ValueKind::String {
        let message = "a text is compared with a number; write `… | int` or `… | float`";
        return Err(Error::new(ErrorKind::InvalidOperation, message));
    }
    charge_work(1).map(|()| value)
}

/// Refuses a number in an order comparison with a text.
pub fn reject_number(value: Value) -> Result<Value, Error> {
    if value.kind() == ValueKind::Number {
        let message = "a number is compared with a text; write the number without quotes, or `… | string`";
        return Err(Error::new(ErrorKind::InvalidOperation, message));
    }
    charge_work(1).map(|()| value)
}

/// Returns the field or element of a value, or undefined if there is none.
pub fn lookup_field(value: &Value, name: &Value) -> Result<Value, Error> {
    charge_work(value.as_str().map_or(1, |text| 1 + text.len() as u64))?;
    Ok(if value.is_undefined() { Value::UNDEFINED } else { value.get_item(name).unwrap_or(Value::UNDEFINED) })
}

/// Replaces a lazy list, which is evaluated at each use, by a real list.
fn materialize_list(value: &mut Value) -> Result<(), Error> {
    if value.kind() != ValueKind::Iterable {
        return Ok(());
    }
    let mut list = Vec::new();
    for item in value.try_iter()? {
        charge_work(ITEM_COST)?;
        list.push(item);
    }
    *value = Value::from(list);
    Ok(())
}

fn element_count(value: &Value) -> u64 {
    match value.kind() {
        ValueKind::Seq | ValueKind::Map => value.len().unwrap_or(1) as u64,
        _ => 1,
    }
}

/// Returns the cost of reading a value. The walk stops when it exceeds the remaining budget.
fn weigh_value(value: &Value) -> Result<u64, Error> {
    let mut left = LEFT.get();
    subtract_weight(value, &mut left).map(|()| LEFT.get() - left).ok_or_else(|| {
        LEFT.set(0);
        too_much_work_error()
    })
}

fn subtract_weight(value: &Value, left: &mut u64) -> Option<()> {
    let mut take = |cost: u64| left.checked_sub(cost).map(|rest| *left = rest);
    match value.kind() {
        ValueKind::String => take(1 + value.as_str().map_or(0, str::len) as u64),
        ValueKind::Seq | ValueKind::Iterable => {
            for item in value.try_iter().ok().into_iter().flatten() {
                left.checked_sub(ITEM_COST).map(|rest| *left = rest)?;
                subtract_weight(&item, left)?;
            }
            Some(())
        }
        ValueKind::Map => {
            for key in value.try_iter().ok().into_iter().flatten() {
                left.checked_sub(ITEM_COST).map(|rest| *left = rest)?;
                subtract_weight(&key, left)?;
                subtract_weight(&value.get_item(&key).unwrap_or(Value::UNDEFINED), left)?;
            }
            Some(())
        }
        _ => take(1),
    }
}
