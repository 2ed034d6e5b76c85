//! Input of a tool: the one description that its schema is generated from, and that arguments are checked against.
//!
//! Invariants:
//! - Arguments that pass the check can be deserialized into the tool's own type.
//! - Every error is reported, each as `path: cause; remedy`, up to a bound.
//! - `null` for something optional is the same as leaving it out; `3.0` is the whole number 3.

use serde::de::DeserializeOwned;
use serde_json::{Map, Number, Value, json};
use windlass_engine::{CheckpointId, HookId, Promise, SeriesId, TaskId, TypeName};
use windlass_expr::nearest_name;

use crate::error::{ToolError, ToolErrorCode};
use crate::text_excerpt;
use crate::tool::ToolDefinition;

/// Maximum number of errors in one answer.
const MAX_REPORTED_ERRORS: usize = 5;

/// A field of an object.
#[derive(Debug)]
pub struct ToolField {
    pub name: &'static str,
    /// Description for a model, as short as possible. It may be empty if name and kind are enough.
    pub about: &'static str,
    pub need: FieldPresence,
    pub kind: FieldKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldPresence {
    Required,
    Optional,
}

impl ToolField {
    pub const fn required(name: &'static str, about: &'static str, kind: FieldKind) -> Self {
        Self { name, about, need: FieldPresence::Required, kind }
    }

    pub const fn optional(name: &'static str, about: &'static str, kind: FieldKind) -> Self {
        Self { name, about, need: FieldPresence::Optional, kind }
    }
}

/// Allowed values of a field.
#[derive(Debug)]
pub enum FieldKind {
    /// Text with a maximum number of bytes, without NUL.
    Text(usize),
    /// The same, but not blank.
    Words(usize),
    /// An ID or a name.
    Id(IdKind),
    OneOf(&'static [&'static str]),
    /// A whole number within bounds.
    Whole(u64, u64),
    Flag,
    /// A list with a minimum and a maximum length.
    List(&'static FieldKind, usize, usize),
    /// An object with exactly these fields.
    Object(&'static [ToolField]),
    /// Any object.
    Map,
    /// A completion promise, as a word or as a tag.
    Promise,
    /// A value with its own schema, which the tool checks.
    Own(fn() -> Value),
}

/// Type of an ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdKind {
    Task,
    Type,
    Series,
    Checkpoint,
    Hook,
}

impl IdKind {
    fn is_valid(self, text: &str) -> bool {
        match self {
            Self::Task => text.parse::<TaskId>().is_ok(),
            Self::Type => text.parse::<TypeName>().is_ok(),
            Self::Series => text.parse::<SeriesId>().is_ok(),
            Self::Checkpoint => text.parse::<CheckpointId>().is_ok(),
            Self::Hook => text.parse::<HookId>().is_ok(),
        }
    }

    fn id_pattern(self) -> &'static str {
        match self {
            Self::Task => r"^T\d+$",
            Self::Type => r"^[\w-]{1,64}$",
            Self::Series => r"^IT-\d+$",
            Self::Checkpoint => r"^CP-\d+$",
            Self::Hook => r"^HOOK-\d+$",
        }
    }

    fn kind_and_hint(self) -> (&'static str, &'static str) {
        match self {
            Self::Task => ("a task id", "one such as T12, as `task_list` shows them"),
            Self::Type => ("a type name", "letters, digits, _ and -, at most 64"),
            Self::Series => ("an iteration id", "one such as IT-12, as `iteration_start` returned it"),
            Self::Checkpoint => ("a checkpoint id", "one such as CP-12, as `checkpoint_list` shows them"),
            Self::Hook => ("a hook id", "one such as HOOK-12, as `hook_list` shows them"),
        }
    }
}

/// Returns the schema of an object with these fields. It does not say that other fields are refused: that costs a model tokens
/// for each tool, and the error for an unknown field names the one that was meant.
pub fn schema(fields: &[ToolField]) -> Value {
    let properties: Map<String, Value> =
        fields.iter().map(|field| (field.name.to_owned(), field.field_schema())).collect();
    let required: Vec<&str> =
        fields.iter().filter(|field| field.need == FieldPresence::Required).map(|field| field.name).collect();
    let mut object = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        object["required"] = json!(required);
    }
    object
}

