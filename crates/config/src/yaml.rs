//! YAML as a tree in which every value has its place in the file.
//!
//! ```text
//! text ─ granit_parser ─► events ─ YamlTreeBuilder ─► ConfigNode
//! ```
//!
//! Invariants:
//! - The loader bounds depth, values and bytes, including repeated ones: a hostile file costs milliseconds.
//! - Keys are scalars, and unique within their map.
//! - Plain scalars follow the core schema of YAML 1.2, except `.nan` and `.inf`, which are texts like `yes` and `on`.
//!
//! Not here: the meaning of keys and values (`settings`, `hook_settings`); typed values (`reader`); messages for text that is not
//! YAML (`yaml_errors`).

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use serde_saphyr::granit_parser::{Event, Options, Parser, ScalarStyle};

use super::error::{ConfigProblem, quote_text};
use super::yaml_errors::{QUOTES_HINT, explain_scan_error};

/// The maximum nesting of lists and maps.
pub const MAX_DEPTH: usize = 32;
/// The maximum number of values in a file, with those that aliases repeat.
pub const MAX_VALUES: usize = 20_000;
/// The maximum length of all text in a file, with text that aliases repeat.
const MAX_TEXT_BYTES: usize = 4 << 20;
/// The key that adds the fields of another map.
const MERGE_KEY: &str = "<<";

/// One value, with its byte range.
#[derive(Debug, Clone)]
pub struct ConfigNode {
    pub at: Range<usize>,
    pub value: NodeValue,
}

/// Compares values and ignores their places.
impl PartialEq for ConfigNode {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum NodeValue {
    Null,
    Bool(bool),
    Integer(i64),
    /// A whole number that only fits without a sign.
    Unsigned(u64),
    Float(f64),
    Text(String),
    List(Vec<ConfigNode>),
    Map(Vec<(ConfigNode, ConfigNode)>),
}

/// Parses a file into a tree. An empty file is null.
pub fn parse_yaml(text: &str) -> Result<ConfigNode, ConfigProblem> {
    let mut options = Options::default();
    options.set_emit_comments(false);
    let mut parser = Parser::new_from_str_with_options(text, options);
    let mut loader = YamlTreeBuilder::default();
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| explain_scan_error(&error, text))?;
        let at = span.byte_range().unwrap_or_default();
        if has_tag(&event) {
            let before = text[..at.start].trim_end();
            let tag =
                before.rfind(|letter: char| letter.is_ascii_whitespace()).map_or(0, |blank| blank + 1)..before.len();
            return Err(ConfigProblem::new("tags are not supported")
                .with_suggestion(QUOTES_HINT.to_owned())
                .with_range(tag));
        }
        loader.take_event(event, at.clone()).map_err(|problem| problem.with_range(at))?;
    }
    Ok(loader.document.unwrap_or(ConfigNode { at: 0..0, value: NodeValue::Null }))
}

fn has_tag(event: &Event<'_>) -> bool {
    matches!(
        event,
        Event::Scalar(_, _, _, Some(_)) | Event::SequenceStart(_, _, Some(_)) | Event::MappingStart(_, _, Some(_))
    )
}

/// A list or a map whose end event has not arrived yet.
struct OpenNode {
    node: ConfigNode,
    /// The anchor number; 0 for none.
    anchor: usize,
    extent: NodeExtent,
    /// A key without its value.
    key: Option<MapKey>,
    /// The keys of a map so far.
    keys: HashSet<String>,
    /// The maps whose fields merge keys add.
    merged: Vec<ConfigNode>,
}

enum MapKey {
    Field(ConfigNode),
    /// The key that adds the fields of another map.
    Merge,
}

/// The number of values and bytes of a node, itself included, and its depth.
#[derive(Clone, Copy)]
struct NodeExtent {
    values: usize,
    bytes: usize,
    depth: usize,
}

/// Builds a tree from the events of the parser.
#[derive(Default)]
struct YamlTreeBuilder {
    open: Vec<OpenNode>,
    document: Option<ConfigNode>,
    anchors: HashMap<usize, (ConfigNode, NodeExtent)>,
}

