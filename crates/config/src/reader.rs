//! Deserializes typed values from a tree, with errors that know their place.
//!
//! The structs of `settings` and `hook_settings` define keys and types; serde reads them through [`NodeDeserializer`]. This module puts
//! serde's errors into plain words and adds the innermost known place.
//!
//! The reader is lenient in two ways. It takes a number, `true` or `false` as text where text is expected. And a key without a value
//! counts as absent, so that all lines of a section may be commented out.

use std::fmt::{self, Display};
use std::marker::PhantomData;
use std::ops::{Deref, Range};

use serde::de::value::{StrDeserializer, UsizeDeserializer};
use serde::de::{
    self, Deserialize, DeserializeOwned, DeserializeSeed, Deserializer, Error as _, Expected, MapAccess, SeqAccess,
    Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;
use serde::ser::{Serialize, Serializer};

use super::error::{ConfigProblem, quote_text};
use super::yaml::{ConfigNode, NodeValue};
use super::yaml_errors::QUOTES_HINT;

/// Deserializes a tree that was parsed from `source`.
pub fn deserialize_node<T: DeserializeOwned>(node: &ConfigNode, source: &str) -> Result<T, ConfigProblem> {
    T::deserialize(NodeDeserializer { node, source })
}

/// Returns the text of a scalar: the quoted text, or the source of a number or a boolean.
pub fn node_text<'a>(node: &'a ConfigNode, source: &'a str) -> Option<&'a str> {
    match &node.value {
        NodeValue::Text(text) => Some(text),
        NodeValue::Bool(_) | NodeValue::Integer(_) | NodeValue::Unsigned(_) | NodeValue::Float(_) => {
            source.get(node.at.clone())
        }
        NodeValue::Null | NodeValue::List(_) | NodeValue::Map(_) => None,
    }
}

/// The keys of `limits`, which people sometimes write at the top of the file.
pub(super) const LIMIT_KEYS: &[&str] = &[
    "cost",
    "failure_span",
    "lease",
    "maxHookRetries",
    "max_failures",
    "max_hook_retries",
    "max_iterations",
    "max_rejections",
    "max_remediations",
    "silence",
    "thrashing",
    "tokens",
    "turn_time",
    "wall_time",
];

impl de::Error for ConfigProblem {
    fn custom<T: Display>(message: T) -> Self {
        Self::new(message.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let expected = expected.to_string();
        Self::new(format!("expected {}, found {}", plain(&expected), describe(found)))
            .with_suggestion(suggest_remedy(found, &expected).map(str::to_owned))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }

    fn unknown_variant(found: &str, known: &'static [&'static str]) -> Self {
        Self::unknown_name("value", found, known)
    }

    fn unknown_field(found: &str, known: &'static [&'static str]) -> Self {
        let problem = Self::unknown_name("key", found, known);
        match problem.suggestion {
            _ if known.contains(&"limits") && LIMIT_KEYS.contains(&found) => {
                problem.with_suggestion("write it under `limits`".to_owned())
            }
            Some(_) => problem,
            None => problem.with_suggestion("`windlass config schema` lists every key".to_owned()),
        }
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(format!("the key `{field}` is missing here"))
    }

    /// The parser refuses equal keys already, so these are two spellings of one key.
    fn duplicate_field(field: &'static str) -> Self {
        Self::new(format!("the key `{field}` is given twice, in two spellings"))
    }
}

impl Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ConfigProblem {}

/// Replaces serde's names of types by plain words.
fn plain_type_name(expected: &str) -> &str {
    match expected {
        "a boolean" => "`true` or `false`",
        "a string" => "text",
        "a sequence" => "a list",
        "u8" => "a whole number from 0 to 255",
        "u16" | "u32" | "u64" | "usize" => "a whole number, 0 or more",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "a nonzero u32" | "a nonzero u64" => "a whole number, 1 or more",
        "f32" | "f64" => "a number",
        other if other == "a map" || other.starts_with("struct ") => "a map of keys and values",
        other => other,
    }
}