impl ToolField {
    fn field_schema(&self) -> Value {
        let mut schema = self.kind.value_schema();
        if !self.about.is_empty() {
            schema["description"] = json!(self.about);
        }
        schema
    }
}

impl FieldKind {
    fn value_schema(&self) -> Value {
        match self {
            Self::Text(_) | Self::Words(_) => json!({"type": "string"}),
            Self::Id(IdKind::Type) => json!({"type": "string"}),
            Self::Id(id) => json!({"type": "string", "pattern": id.id_pattern()}),
            // Some providers of models accept no enum without a type.
            Self::OneOf(names) => json!({"type": "string", "enum": names}),
            Self::Whole(from, to) => json!({"type": "integer", "minimum": from, "maximum": to}),
            Self::Flag => json!({"type": "boolean"}),
            Self::List(of, 0, _) => json!({"type": "array", "items": of.value_schema()}),
            Self::List(of, least, _) => json!({"type": "array", "items": of.value_schema(), "minItems": least}),
            Self::Object(fields) => schema(fields),
            Self::Map => json!({"type": "object"}),
            Self::Promise => json!({"type": "string", "pattern": "COMPLETE|BLOCKED|ESCALATE"}),
            Self::Own(schema) => schema(),
        }
    }
}

/// Checks and deserializes the arguments of a tool.
pub(crate) fn parse_arguments<T: DeserializeOwned>(tool: &ToolDefinition, arguments: Value) -> Result<T, ToolError> {
    let mut given = match arguments {
        Value::Null => Value::Object(Map::new()),
        given => given,
    };
    let mut mistakes = ArgumentErrors(Vec::new());
    match &mut given {
        Value::Object(object) => mistakes.check_object("", tool.fields, object),
        other => mistakes.push_error(
            "arguments",
            format!("{} is not an object", text_excerpt::describe_value(other)),
            "give the fields by name",
        ),
    }
    if !mistakes.0.is_empty() {
        return Err(ToolError::new(ToolErrorCode::Invalid, mistakes.0.join("\n")));
    }
    // Checked arguments fit. If they ever do not, the error text is not trusted either.
    T::deserialize(given)
        .map_err(|error| ToolError::new(ToolErrorCode::Invalid, text_excerpt::excerpt_text(&error.to_string())))
}

/// Errors in arguments.
struct ArgumentErrors(Vec<String>);

impl ArgumentErrors {
    fn push_error(&mut self, path: &str, cause: impl AsRef<str>, remedy: impl AsRef<str>) {
        if self.0.len() < MAX_REPORTED_ERRORS {
            self.0.push(format!("{path}: {}; {}", cause.as_ref(), remedy.as_ref()));
        }
    }

    fn check_object(&mut self, path: &str, fields: &[ToolField], given: &mut Map<String, Value>) {
        let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        for field in fields {
            match given.get_mut(field.name) {
                Some(Value::Null) if field.need == FieldPresence::Optional => drop(given.remove(field.name)),
                Some(value) => self.check_value(&below(field.name), &field.kind, value),
                None if field.need == FieldPresence::Required => {
                    self.push_error(&below(field.name), "is missing", field.kind.remedy())
                }
                None => {}
            }
        }
        let names: Vec<&str> = fields.iter().map(|field| field.name).collect();
        for name in given.keys().filter(|name| !names.contains(&name.as_str())) {
            let remedy = match (nearest_name(name, &names), names.is_empty()) {
                (Some(near), _) => format!("did you mean {near}?"),
                (None, true) => "give none".to_owned(),
                (None, false) => format!("there are {}", names.join(", ")),
            };
            self.push_error(&below(&text_excerpt::excerpt_text(name)), "there is no such field", remedy);
        }
    }

