//! Trees as bytes that are few and quick to read: places beside the last one, and no text that stands in the source.
//!
//! Invariants:
//! - What was packed unpacks to the same tree, places included, beside the same source.
//! - Whatever the bytes, unpacking ends, and takes no more memory than they are long, times a small number.

use std::ops::Range;

use super::super::yaml::{DEPTH, Node, Value};

const NULL: u8 = 0;
const FALSE: u8 = 1;
const TRUE: u8 = 2;
const INTEGER: u8 = 3;
const UNSIGNED: u8 = 4;
const FLOAT: u8 = 5;
const TEXT: u8 = 6;
const LIST: u8 = 7;
const MAP: u8 = 8;
/// A text that stands in the source as it is.
const PLAIN: u8 = 9;
/// The same, in quotes.
const QUOTED: u8 = 10;

/// Bytes in the making.
pub struct Packed<'a> {
    pub bytes: Vec<u8>,
    source: &'a str,
    /// Where the last node began.
    last: usize,
}

impl<'a> Packed<'a> {
    pub fn beside(source: &'a str) -> Self {
        Self { bytes: Vec::new(), source, last: 0 }
    }

    /// Seven bits a byte, the lowest first.
    pub fn number(&mut self, number: usize) {
        let mut rest = number;
        while rest >= 0x80 {
            self.bytes.push(low_bits(rest) | 0x80);
            rest >>= 7;
        }
        self.bytes.push(low_bits(rest));
    }

    pub fn text(&mut self, text: &str) {
        self.number(text.len());
        self.bytes.extend_from_slice(text.as_bytes());
    }

    pub fn node(&mut self, node: &Node) {
        self.place(&node.at);
        match &node.value {
            Value::Null => self.bytes.push(NULL),
            Value::Bool(value) => self.bytes.push(if *value { TRUE } else { FALSE }),
            Value::Integer(value) => self.fixed(INTEGER, value.to_le_bytes()),
            Value::Unsigned(value) => self.fixed(UNSIGNED, value.to_le_bytes()),
            Value::Float(value) => self.fixed(FLOAT, value.to_le_bytes()),
            Value::Text(text) if stands(self.source, &node.at, PLAIN) == Some(text) => self.bytes.push(PLAIN),
            Value::Text(text) if stands(self.source, &node.at, QUOTED) == Some(text) => self.bytes.push(QUOTED),
            Value::Text(text) => {
                self.bytes.push(TEXT);
                self.text(text);
            }
            Value::List(nodes) => {
                self.bytes.push(LIST);
                self.number(nodes.len());
                nodes.iter().for_each(|node| self.node(node));
            }
            Value::Map(entries) => {
                self.bytes.push(MAP);
                self.number(entries.len());
                for (key, value) in entries {
                    self.node(key);
                    self.node(value);
                }
            }
        }
    }

    /// How far from the last one, with the direction in the lowest bit, and how long.
    fn place(&mut self, at: &Range<usize>) {
        let backwards = at.start < self.last;
        self.number(at.start.abs_diff(self.last).wrapping_mul(2) | usize::from(backwards));
        self.number(at.end.wrapping_sub(at.start));
        self.last = at.start;
    }

    fn fixed(&mut self, kind: u8, bytes: [u8; 8]) {
        self.bytes.push(kind);
        self.bytes.extend_from_slice(&bytes);
    }
}

fn low_bits(number: usize) -> u8 {
    u8::try_from(number & 0x7f).expect("seven bits fit into a byte")
}

/// What stands at a place of the source, as it is or within its quotes.
fn stands<'a>(source: &'a str, at: &Range<usize>, how: u8) -> Option<&'a str> {
    match how {
        QUOTED => source.get(at.start.checked_add(1)?..at.end.checked_sub(1)?),
        _ => source.get(at.clone()),
    }
}

/// What is left to be read. Every question is answered `None` once the bytes are not what they should be.
pub struct Unpacking<'a> {
    pub rest: &'a [u8],
    source: &'a str,
    last: usize,
}

impl<'a> Unpacking<'a> {
    pub fn beside(source: &'a str, bytes: &'a [u8]) -> Self {
        Self { rest: bytes, source, last: 0 }
    }

