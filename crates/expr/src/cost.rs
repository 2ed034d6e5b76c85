//! How much work one evaluation may be. Steps alone say little: one filter may go over a list of ten thousand, and one sum
//! may copy megabytes.
//!
//! Everything that is done with values is counted before it is done, by what it goes over: filters and tests as they say
//! themselves (`Cost`), operators by marks that are put into the text when it is read (`metering`). What is only worked out when
//! it is looked at is worked out there and then, so that nothing is gone over unseen.
//!
//! Not here: how often an operand is gone over (`metering`), how large a text or a result may be (`bounds`).

use std::cell::Cell;

use minijinja::value::{Rest, ValueKind, ValueOrKwargs};
use minijinja::{Error, ErrorKind, State, Value};

/// What one evaluation may cost: about so many bytes gone over, which takes a tenth of a second at most.
pub const WORK: u64 = 8_000_000;
/// What an element of a list or a map costs, beside what is in it.
const ITEM: u64 = 16;
/// Bytes that are copied for the price of one that is looked at.
const COPIED: u64 = 4;

pub const TOO_MUCH: &str = "it takes too much work: what it looks at or makes is too large";

thread_local! {
    /// What is left of the evaluation that is under way in this thread.
    static LEFT: Cell<u64> = const { Cell::new(0) };
}

/// Evaluates something with so much left for it.
pub fn within<T>(left: &mut u64, evaluate: impl FnOnce() -> T) -> T {
    let around = LEFT.replace(*left);
    let value = evaluate();
    *left = LEFT.replace(around);
    value
}

pub fn charge(cost: u64) -> Result<(), Error> {
    let left = LEFT.get().checked_sub(cost);
    LEFT.set(left.unwrap_or(0));
    left.map(drop).ok_or_else(too_much)
}

/// Charges for a value of the context that is brought along.
pub fn charge_copy(bytes: usize) -> Result<(), Error> {
    charge(ITEM + bytes as u64 / COPIED)
}

fn too_much() -> Error {
    Error::new(ErrorKind::InvalidOperation, TOO_MUCH)
}

/// What a filter or a test costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cost {
    /// Next to nothing, whatever it is given.
    Free,
    /// What it is given is gone over once.
    Once,
    /// Something is done with each element, for which the other arguments are read.
    Each,
    /// Elements are compared with each other.
    Sorted,
}

impl Cost {
    /// Charges for a call, and has its arguments worked out.
    fn pay(self, mut values: Vec<Value>) -> Result<Vec<Value>, Error> {
        if self == Self::Free {
            return charge(1).map(|()| values);
        }
        for value in &mut values {
            worked_out(value)?;
        }
        let Some((list, others)) = values.split_first() else { return charge(1).map(|()| values) };
        let others = others.iter().map(weight).sum::<Result<u64, _>>()?;
        let elements = length(list);
        charge(match self {
            Self::Free => 1,
            Self::Once => weight(list)?.saturating_add(others),
            Self::Each => elements.saturating_mul(ITEM + others),
            Self::Sorted => {
                let rounds = 1 + u64::from(u64::BITS - elements.leading_zeros());
                weight(list)?.saturating_mul(rounds).saturating_add(elements.saturating_mul(others))
            }
        })?;
        Ok(values)
    }
}

/// A filter or a test that is paid for, with what it makes.
pub fn paid(cost: Cost, inner: Value) -> impl Fn(&mut State<'_, '_>, Rest<ValueOrKwargs>) -> Result<Value, Error> {
    move |state, values| {
        let values = cost.pay(values.into_values())?;
        let made = inner.call(state, &values)?;
        if cost != Cost::Free {
            made_up(&made)?;
        }
        Ok(made)
    }
}

/// Charges for a value that was made.
pub fn made_up(value: &Value) -> Result<(), Error> {
    charge(weight(value)?)
}

/// An operand that so many operators go over.
pub fn weighed(mut value: Value, times: u64) -> Result<Value, Error> {
    worked_out(&mut value)?;
    charge(weight(&value)?.saturating_mul(times))?;
    Ok(value)
}

/// A value that is iterated, or in which a place is looked for.
pub fn counted(mut value: Value) -> Result<Value, Error> {
    worked_out(&mut value)?;
    charge(value.as_str().map_or(1, |text| text.len() as u64))?;
    Ok(value)
}

/// A value that is less or more than a number. A text is neither, whatever it looks like.
pub fn no_text(value: Value) -> Result<Value, Error> {
    if value.kind() == ValueKind::String {
        let message = "a text is compared with a number; write `… | int` or `… | float`";
        return Err(Error::new(ErrorKind::InvalidOperation, message));
    }
    charge(1).map(|()| value)
}

/// A value that comes before or after a text. A number does neither, whatever it is.
pub fn no_number(value: Value) -> Result<Value, Error> {
    if value.kind() == ValueKind::Number {
        let message = "a number is compared with a text; write the number without quotes, or `… | string`";
        return Err(Error::new(ErrorKind::InvalidOperation, message));
    }
    charge(1).map(|()| value)
}

/// What is below a name or at a place, or nothing where there is nothing to look into.
pub fn field(value: &Value, name: &Value) -> Result<Value, Error> {
    charge(value.as_str().map_or(1, |text| 1 + text.len() as u64))?;
    Ok(if value.is_undefined() { Value::UNDEFINED } else { value.get_item(name).unwrap_or(Value::UNDEFINED) })
}

/// Has a list that would be worked out whenever it is looked at be a list.
fn worked_out(value: &mut Value) -> Result<(), Error> {
    if value.kind() != ValueKind::Iterable {
        return Ok(());
    }
    let mut list = Vec::new();
    for item in value.try_iter()? {
        charge(ITEM)?;
        list.push(item);
    }
    *value = Value::from(list);
    Ok(())
}

fn length(value: &Value) -> u64 {
    match value.kind() {
        ValueKind::Seq | ValueKind::Map => value.len().unwrap_or(1) as u64,
        _ => 1,
    }
}

/// What it costs to go over a value. It is not gone further into than there is left for.
fn weight(value: &Value) -> Result<u64, Error> {
    let mut left = LEFT.get();
    weigh(value, &mut left).map(|()| LEFT.get() - left).ok_or_else(|| {
        LEFT.set(0);
        too_much()
    })
}

fn weigh(value: &Value, left: &mut u64) -> Option<()> {
    let mut take = |cost: u64| left.checked_sub(cost).map(|rest| *left = rest);
    match value.kind() {
        ValueKind::String => take(1 + value.as_str().map_or(0, str::len) as u64),
        ValueKind::Seq | ValueKind::Iterable => {
            for item in value.try_iter().ok().into_iter().flatten() {
                left.checked_sub(ITEM).map(|rest| *left = rest)?;
                weigh(&item, left)?;
            }
            Some(())
        }
        ValueKind::Map => {
            for key in value.try_iter().ok().into_iter().flatten() {
                left.checked_sub(ITEM).map(|rest| *left = rest)?;
                weigh(&key, left)?;
                weigh(&value.get_item(&key).unwrap_or(Value::UNDEFINED), left)?;
            }
            Some(())
        }
        _ => take(1),
    }
}
