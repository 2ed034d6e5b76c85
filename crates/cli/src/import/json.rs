//! JSON as agents' settings are written: with comments and commas before a closing bracket, every value with its place.
//!
//! Invariants:
//! - A `//` or `/*` within a text is text.
//! - A key that is given twice is an error: programs do not agree on which one counts.

use std::ops::Range;

use crate::config::{Node, Problem, Value, quoted};

/// Lists and objects within each other.
const DEPTH: usize = 64;

/// The tree of a file.
pub fn parse(text: &str) -> Result<Node, Problem> {
    let mut parser = Parser { text, at: 0 };
    parser.skip()?;
    if parser.rest().is_empty() {
        return Err(Problem::new("there is nothing in this file").suggest("expected a JSON object: `{…}`".to_owned()));
    }
    let node = parser.value(0)?;
    parser.skip()?;
    match parser.rest().is_empty() {
        true => Ok(node),
        false => Err(parser.wrong("something follows the end of the JSON value")),
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn next(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn wrong(&self, message: impl Into<String>) -> Problem {
        let length = self.next().map_or(0, char::len_utf8);
        Problem::new(message).at(self.at..self.at + length)
    }

    /// What was expected here, and what is there.
    fn expected(&self, what: &str) -> Problem {
        match self.next() {
            None => self.wrong(format!("expected {what}, and the file ends here")),
            Some('\'') => self.wrong(format!("expected {what}")).suggest("JSON has double quotes only".to_owned()),
            Some(found) => self.wrong(format!("expected {what}, found {}", quoted(&found.to_string()))),
        }
    }

    fn take(&mut self, sign: char) -> bool {
        let found = self.next() == Some(sign);
        self.at += if found { sign.len_utf8() } else { 0 };
        found
    }

    /// Goes over blanks and comments.
    fn skip(&mut self) -> Result<(), Problem> {
        loop {
            let rest = self.rest();
            let blank = rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
            self.at += blank;
            let rest = self.rest();
            if rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if let Some(comment) = rest.strip_prefix("/*") {
                let Some(length) = comment.find("*/") else {
                    return Err(Problem::new("this comment is not closed").at(self.at..self.at + 2));
                };
                self.at += length + "/**/".len();
            } else if blank == 0 {
                return Ok(());
            }
        }
    }

    fn value(&mut self, depth: usize) -> Result<Node, Problem> {
        if depth > DEPTH {
            return Err(self.wrong(format!("nested too deeply: at most {DEPTH} levels are taken")));
        }
        let start = self.at;
        let value = match self.next() {
            Some('{') => self.object(depth)?,
            Some('[') => self.list(depth)?,
            Some('"') => Value::Text(self.string()?),
            Some('-' | '0'..='9') => self.number()?,
            Some(letter) if letter.is_ascii_alphabetic() => self.word()?,
            _ => return Err(self.expected("a JSON value")),
        };
        Ok(Node { at: start..self.at, value })
    }

    fn object(&mut self, depth: usize) -> Result<Value, Problem> {
        let mut entries: Vec<(Node, Node)> = Vec::new();
        self.at += 1;
        loop {
            self.skip()?;
            if self.take('}') {
                return Ok(Value::Map(entries));
            }
            if self.next() != Some('"') {
                return Err(self.expected("a key in double quotes, or `}`"));
            }
            let start = self.at;
            let key = self.string()?;
            let at = start..self.at;
            if let Some((first, _)) =
                entries.iter().find(|(other, _)| matches!(&other.value, Value::Text(name) if *name == key))
            {
                let line = self.text[..first.at.start].matches('\n').count() + 1;
                return Err(Problem::new(format!("the key {} is given twice", quoted(&key)))
                    .suggest(format!("the first one is on line {line}; keep one of them"))
                    .at(at));
            }
            self.skip()?;
            if !self.take(':') {
                return Err(self.expected("`:` after the key"));
            }
            self.skip()?;
            let value = self.value(depth + 1)?;
            entries.push((Node { at, value: Value::Text(key) }, value));
            self.skip()?;
            if !self.take(',') && self.next() != Some('}') {
                return Err(self.expected("`,` or `}`"));
            }
        }
    }

    fn list(&mut self, depth: usize) -> Result<Value, Problem> {
        let mut nodes = Vec::new();
        self.at += 1;
        loop {
            self.skip()?;
            if self.take(']') {
                return Ok(Value::List(nodes));
            }
            nodes.push(self.value(depth + 1)?);
            self.skip()?;
            if !self.take(',') && self.next() != Some(']') {
                return Err(self.expected("`,` or `]`"));
            }
        }
    }

    fn word(&mut self) -> Result<Value, Problem> {
        let rest = self.rest();
        let length = rest.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let value = match &rest[..length] {
            "null" => Value::Null,
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            word => {
                return Err(Problem::new(format!("{} is no JSON value", quoted(word)))
                    .suggest("text stands in double quotes".to_owned())
                    .at(self.at..self.at + length));
            }
        };
        self.at += length;
        Ok(value)
    }

    fn number(&mut self) -> Result<Value, Problem> {
        let rest = self.rest();
        let length = rest.find(|letter: char| !matches!(letter, '0'..='9' | '-' | '+' | '.' | 'e' | 'E'));
        let at = self.at..self.at + length.unwrap_or(rest.len());
        self.at = at.end;
        // The rest of what JSON says about numbers is known there.
        let number: serde_json::Number = serde_json::from_str(&self.text[at.clone()])
            .map_err(|_| Problem::new(format!("{} is no number", quoted(&self.text[at.clone()]))).at(at))?;
        Ok(match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(number), ..) => Value::Integer(number),
            (_, Some(number), _) => Value::Unsigned(number),
            (.., number) => Value::Float(number.unwrap_or(f64::INFINITY)),
        })
    }

    fn string(&mut self) -> Result<String, Problem> {
        let start = self.at;
        let rest = &self.text[start + 1..];
        let mut escaped = false;
        let end = rest.find(|letter: char| {
            let closes = letter == '"' && !escaped;
            escaped = letter == '\\' && !escaped;
            closes || letter == '\n'
        });
        let Some(end) = end.filter(|end| rest[*end..].starts_with('"')) else {
            return Err(Problem::new("this text is not closed").at(start..start + 1));
        };
        let at = start..start + 1 + end + 1;
        self.at = at.end;
        // What follows a backslash, and which characters may stand as they are, is known there.
        serde_json::from_str(&self.text[at.clone()]).map_err(|_| self.bad_text(at))
    }

    fn bad_text(&self, at: Range<usize>) -> Problem {
        let control = self.text[at.clone()].find(|letter: char| letter < ' ').map(|offset| at.start + offset);
        match control {
            Some(control) => Problem::new("a control character stands in this text")
                .suggest("write it with a backslash: `\\t`".to_owned())
                .at(control..control + 1),
            None => Problem::new("a backslash in this text is followed by something unknown")
                .suggest("write `\\\\` for a backslash".to_owned())
                .at(at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(node: &Node) -> String {
        match &node.value {
            Value::Null => "null".to_owned(),
            Value::Bool(value) => value.to_string(),
            Value::Integer(value) => value.to_string(),
            Value::Unsigned(value) => value.to_string(),
            Value::Float(value) => value.to_string(),
            Value::Text(text) => format!("{text:?}"),
            Value::List(nodes) => format!("[{}]", nodes.iter().map(shown).collect::<Vec<_>>().join(",")),
            Value::Map(entries) => {
                let entries = entries.iter().map(|(key, value)| format!("{}:{}", shown(key), shown(value)));
                format!("{{{}}}", entries.collect::<Vec<_>>().join(","))
            }
        }
    }

    #[test]
    fn comments_and_last_commas_are_read_over() {
        let check = |text: &str, expected: &str| assert_eq!(shown(&parse(text).unwrap()), expected, "{text}");
        check(r#" {"a": [1, -2.5, "x"], "b": null} "#, r#"{"a":[1,-2.5,"x"],"b":null}"#);
        check("// first\n{ /* a */ \"a\" /* b */ : /**/ true, // end\n}", r#"{"a":true}"#);
        check("[1, 2,]", "[1,2]");
        check("[]", "[]");
        check(r#"["http://x/*y*/", "a\"//b", "\\", "\u00e9\ud83d\ude00"]"#, r#"["http://x/*y*/","a\"//b","\\","é😀"]"#);
        check("18446744073709551615", "18446744073709551615");
        check("\t{\r\n}\r\n", "{}");
    }

    #[test]
    fn what_is_wrong_has_its_place() {
        let check = |text: &str, message: &str, marked: &str| {
            let problem = parse(text).unwrap_err();
            let at = problem.at.clone().unwrap_or_default();
            assert_eq!((problem.message.as_str(), &text[at]), (message, marked), "{text}");
        };
        check("", "there is nothing in this file", "");
        check("{", "expected a key in double quotes, or `}`, and the file ends here", "");
        check("{'a': 1}", "expected a key in double quotes, or `}`", "'");
        check(r#"{"a" 1}"#, "expected `:` after the key, found `1`", "1");
        check(r#"{"a": 1 "b": 2}"#, "expected `,` or `}`, found `\"`", "\"");
        check(r#"{"a": 1, "a": 2}"#, "the key `a` is given twice", "\"a\"");
        check("[1 2]", "expected `,` or `]`, found `2`", "2");
        check("[,]", "expected a JSON value, found `,`", ",");
        check("{} {}", "something follows the end of the JSON value", "{");
        check("nul", "`nul` is no JSON value", "nul");
        check("01", "`01` is no number", "01");
        check("-", "`-` is no number", "-");
        check("\"abc", "this text is not closed", "\"");
        check("\"abc\n\"", "this text is not closed", "\"");
        check("\"a\tb\"", "a control character stands in this text", "\t");
        check(r#""a\q""#, "a backslash in this text is followed by something unknown", r#""a\q""#);
        check(r#""\ud83d""#, "a backslash in this text is followed by something unknown", r#""\ud83d""#);
        check("/* never", "this comment is not closed", "/*");
        check("hooks: {}", "`hooks` is no JSON value", "hooks");
        let deep = "[".repeat(100_000);
        assert_eq!(parse(&deep).unwrap_err().message, "nested too deeply: at most 64 levels are taken");
    }
}
