//! Settings that cannot be edited without guessing.

use toml_edit::TomlError;

/// Why nothing can be written into a settings file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    #[error("line {line}, column {column}: {what}")]
    Syntax { line: usize, column: usize, what: String },
    #[error("`{key}` is {found}, not {wanted}")]
    Kind { key: String, found: &'static str, wanted: &'static str },
    #[error("`{key}` is there twice")]
    Twice { key: String },
    #[error("`{key}` is there already, and runs something else")]
    Taken { key: String },
    #[error("nothing can be added to `{key}` in the way it is written")]
    Closed { key: String },
}

impl Unfit {
    pub(super) fn json(error: &jsonc_parser::errors::ParseError) -> Self {
        let what = error.kind().to_string();
        Self::Syntax { line: error.line_display(), column: error.column_display(), what: uncapitalised(&what) }
    }

    pub(super) fn toml(error: &TomlError, text: &str) -> Self {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        Self::Syntax { line, column, what: error.message().trim().to_owned() }
    }
}

fn uncapitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_ascii_lowercase()).into_iter().chain(letters).collect()
}