    fn check_value(&mut self, path: &str, kind: &FieldKind, given: &mut Value) {
        match (kind, &mut *given) {
            (FieldKind::Flag, Value::Bool(_)) | (FieldKind::Map, Value::Object(_)) | (FieldKind::Own(_), _) => {}
            (FieldKind::Promise, Value::String(text)) if text.parse::<Promise>().is_ok() => {}
            (FieldKind::Text(most) | FieldKind::Words(most), Value::String(text)) => {
                if let Some(fault) = find_text_error(text, *most, matches!(kind, FieldKind::Words(_))) {
                    self.push_error(path, fault.0, fault.1);
                }
            }
            (FieldKind::Id(id), Value::String(text)) if id.is_valid(text) => {}
            (FieldKind::OneOf(names), Value::String(text)) if names.contains(&text.as_str()) => {}
            (FieldKind::Whole(from, to), Value::Number(number)) => match to_whole_number(number) {
                Some(whole) if (*from..=*to).contains(&whole) => *given = Value::from(whole),
                None if number.as_f64().is_none_or(|number| number.fract() != 0.0) => {
                    self.push_type_error(path, kind, given)
                }
                _ => self.push_error(
                    path,
                    format!("{} is out of bounds", text_excerpt::describe_value(given)),
                    kind.remedy(),
                ),
            },
            (FieldKind::List(_, least, most), Value::Array(items)) if !(*least..=*most).contains(&items.len()) => {
                let remedy = if items.is_empty() { kind.remedy() } else { format!("give at most {most}") };
                self.push_error(path, format!("has {} entries", items.len()), remedy);
            }
            (FieldKind::List(of, ..), Value::Array(items)) => {
                for (place, item) in items.iter_mut().enumerate() {
                    self.check_value(&format!("{path}[{place}]"), of, item);
                }
            }
            (FieldKind::Object(fields), Value::Object(object)) => self.check_object(path, fields, object),
            _ => self.push_type_error(path, kind, given),
        }
    }

    fn push_type_error(&mut self, path: &str, kind: &FieldKind, given: &Value) {
        let quoted = matches!((kind, given), (FieldKind::Whole(..) | FieldKind::Flag, Value::String(_)));
        let remedy = format!("{}{}", kind.remedy(), if quoted { ", without quotes" } else { "" });
        self.push_error(path, format!("{} is not {}", text_excerpt::describe_value(given), kind.noun()), remedy);
    }
}

/// Returns the error of a text, and its remedy.
fn find_text_error(text: &str, most: usize, words: bool) -> Option<(String, String)> {
    if words && text.trim().is_empty() {
        return Some(("is empty".to_owned(), "give a text".to_owned()));
    }
    if text.len() > most {
        let cause = format!("has {} bytes", text.len());
        return Some((cause, format!("give at most {most}, and name a file for the rest")));
    }
    text.contains('\0').then(|| ("contains a NUL byte".to_owned(), "leave it out".to_owned()))
}

/// Returns a number as a whole number, in any notation.
fn to_whole_number(number: &Number) -> Option<u64> {
    const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;
    let float = |number: f64| (number.fract() == 0.0 && (0.0..=MAX_EXACT_INTEGER).contains(&number)).then_some(number);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is whole, positive and small")]
    number.as_u64().or_else(|| float(number.as_f64()?).map(|number| number as u64))
}

impl FieldKind {
    /// Returns the name of the kind, for use after "not".
    fn noun(&self) -> String {
        match self {
            Self::Text(_) | Self::Words(_) => "a text".to_owned(),
            Self::Id(id) => id.kind_and_hint().0.to_owned(),
            Self::OneOf(_) => "a known word".to_owned(),
            Self::Whole(..) => "a whole number".to_owned(),
            Self::Flag => "a boolean".to_owned(),
            Self::List(..) => "a list".to_owned(),
            Self::Object(_) | Self::Map => "an object".to_owned(),
            Self::Promise => "a promise".to_owned(),
            Self::Own(_) => "a valid value".to_owned(),
        }
    }

    fn remedy(&self) -> String {
        format!("give {}", self.expected())
    }

    /// Returns the expected value in words.
    pub fn expected(&self) -> String {
        match self {
            Self::Text(_) | Self::Words(_) => "a string".to_owned(),
            Self::Id(id) => id.kind_and_hint().1.to_owned(),
            Self::OneOf(names) => format!("one of {}", names.join(", ")),
            Self::Whole(from, to) => format!("a whole number from {from} to {to}"),
            Self::Flag => "true or false".to_owned(),
            Self::List(of, 0, _) => format!("a list, each {}", of.expected()),
            Self::List(of, least, _) => format!("a list of at least {least}, each {}", of.expected()),
            Self::Object(fields) => {
                let names: Vec<&str> = fields.iter().map(|field| field.name).collect();
                format!("an object with {}", names.join(", "))
            }
            Self::Map => "an object".to_owned(),
            Self::Promise => "COMPLETE, BLOCKED or ESCALATE".to_owned(),
            Self::Own(_) => "a value of its JSON schema".to_owned(),
        }
    }
}
