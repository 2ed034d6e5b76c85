//! The fields of a JSON object, taken out one by one, each with the type that it has to have.
//!
//! Invariant: whatever is not taken is left, and [`Fields::unknown`] names it.

use serde_json::{Map, Value};

use crate::said::{BadAnswer, Word};

/// The longest piece of a wrong value that an error shows.
const SHOWN: usize = 60;

/// What is left of an object.
pub(crate) struct Fields {
    /// The path of the object, empty at the top.
    name: String,
    left: Map<String, Value>,
}

impl Fields {
    /// From entries as they were written.
    pub(crate) fn of(entries: Vec<(String, Value)>) -> Result<Self, BadAnswer> {
        let mut left = Map::new();
        for (name, value) in entries {
            if left.get(&name).is_some_and(|other| *other != value) {
                return Err(BadAnswer::Twice(shown(&name)));
            }
            left.insert(name, value);
        }
        Ok(Self { name: String::new(), left })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// One of a few words.
    pub(crate) fn word<W: Word>(&mut self, field: &str) -> Result<Option<W>, BadAnswer> {
        let Some((field, value)) = self.take(field)? else { return Ok(None) };
        let known = W::WORDS.iter().find(|(word, _)| value == *word);
        known.map(|(_, meaning)| Some(*meaning)).ok_or_else(|| {
            let words: Vec<&str> = W::WORDS.iter().map(|(word, _)| *word).collect();
            wrong(field, &value, &format!("one of {}", words.join(", ")))
        })
    }

    pub(crate) fn text(&mut self, field: &str) -> Result<Option<String>, BadAnswer> {
        match self.take(field)? {
            None => Ok(None),
            Some((_, Value::String(text))) => Ok(Some(text)),
            Some((field, value)) => Err(wrong(field, &value, "a text")),
        }
    }

    pub(crate) fn flag(&mut self, field: &str) -> Result<Option<bool>, BadAnswer> {
        match self.take(field)? {
            None => Ok(None),
            Some((_, Value::Bool(flag))) => Ok(Some(flag)),
            Some((field, value)) => Err(wrong(field, &value, "true or false")),
        }
    }

    pub(crate) fn object(&mut self, field: &str) -> Result<Option<Map<String, Value>>, BadAnswer> {
        match self.take(field)? {
            None => Ok(None),
            Some((_, Value::Object(object))) => Ok(Some(object)),
            Some((field, value)) => Err(wrong(field, &value, "an object")),
        }
    }

    /// Whatever it is.
    pub(crate) fn value(&mut self, field: &str) -> Result<Option<Value>, BadAnswer> {
        Ok(self.take(field)?.map(|(_, value)| value))
    }

    /// An object with fields of its own.
    pub(crate) fn inner(&mut self, field: &str) -> Result<Option<Self>, BadAnswer> {
        let name = self.path(field);
        Ok(self.object(field)?.map(|left| Self { name, left }))
    }

    /// A list of objects.
    pub(crate) fn list(&mut self, field: &str, most: usize) -> Result<Vec<Self>, BadAnswer> {
        let list = match self.take(field)? {
            None => return Ok(Vec::new()),
            Some((_, Value::Array(list))) => list,
            Some((field, value)) => return Err(wrong(field, &value, "a list")),
        };
        if list.len() > most {
            let (field, found) = (self.path(field), list.len());
            return Err(BadAnswer::TooMuch { field, found, unit: "entries", most });
        }
        let entry = |(index, value)| {
            let name = format!("{}[{index}]", self.path(field));
            match value {
                Value::Object(left) => Ok(Self { name, left }),
                value => Err(wrong(name, &value, "an object")),
            }
        };
        list.into_iter().enumerate().map(entry).collect()
    }

    /// The paths of what was not taken.
    pub(crate) fn unknown(&self) -> Vec<String> {
        self.left.keys().map(|field| self.path(&shown(field))).collect()
    }

    /// A field by its camelCase name, in whichever spelling it is there, with its path as it was written.
    fn take(&mut self, camel: &str) -> Result<Option<(String, Value)>, BadAnswer> {
        let snake = snake_case(camel);
        let written = self.left.remove(camel).filter(|value| !value.is_null());
        let other = if snake == camel { None } else { self.left.remove(&snake).filter(|value| !value.is_null()) };
        match (written, other) {
            (Some(value), Some(other)) if value != other => {
                Err(BadAnswer::Spellings(self.path(camel), self.path(&snake)))
            }
            (Some(value), _) => Ok(Some((self.path(camel), value))),
            (None, other) => Ok(other.map(|value| (self.path(&snake), value))),
        }
    }

    fn path(&self, field: &str) -> String {
        if self.name.is_empty() { field.to_owned() } else { format!("{}.{field}", self.name) }
    }
}

fn wrong(field: String, value: &Value, wanted: &str) -> BadAnswer {
    let found = match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) => Value::from(shown(text)).to_string(),
        value => value.to_string(),
    };
    BadAnswer::Field { field, found, wanted: wanted.to_owned() }
}

/// As much of a text as an error has room for.
fn shown(text: &str) -> String {
    match text.len() > SHOWN {
        true => format!("{}…", &text[..text.floor_char_boundary(SHOWN)]),
        false => text.to_owned(),
    }
}

fn snake_case(camel: &str) -> String {
    let mut snake = String::with_capacity(camel.len() + 4);
    for letter in camel.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}