    pub fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (first, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(first)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    pub fn number(&mut self) -> Option<usize> {
        let mut number = 0_usize;
        for shift in (0..usize::BITS).step_by(7) {
            let [byte] = self.array()?;
            let bits = usize::from(byte & 0x7f);
            number |= bits.checked_shl(shift).filter(|shifted| shifted >> shift == bits)?;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    pub fn text(&mut self) -> Option<&'a str> {
        let length = self.number()?;
        str::from_utf8(self.bytes(length)?).ok()
    }

    pub fn node(&mut self) -> Option<Node> {
        self.node_within(DEPTH + 2)
    }

    fn node_within(&mut self, depth: usize) -> Option<Node> {
        let depth = depth.checked_sub(1)?;
        let at = self.place()?;
        let [kind] = self.array()?;
        let value = match kind {
            NULL => Value::Null,
            FALSE => Value::Bool(false),
            TRUE => Value::Bool(true),
            INTEGER => Value::Integer(i64::from_le_bytes(self.array()?)),
            UNSIGNED => Value::Unsigned(u64::from_le_bytes(self.array()?)),
            FLOAT => Value::Float(f64::from_le_bytes(self.array()?)),
            TEXT => Value::Text(self.text()?.to_owned()),
            PLAIN | QUOTED => Value::Text(stands(self.source, &at, kind)?.to_owned()),
            LIST => Value::List(self.many(|this| this.node_within(depth))?),
            MAP => Value::Map(self.many(|this| Some((this.node_within(depth)?, this.node_within(depth)?)))?),
            _ => return None,
        };
        Some(Node { at, value })
    }

    fn place(&mut self) -> Option<Range<usize>> {
        let moved = self.number()?;
        let start = match moved % 2 {
            0 => self.last.checked_add(moved / 2)?,
            _ => self.last.checked_sub(moved / 2)?,
        };
        self.last = start;
        Some(start..start.checked_add(self.number()?)?)
    }

    /// So many things as a number says that comes first. Nothing is set aside for them before they are there.
    pub fn many<T>(&mut self, mut one: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut all = Vec::new();
        for _ in 0..self.number()? {
            all.push(one(self)?);
        }
        Some(all)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::yaml;
    use super::*;

    fn packed(yaml: &str) -> (String, Vec<u8>) {
        let tree = yaml::parse(yaml).unwrap();
        let mut packed = Packed::beside(yaml);
        packed.node(&tree);
        (format!("{tree:?}"), packed.bytes)
    }

    #[test]
    fn a_tree_is_the_same_afterwards() {
        for yaml in [
            "",
            "~",
            "[true, false, 0, -1, 9223372036854775807, 18446744073709551615, 1.5, -2e9, '', \"ä\\n\"]",
            "[plain, 'quoted', \"twice\", 'it''s', \"a\\tb\", '\"', ä, 'ö', '''', !!str 5]",
            "{a: {b: [1, {c: d}], e: &x [f]}, g: *x, 7: eight}",
            "a: |\n  many\n  lines\nb: >-\n  folded\n  text\n",
        ] {
            let (tree, bytes) = packed(yaml);
            let mut unpacking = Unpacking::beside(yaml, &bytes);
            assert_eq!(format!("{:?}", unpacking.node().unwrap()), tree, "{yaml}");
            assert!(unpacking.rest.is_empty());
        }
    }

    #[test]
    fn what_stands_in_the_source_is_not_repeated() {
        let yaml = "{some long key: some long text, another: 'quoted text', third: \"the same\"}";
        let (_, bytes) = packed(yaml);
        assert!(bytes.len() < 30, "{}: {bytes:?}", bytes.len());
    }

    #[test]
    fn numbers_of_any_size() {
        for number in [0, 1, 127, 128, 16_383, 16_384, usize::MAX - 1, usize::MAX] {
            let mut packed = Packed::beside("");
            packed.number(number);
            assert_eq!(Unpacking::beside("", &packed.bytes).number(), Some(number));
        }
        assert_eq!(Unpacking::beside("", &[0xff; 20]).number(), None);
    }

    #[test]
    fn damaged_bytes_end() {
        let yaml = "{a: {b: [1, {c: d}], e: [f]}, g: 'some text', 7: \"ei\\tght\"}";
        let (_, bytes) = packed(yaml);
        for length in 0..bytes.len() {
            assert!(Unpacking::beside(yaml, &bytes[..length]).node().is_none(), "{length}");
        }
        for place in 0..bytes.len() {
            for byte in 0..=u8::MAX {
                let mut damaged = bytes.clone();
                damaged[place] = byte;
                let _ = Unpacking::beside(yaml, &damaged).node();
            }
        }
        let nested = [0, 0, LIST, 1].repeat(100_000);
        assert!(Unpacking::beside("", &nested).node().is_none());
    }
}
