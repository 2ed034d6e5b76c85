//! The part of a context that an expression uses. A context may hold megabytes, so only named values are converted.

use std::collections::BTreeMap;
use std::sync::Arc;

use minijinja::value::ValueKind;
use minijinja::{Error, Value};
use serde_json::Value as Json;

use crate::cost::charge_copied_bytes;

/// The names that an expression uses, as a tree.
#[derive(Debug, Default)]
pub struct UsedNames {
    /// Whether the expression uses the value itself, besides the fields below it.
    whole: bool,
    fields: BTreeMap<Arc<str>, UsedNames>,
}

impl UsedNames {
    pub fn record_path(&mut self, path: &[&str]) {
        match path.split_first() {
            None => self.whole = true,
            Some((name, below)) => self.fields.entry((*name).into()).or_default().record_path(below),
        }
    }

    pub fn contains_name(&self, name: &str) -> bool {
        self.whole || self.fields.contains_key(name)
    }

    /// Returns the used names directly below a path.
    pub fn names_below(&self, path: &[&str]) -> Vec<&str> {
        match path.split_first() {
            None => self.fields.keys().map(|name| &**name).collect(),
            Some((name, rest)) => self.fields.get(*name).map(|used| used.names_below(rest)).unwrap_or_default(),
        }
    }

    /// Returns the paths of all values that the expression uses.
    pub fn value_paths(&self) -> Vec<Vec<&str>> {
        let below = self.fields.iter().flat_map(|(name, used)| {
            used.value_paths().into_iter().map(|path| std::iter::once(&**name).chain(path).collect())
        });
        self.whole.then(Vec::new).into_iter().chain(below).collect()
    }

    /// Returns the used part of a context and charges for copying it. Missing values stay undefined.
    pub fn select_values(&self, context: &Json) -> Result<Value, Error> {
        let Json::Object(object) = context else { return convert_to_value(context) };
        if self.whole {
            return convert_to_value(context);
        }
        let part = |(name, used): (&Arc<str>, &Self)| {
            object.get(&**name).map(|field| used.select_values(field).map(|field| (name.clone(), field)))
        };
        Ok(Value::from_object(self.fields.iter().filter_map(part).collect::<Result<BTreeMap<_, _>, _>>()?))
    }
}

/// Converts a value to JSON, or returns `None` if it needs more than `left` bytes. Values without a JSON form become their text.
pub fn convert_to_json(value: &Value, left: &mut usize) -> Option<Json> {
    let take = |bytes: usize, left: &mut usize| left.checked_sub(bytes + 1).map(|rest| *left = rest);
    take(0, left)?;
    Some(match value.kind() {
        ValueKind::Undefined | ValueKind::None => Json::Null,
        ValueKind::Bool => Json::Bool(value.is_true()),
        ValueKind::Number => convert_number(value),
        ValueKind::Seq | ValueKind::Iterable => {
            Json::Array(value.try_iter().ok()?.map(|item| convert_to_json(&item, left)).collect::<Option<_>>()?)
        }
        ValueKind::Map => {
            let mut fields = serde_json::Map::new();
            for key in value.try_iter().ok()? {
                let name = key.to_string();
                take(name.len(), left)?;
                fields.insert(name, convert_to_json(&value.get_item(&key).ok()?, left)?);
            }
            Json::Object(fields)
        }
        _ => {
            let text = value.to_string();
            take(text.len(), left)?;
            Json::String(text)
        }
    })
}

fn convert_number(value: &Value) -> Json {
    let whole = value.is_integer().then(|| value.as_i64()).flatten();
    let float = || f64::try_from(value.clone()).ok().and_then(serde_json::Number::from_f64);
    whole.map(Json::from).or_else(|| float().map(Json::Number)).unwrap_or(Json::Null)
}

fn convert_to_value(json: &Json) -> Result<Value, Error> {
    charge_copied_bytes(json.as_str().map_or(0, str::len))?;
    Ok(match json {
        Json::Null => Value::from(()),
        Json::Bool(bool) => Value::from(*bool),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => Value::from(number),
            (None, Some(number)) => Value::from(number),
            (None, None) => number.as_f64().map_or(Value::UNDEFINED, Value::from),
        },
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(list) => Value::from(list.iter().map(convert_to_value).collect::<Result<Vec<_>, _>>()?),
        Json::Object(object) => {
            let field = |(name, field): (&String, &Json)| {
                charge_copied_bytes(name.len())?;
                convert_to_value(field).map(|field| (Arc::from(name.as_str()), field))
            };
            Value::from_object(object.iter().map(field).collect::<Result<BTreeMap<Arc<str>, _>, Error>>()?)
        }
    })
}