fn describe_found(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Str(value) => format!("the text {}", quoted(value)),
        Unexpected::Unit | Unexpected::Option => "nothing".to_owned(),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map => "a map".to_owned(),
        other => other.to_string(),
    }
}

/// Returns a hint for common mistakes.
fn suggest_remedy(found: Unexpected<'_>, expected: &str) -> Option<&'static str> {
    match (found, expected) {
        (Unexpected::Str("yes" | "on"), "a boolean") => Some("write `true`"),
        (Unexpected::Str("no" | "off"), "a boolean") => Some("write `false`"),
        (Unexpected::Str(_) | Unexpected::Map, "a sequence") => Some("start each entry with `- `"),
        (Unexpected::Map, "a string") => Some(QUOTES_HINT),
        _ => None,
    }
}

/// A value with its byte range in the file.
#[derive(Debug, Clone)]
pub struct LocatedValue<T> {
    pub value: T,
    pub at: Range<usize>,
}

impl<T> Deref for LocatedValue<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// Asks [`NodeDeserializer`] for the place as well: it answers with start, end and value.
const LOCATED_MARKER: &str = "$windlass::Located";

impl<'de, T: Deserialize<'de>> Deserialize<'de> for LocatedValue<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct LocatedParts<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for LocatedParts<T> {
            type Value = LocatedValue<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value with its place")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<LocatedValue<T>, A::Error> {
                match (parts.next_element()?, parts.next_element()?, parts.next_element()?) {
                    (Some(start), Some(end), Some(value)) => Ok(LocatedValue { value, at: start..end }),
                    _ => Err(A::Error::custom("a value without a place")),
                }
            }
        }

        deserializer.deserialize_newtype_struct(LOCATED_MARKER, LocatedParts(PhantomData))
    }
}

impl<T: Serialize> Serialize for LocatedValue<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(serializer)
    }
}

impl<T: schemars::JsonSchema> schemars::JsonSchema for LocatedValue<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> std::borrow::Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        T::json_schema(generator)
    }
}

#[derive(Clone, Copy)]
struct NodeDeserializer<'a> {
    node: &'a ConfigNode,
    source: &'a str,
}

impl<'a> NodeDeserializer<'a> {
    fn child_node(self, node: &'a ConfigNode) -> Self {
        Self { node, ..self }
    }

    fn locate_problem<T>(self, result: Result<T, ConfigProblem>) -> Result<T, ConfigProblem> {
        result.map_err(|problem| problem.with_range(self.node.at.clone()))
    }