impl YamlTreeBuilder {
    fn take_event(&mut self, event: Event<'_>, at: Range<usize>) -> Result<(), ConfigProblem> {
        match event {
            Event::DocumentStart(..) if self.document.is_some() => {
                Err(ConfigProblem::new("a second document starts here").with_suggestion("remove the `---`".to_owned()))
            }
            Event::Scalar(written, style, anchor, _) => {
                let is_plain = style == ScalarStyle::Plain;
                if is_plain && written == MERGE_KEY && self.open.last_mut().is_some_and(OpenNode::take_merge_key) {
                    return Ok(());
                }
                let extent = NodeExtent { values: 1, bytes: written.len(), depth: 0 };
                let value = if is_plain { parse_plain_scalar(&written) } else { NodeValue::Text(written.into_owned()) };
                self.insert_node(ConfigNode { at, value }, anchor, extent)
            }
            Event::SequenceStart(_, anchor, _) => {
                self.open_node(ConfigNode { at, value: NodeValue::List(Vec::new()) }, anchor)
            }
            Event::MappingStart(_, anchor, _) => {
                self.open_node(ConfigNode { at, value: NodeValue::Map(Vec::new()) }, anchor)
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let ended = self.open.pop().expect("the parser ends only what it began");
                let (anchor, extent) = (ended.anchor, ended.extent);
                self.insert_node(ended.into_node(), anchor, extent)
            }
            Event::Alias(anchor) => match self.anchors.get(&anchor) {
                Some((node, extent)) => {
                    let (node, extent) = (node.clone(), *extent);
                    self.insert_node(node, 0, extent)
                }
                None => Err(ConfigProblem::new("this alias is inside the value that it repeats")),
            },
            _ => Ok(()),
        }
    }

    fn open_node(&mut self, node: ConfigNode, anchor: usize) -> Result<(), ConfigProblem> {
        let extent = NodeExtent { values: 1, bytes: 0, depth: 1 };
        self.open.push(OpenNode { node, anchor, extent, key: None, keys: HashSet::new(), merged: Vec::new() });
        if self.open.len() > MAX_DEPTH { Err(bounds_problem()) } else { Ok(()) }
    }

    /// Adds a complete value to its list or map.
    fn insert_node(&mut self, node: ConfigNode, anchor: usize, extent: NodeExtent) -> Result<(), ConfigProblem> {
        let depth = self.open.len() + extent.depth;
        let Some(parent) = self.open.last_mut() else {
            self.document = Some(node);
            return Ok(());
        };
        parent.extent.values += extent.values;
        parent.extent.bytes += extent.bytes;
        parent.extent.depth = parent.extent.depth.max(extent.depth + 1);
        if parent.extent.values > MAX_VALUES || parent.extent.bytes > MAX_TEXT_BYTES || depth > MAX_DEPTH {
            return Err(bounds_problem());
        }
        if anchor != 0 {
            self.anchors.insert(anchor, (node.clone(), extent));
        }
        parent.add_child(node)
    }
}

impl OpenNode {
    fn add_child(&mut self, node: ConfigNode) -> Result<(), ConfigProblem> {
        match (&mut self.node.value, self.key.take()) {
            (NodeValue::List(items), _) => items.push(node),
            (NodeValue::Map(_), Some(MapKey::Merge)) => match node.value {
                NodeValue::Map(_) => self.merged.push(node),
                NodeValue::List(maps) if maps.iter().all(|map| matches!(map.value, NodeValue::Map(_))) => {
                    self.merged.extend(maps)
                }
                _ => return Err(ConfigProblem::new(format!("`{MERGE_KEY}` takes a map, or a list of maps"))),
            },
            (NodeValue::Map(entries), Some(MapKey::Field(key))) => entries.push((key, node)),
            _ => self.key = Some(MapKey::Field(self.check_unique_key(node)?)),
        }
        Ok(())
    }

    /// Takes the merge key, if the next value is a key of a map.
    fn take_merge_key(&mut self) -> bool {
        let is_key = matches!(self.node.value, NodeValue::Map(_)) && self.key.is_none();
        if is_key {
            self.key = Some(MapKey::Merge);
        }
        is_key
    }

    fn check_unique_key(&mut self, key: ConfigNode) -> Result<ConfigNode, ConfigProblem> {
        match &key.value {
            NodeValue::List(_) | NodeValue::Map(_) => Err(ConfigProblem::new("a list or a map cannot be a key")
                .with_suggestion(QUOTES_HINT.to_owned())
                .with_range(key.at)),
            value if self.keys.insert(format!("{value:?}")) => Ok(key),
            value => {
                let name = if let NodeValue::Text(name) = value {
                    format!("the key {}", quote_text(name))
                } else {
                    "this key".to_owned()
                };
                Err(ConfigProblem::new(format!("{name} is given twice")).with_suggestion("keep one of them".to_owned()))
            }
        }
    }

    /// Completes a list or a map. Fields of merged maps apply where the map has none of that name.
    fn into_node(mut self) -> ConfigNode {
        if let NodeValue::Map(entries) = &mut self.node.value {
            for merged in self.merged {
                let NodeValue::Map(fields) = merged.value else { continue };
                entries.extend(fields.into_iter().filter(|(key, _)| self.keys.insert(format!("{:?}", key.value))));
            }
        }
        self.node
    }
}

