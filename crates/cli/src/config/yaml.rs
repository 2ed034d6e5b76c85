//! YAML as a tree in which every value knows where it was written.
//!
//! Invariants:
//! - Size, depth and the growth by aliases are bounded: a hostile file costs milliseconds.
//! - Keys are unique within their map.
//!
//! Not here: what keys and values mean (`file`, `entry`); how a tree becomes typed values (`reader`).

use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location, Options, Spanned};

use super::error::Problem;
use super::syntax::translate;

/// Lists and maps within each other.
pub const DEPTH: usize = 32;
/// Values in one file, and values that aliases may add to them.
pub const NODES: usize = 20_000;
/// Places that may repeat what was written elsewhere.
const ALIASES: usize = 1_000;

/// One value, and the bytes that it was written in.
#[derive(Debug)]
pub struct Node {
    pub at: Range<usize>,
    pub value: Value,
}

/// Compares values, wherever they are written.
impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

#[derive(Debug, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    Integer(i64),
    /// A whole number that only fits without a sign.
    Unsigned(u64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
}

/// The tree of a file. An empty file is a null.
pub fn parse(text: &str) -> Result<Node, Problem> {
    serde_saphyr::from_str_with_options(text, options()).map_err(|error| translate(&error, text))
}

fn options() -> Options {
    let budget = serde_saphyr::budget! {
        max_depth: DEPTH,
        flow_nesting_limit: DEPTH,
        max_nodes: NODES,
        max_events: 4 * NODES,
        max_aliases: ALIASES,
        max_anchors: ALIASES,
        max_merge_keys: ALIASES,
        max_documents: 1,
    };
    let aliases = serde_saphyr::alias_limits! {
        max_total_replayed_events: NODES,
        max_replay_stack_depth: DEPTH,
    };
    serde_saphyr::options! {
        budget: budget,
        alias_limits: aliases,
        emit_comments: false,
        strict_booleans: true,
        reject_unsupported_tags: true,
        with_snippet: false,
    }
}

pub fn range(location: Location) -> Range<usize> {
    let span = location.span();
    let number = |n: Option<u64>| usize::try_from(n.unwrap_or(0)).unwrap_or(usize::MAX);
    let start = number(span.byte_offset());
    start..start.saturating_add(number(span.byte_len()))
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Spanned::<Value>::deserialize(deserializer).map(Self::from)
    }
}

impl From<Spanned<Value>> for Node {
    fn from(Spanned { value, defined, .. }: Spanned<Value>) -> Self {
        Self { at: range(defined), value }
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Integer(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(i64::try_from(value).map_or(Value::Unsigned(value), Value::Integer))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut nodes = Vec::new();
        while let Some(node) = list.next_element()? {
            nodes.push(node);
        }
        Ok(Value::List(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Value::Map(entries))
    }
}