    fn list_access(self, nodes: &'a [ConfigNode]) -> ListAccess<'a> {
        ListAccess { reader: self, nodes: nodes.iter() }
    }

    fn map_access(self, entries: &'a [(ConfigNode, ConfigNode)]) -> MapEntryAccess<'a> {
        MapEntryAccess { reader: self, entries: entries.iter(), value: None }
    }

    fn scalar_text(self) -> Option<&'a str> {
        node_text(self.node, self.source)
    }
}

impl<'de> Deserializer<'de> for NodeDeserializer<'de> {
    type Error = ConfigProblem;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConfigProblem> {
        self.locate_problem(match &self.node.value {
            NodeValue::Null => visitor.visit_unit(),
            NodeValue::Bool(value) => visitor.visit_bool(*value),
            NodeValue::Integer(value) => match u64::try_from(*value) {
                Ok(value) => visitor.visit_u64(value),
                Err(_) => visitor.visit_i64(*value),
            },
            NodeValue::Unsigned(value) => visitor.visit_u64(*value),
            NodeValue::Float(value) => visitor.visit_f64(*value),
            NodeValue::Text(text) => visitor.visit_str(text),
            NodeValue::List(nodes) => visitor.visit_seq(self.list_access(nodes)),
            NodeValue::Map(entries) => visitor.visit_map(self.map_access(entries)),
        })
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConfigProblem> {
        match self.scalar_text() {
            Some(text) => self.locate_problem(visitor.visit_str(text)),
            None => self.deserialize_any(visitor),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConfigProblem> {
        self.deserialize_str(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConfigProblem> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConfigProblem> {
        match &self.node.value {
            NodeValue::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConfigProblem> {
        match &self.node.value {
            NodeValue::Null => self.locate_problem(visitor.visit_seq(self.list_access(&[]))),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConfigProblem> {
        match &self.node.value {
            NodeValue::Null => self.locate_problem(visitor.visit_map(self.map_access(&[]))),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ConfigProblem> {
        match &self.node.value {
            NodeValue::List(_) => {
                Err(ConfigProblem::invalid_type(Unexpected::Seq, &visitor).with_range(self.node.at.clone()))
            }
            _ => self.deserialize_map(visitor),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ConfigProblem> {
        match name {
            LOCATED_MARKER => visitor.visit_seq(Parts { reader: self, given: 0 }),
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ConfigProblem> {
        match self.scalar_text() {
            Some(text) => self.locate_problem(visitor.visit_enum(StrDeserializer::new(text))),
            None => self.locate_problem(Err(ConfigProblem::invalid_type(to_unexpected(&self.node.value), &"a word"))),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char bytes byte_buf
        unit unit_struct tuple tuple_struct ignored_any
    }
}

fn to_unexpected(value: &NodeValue) -> Unexpected<'_> {
    match value {
        NodeValue::Null => Unexpected::Unit,
        NodeValue::Bool(value) => Unexpected::Bool(*value),
        NodeValue::Integer(value) => Unexpected::Signed(*value),
        NodeValue::Unsigned(value) => Unexpected::Unsigned(*value),
        NodeValue::Float(value) => Unexpected::Float(*value),
        NodeValue::Text(text) => Unexpected::Str(text),
        NodeValue::List(_) => Unexpected::Seq,
        NodeValue::Map(_) => Unexpected::Map,
    }
}

/// Yields start, end and value.
struct Parts<'a> {
    reader: NodeDeserializer<'a>,
    given: u8,
}

impl<'de> SeqAccess<'de> for Parts<'de> {
    type Error = ConfigProblem;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, ConfigProblem> {
        self.given += 1;
        let at = &self.reader.node.at;
        match self.given {
            1 => seed.deserialize(UsizeDeserializer::new(at.start)).map(Some),
            2 => seed.deserialize(UsizeDeserializer::new(at.end)).map(Some),
            _ => seed.deserialize(self.reader).map(Some),
        }
    }
}

struct ListAccess<'a> {
    reader: NodeDeserializer<'a>,
    nodes: std::slice::Iter<'a, ConfigNode>,
}

impl<'de> SeqAccess<'de> for ListAccess<'de> {
    type Error = ConfigProblem;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, ConfigProblem> {
        self.nodes.next().map(|node| seed.deserialize(self.reader.child_node(node))).transpose()
    }
}

struct MapEntryAccess<'a> {
    reader: NodeDeserializer<'a>,
    entries: std::slice::Iter<'a, (ConfigNode, ConfigNode)>,
    value: Option<&'a (ConfigNode, ConfigNode)>,
}

impl<'de> MapAccess<'de> for MapEntryAccess<'de> {
    type Error = ConfigProblem;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ConfigProblem> {
        self.value = self.entries.next();
        let Some((key, _)) = self.value else { return Ok(None) };
        let key = self.reader.child_node(key);
        match key.scalar_text() {
            Some(_) => seed.deserialize(key).map_err(|problem| problem.with_range(key.node.at.clone())).map(Some),
            None => key.locate_problem(Err(ConfigProblem::new("a key must be text"))),
        }
    }

    /// Adds the key to a value's problem: the place alone does not show which key was read.
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ConfigProblem> {
        let (key, value) = self.value.take().ok_or_else(|| ConfigProblem::new("a value without a key"))?;
        let value = self.reader.child_node(value);
        value.locate_problem(seed.deserialize(value)).map_err(|problem| {
            match self.reader.child_node(key).scalar_text() {
                Some(key) if problem.at.as_ref() == Some(&value.node.at) => {
                    ConfigProblem { message: format!("{}: {}", quoted(key), problem.message), ..problem }
                }
                _ => problem,
            }
        })
    }
}