/// Parses an unquoted scalar.
fn parse_plain_scalar(text: &str) -> NodeValue {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return NodeValue::Null,
        "true" | "True" | "TRUE" => return NodeValue::Bool(true),
        "false" | "False" | "FALSE" => return NodeValue::Bool(false),
        _ => {}
    }
    let (digits, radix) = match text.get(..2) {
        Some("0x") => (&text[2..], 16),
        Some("0o") => (&text[2..], 8),
        _ => (text, 10),
    };
    let has_sign = radix != 10 && digits.starts_with(['+', '-']);
    let is_number = text.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first));
    if has_sign || !is_number {
        return NodeValue::Text(text.to_owned());
    }
    if let Ok(number) = i64::from_str_radix(digits, radix) {
        return NodeValue::Integer(number);
    }
    if let Ok(number) = u64::from_str_radix(digits, radix) {
        return NodeValue::Unsigned(number);
    }
    // Rust also reads `inf` and `nan`, which are texts here.
    let is_float = radix == 10 && text.chars().all(|letter| letter.is_ascii_digit() || "+-.eE".contains(letter));
    match text.parse() {
        Ok(number) if is_float => NodeValue::Float(number),
        _ => NodeValue::Text(text.to_owned()),
    }
}

pub fn bounds_problem() -> ConfigProblem {
    let text = MAX_TEXT_BYTES >> 20;
    ConfigProblem::new(format!(
        "too much YAML: at most {MAX_VALUES} values in {MAX_DEPTH} levels and {text} MiB of text, with what aliases repeat"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(describe_node(&parse_yaml(text).unwrap()), expected, "{text}");
    }

    fn describe_node(node: &ConfigNode) -> String {
        match &node.value {
            NodeValue::List(items) => format!("[{}]", items.iter().map(describe_node).collect::<Vec<_>>().join(" ")),
            NodeValue::Map(entries) => {
                let entry = |(key, value): &(ConfigNode, ConfigNode)| {
                    format!("{}={}", describe_node(key), describe_node(value))
                };
                format!("{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(" "))
            }
            value => format!("{value:?}"),
        }
    }

    #[test]
    fn plain_scalars_follow_the_core_schema() {
        check("[~, null, ]", "[Null Null]");
        check("[true, False, yes, on, tRue]", "[Bool(true) Bool(false) Text(\"yes\") Text(\"on\") Text(\"tRue\")]");
        check("[7, -7, +7, 007, 0x1F, 0o17]", "[Integer(7) Integer(-7) Integer(7) Integer(7) Integer(31) Integer(15)]");
        check(
            "[18446744073709551615, 1e3, .5, 1.]",
            "[Unsigned(18446744073709551615) Float(1000.0) Float(0.5) Float(1.0)]",
        );
        check(
            "[.inf, 0x-1, 1_000, inf, nan]",
            "[Text(\".inf\") Text(\"0x-1\") Text(\"1_000\") Text(\"inf\") Text(\"nan\")]",
        );
        check("['7', \"true\", '', 30s]", "[Text(\"7\") Text(\"true\") Text(\"\") Text(\"30s\")]");
    }

    #[test]
    fn many_comments_do_not_change_the_tree() {
        let comments = "  # one more\n".repeat(200);
        check(&format!("a:\n{comments}  - b\n{comments}"), "{Text(\"a\")=[Text(\"b\")]}");
        check(&format!("{comments}a:\n{comments}"), "{Text(\"a\")=Null}");
    }

    #[test]
    fn aliases_repeat_values_and_merge_keys_add_fields() {
        check("[&a x, *a, &b [*a], *b]", "[Text(\"x\") Text(\"x\") [Text(\"x\")] [Text(\"x\")]]");
        let base = "[&a {x: 1, y: 1}, {<<: *a, y: 2}, {y: 3, <<: [*a, {z: 4}]}]";
        let merged = parse_yaml(base).unwrap();
        let NodeValue::List(maps) = &merged.value else { panic!("{merged:?}") };
        assert_eq!(describe_node(&maps[1]), "{Text(\"y\")=Integer(2) Text(\"x\")=Integer(1)}");
        assert_eq!(describe_node(&maps[2]), "{Text(\"y\")=Integer(3) Text(\"x\")=Integer(1) Text(\"z\")=Integer(4)}");
        assert_eq!(&base[maps[1].at.start..][..1], "{", "a map begins where it is written");
    }

    #[test]
    fn tags_lists_as_keys_and_merged_texts_are_refused() {
        for (text, message) in [
            ("a: !!str 7", "tags are not supported"),
            ("!secret {a: b}", "tags are not supported"),
            ("[a]: b", "a list or a map cannot be a key"),
            ("{<<: text}", "`<<` takes a map"),
            ("{a: 1, 'a': 2}", "the key `a` is given twice"),
            ("{1: a, 1: b}", "this key is given twice"),
            ("{'<<': a, '<<': b}", "the key `<<` is given twice"),
        ] {
            let problem = parse_yaml(text).unwrap_err();
            assert!(problem.message.contains(message), "{text}: {problem:?}");
        }
    }
}
