//! The part of a context that an expression uses. A context may carry megabytes; only what is named is converted.

use std::collections::BTreeMap;
use std::sync::Arc;

use minijinja::Value;
use serde_json::Value as Json;

/// Which names are used, and how much of each.
#[derive(Debug, Default)]
pub struct Used {
    /// Used as a value of its own, whatever else is used below it.
    whole: bool,
    fields: BTreeMap<Arc<str>, Used>,
}

impl Used {
    pub fn note(&mut self, path: &[&str]) {
        match path.split_first() {
            None => self.whole = true,
            Some((name, below)) => self.fields.entry((*name).into()).or_default().note(below),
        }
    }

    pub fn names(&self, name: &str) -> bool {
        self.whole || self.fields.contains_key(name)
    }

    /// What is used of a context. What is not there stays undefined.
    pub fn of(&self, context: &Json) -> Value {
        let Json::Object(object) = context else { return value(context) };
        if self.whole {
            return value(context);
        }
        let part = |(name, used): (&Arc<str>, &Self)| Some((name.clone(), used.of(object.get(&**name)?)));
        Value::from_object(self.fields.iter().filter_map(part).collect::<BTreeMap<_, _>>())
    }
}

fn value(json: &Json) -> Value {
    match json {
        Json::Null => Value::from(()),
        Json::Bool(bool) => Value::from(*bool),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => Value::from(number),
            (None, Some(number)) => Value::from(number),
            (None, None) => number.as_f64().map_or(Value::UNDEFINED, Value::from),
        },
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(list) => list.iter().map(value).collect(),
        Json::Object(object) => Value::from_object(
            object
                .iter()
                .map(|(name, field)| (Arc::from(name.as_str()), value(field)))
                .collect::<BTreeMap<Arc<str>, _>>(),
        ),
    }
}
