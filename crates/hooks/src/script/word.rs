//! A word of shell text, with what is known about it before anything runs.

use super::evaluators::file_name;

/// What a word turned out to be.
#[derive(Debug, Default)]
pub(super) struct Word {
    /// What the program gets, where that is certain already.
    pub literal: Option<String>,
    /// Its beginning, as far as it is letters as they stand: where assignments are recognised.
    pub bare: String,
    /// Its beginning, as far as it is certain already, quoted or not: where options are recognised.
    pub known: String,
    /// Whether nothing in it is quoted: only then it can be a reserved word.
    pub plain: bool,
    /// Whether it may become several words, or none.
    pub splits: bool,
    /// Whether it may be gone before a shell sees it.
    pub vanishes: bool,
    /// Free text in it, as indices of marks.
    pub marks: Vec<usize>,
    /// Whether free text in it stands outside double quotes, where the shell splits it.
    pub unquoted: bool,
    /// Whether it begins with a value that begins with a dash.
    pub dash: bool,
}

impl Word {
    pub fn new() -> Self {
        Self { literal: Some(String::new()), plain: true, ..Self::default() }
    }

    /// A character that means itself.
    pub fn push(&mut self, c: char) {
        if self.plain && self.literal.is_some() {
            self.bare.push(c);
        }
        self.push_quoted(c);
    }

    pub fn push_quoted(&mut self, c: char) {
        if let Some(literal) = &mut self.literal {
            literal.push(c);
            self.known.push(c);
        }
    }

    /// The name before the `=` of an assignment.
    pub fn assigned(&self) -> Option<&str> {
        let (name, _) = self.bare.split_once('=')?;
        let name = name.strip_suffix('+').unwrap_or(name);
        is_name(name).then_some(name)
    }

    /// The program that it names, without its directory.
    pub fn program(&self) -> Option<&str> {
        self.literal.as_deref().map(file_name)
    }
}

fn is_name(text: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.chars().all(word) && text.starts_with(|c: char| !c.is_ascii_digit())
}
