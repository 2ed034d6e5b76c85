//! A word of shell text, with the facts that are known before anything runs.

use super::evaluators::file_name;

/// A scanned word.
#[derive(Debug, Default)]
pub(super) struct ShellWord {
    /// The argument that the program gets, if it is certain.
    pub literal: Option<String>,
    /// The unquoted literal beginning, in which assignments are recognised.
    pub bare: String,
    /// The certain beginning, quoted or not, in which options are recognised.
    pub known: String,
    /// Whether no part is quoted: only then it can be a reserved word.
    pub plain: bool,
    /// Whether the word may become several words, or none.
    pub splits: bool,
    /// Whether the word may disappear before a shell sees it.
    pub vanishes: bool,
    /// Free text in the word, as indices of marks.
    pub marks: Vec<usize>,
    /// Whether free text occurs outside double quotes, where the shell splits it.
    pub unquoted: bool,
    /// Whether the word begins with a value that begins with a dash.
    pub dash: bool,
}

impl ShellWord {
    pub fn new() -> Self {
        Self { literal: Some(String::new()), plain: true, ..Self::default() }
    }

    /// Adds an unquoted literal character.
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

    /// Returns the name before the `=` of an assignment.
    pub fn assigned_variable(&self) -> Option<&str> {
        let (name, _) = self.bare.split_once('=')?;
        let name = name.strip_suffix('+').unwrap_or(name);
        is_variable_name(name).then_some(name)
    }

    /// Returns the name of the program, without its directory.
    pub fn program_name(&self) -> Option<&str> {
        self.literal.as_deref().map(file_name)
    }
}

fn is_variable_name(text: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.chars().all(word) && text.starts_with(|c: char| !c.is_ascii_digit())
}
