//! What the YAML parser has to say, in the words of whoever wrote the file.
//!
//! The parser names the place where it gave up; where a mistake began earlier (an open quote, a tab on the next line),
//! the place is corrected as well as the text alone allows.

use std::ops::Range;

use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::granit_parser::ErrorKind;
use serde_saphyr::localizer::ExternalMessageSource;
use serde_saphyr::{Error, Location};

use super::error::{Problem, quoted};
use super::yaml::{DEPTH, NODES, range};

pub fn translate(error: &Error, text: &str) -> Problem {
    let at = error.location().map(|location| place(location, text));
    let problem = match error {
        Error::AliasError { error, .. } => return translate(error, text),
        Error::ExternalMessage { source, .. } => match &**source {
            ExternalMessageSource::Parser(error) => return syntax(error.kind(), at.unwrap_or_default(), text),
            _ => Problem::new("not valid YAML"),
        },
        Error::DuplicateMappingKey { key, .. } => duplicate(key.as_deref(), at.clone(), text),
        Error::MultipleDocuments { .. } | Error::Budget { breach: BudgetBreach::Documents { .. }, .. } => {
            Problem::new("a second document starts here; one is all that a file has").suggest(said("remove the `---`"))
        }
        Error::Budget { breach: BudgetBreach::Depth { .. }, .. } => too_deep(),
        Error::Budget { breach: BudgetBreach::Nodes { .. } | BudgetBreach::Events { .. }, .. } => {
            Problem::new(format!("too many values: at most {NODES} are taken"))
        }
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. } => Problem::new("aliases repeat too much"),
        Error::RecursiveReferencesRequireWeakTypes { .. } => Problem::new("an alias stands inside what it repeats"),
        Error::UnknownAnchor { .. } => no_anchor(),
        Error::NonFiniteFloat { value, .. } => Problem::new(format!("{} is not a usable number", quoted(value))),
        Error::MergeValueNotMapOrSeqOfMaps { .. } => Problem::new("`<<` takes a map, or a list of maps"),
        other => Problem::new(format!("not valid YAML: {}", without_place(other))),
    };
    Problem { at, ..problem }
}

fn said(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn too_deep() -> Problem {
    Problem::new(format!("nested too deeply: at most {DEPTH} levels are taken"))
}

fn no_anchor() -> Problem {
    Problem::new("this alias repeats something that has no such name")
        .suggest(said("text that starts with `*` or `&` needs quotes"))
}

/// The parser adds the place to its message; we say it ourselves.
fn without_place(error: &Error) -> String {
    let message = error.to_string();
    message.split(" at line ").next().unwrap_or_default().to_owned()
}

fn duplicate(key: Option<&str>, at: Option<Range<usize>>, text: &str) -> Problem {
    let key = key.unwrap_or_default();
    let first = at.and_then(|at| first_line_of(key, at.start, text));
    Problem::new(format!("the key {} is given twice", quoted(key)))
        .suggest(first.map(|line| format!("the first one is on line {line}; keep one of them")))
}

/// The line above `offset` on which a block map has the same key already, counted from one.
fn first_line_of(key: &str, offset: usize, text: &str) -> Option<usize> {
    let begin = text[..offset].rfind('\n').map_or(0, |newline| newline + 1);
    let depth = offset - begin;
    let above: Vec<_> = text[..begin].lines().collect();
    let inside = |line: &&&str| {
        let indent = line.len() - line.trim_start_matches([' ', '-']).len();
        indent >= depth || line.trim_start().is_empty() || line.trim_start().starts_with('#')
    };
    let found = above.iter().rev().take_while(inside).position(|line| {
        let rest = line.get(depth..).and_then(|rest| rest.strip_prefix(key));
        rest.is_some_and(|rest| rest.trim_start().starts_with(':'))
    })?;
    Some(above.len() - found)
}

fn syntax(kind: &ErrorKind, at: Range<usize>, text: &str) -> Problem {
    use ErrorKind as K;
    let (message, hint) = match kind {
        K::TabNotAllowed
        | K::TabInBlockIndentation
        | K::TabInIndentation
        | K::TabInPlainScalar
        | K::TabAtBlockScalarStart
        | K::InvalidBlockEntryWhitespace
        | K::InvalidMappingValueWhitespace => {
            return Problem::new("a tab where YAML wants spaces").suggest(said("indent with spaces")).at(tab(at, text));
        }
        K::UnclosedQuotedScalar | K::InvalidQuotedScalarIndent | K::DocumentIndicatorInQuotedScalar => {
            return Problem::new("this quote is not closed").at(opening_quote(at, text));
        }
        K::UnclosedFlowCollection { open } => (format!("this `{open}` is not closed"), ""),
        K::MismatchedFlowCollectionEnd { open, close } => (format!("`{close}` cannot close `{open}`"), ""),
        K::MisplacedFlowCollectionEnd => {
            ("this bracket closes nothing".into(), "text that starts with a bracket needs quotes")
        }
        K::ExpectedFlowMappingSeparator => ("expected `,` or `}` here".into(), ""),
        K::ExpectedFlowSequenceSeparator => ("expected `,` or `]` here".into(), ""),
        K::InvalidColonPlacement | K::FlowMappingValueAdjacentCollection => {
            ("a `:` is out of place here".into(), "is a bracket or a quote before it left open?")
        }
        K::MappingValueNotAllowed => (
            "a `: ` is out of place here".into(),
            "put text that contains `: ` in quotes; otherwise check the indentation",
        ),
        K::ExpectedBlockMappingKey | K::InvalidIndentation | K::InvalidSimpleKey | K::SimpleKeyExpected => (
            "this line does not fit the lines above it".into(),
            "keys of one map start in the same column, and each ends with `:`",
        ),
        K::ExpectedBlockSequenceEntry | K::BlockSequenceEntryNotAllowed | K::BlockEntryInFlowCollection => (
            "this line does not fit the list above it".into(),
            "entries of one list start with `- ` in the same column",
        ),
        K::UnexpectedCharacter { character } if character.is_control() => {
            let found = text[at.start..].find(*character).map_or(at.start, |offset| at.start + offset);
            let message = format!("the control character U+{:04X} is not allowed here", u32::from(*character));
            return Problem::new(message).at(found..found + character.len_utf8());
        }
        K::UnexpectedCharacter { character } => (format!("text cannot start with `{character}`"), "put it in quotes"),
        K::InvalidTrailingSingleQuotedScalar | K::InvalidTrailingDoubleQuotedScalar => {
            ("text follows a closing quote".into(), "put all of it into one pair of quotes")
        }
        K::UnknownQuotedScalarEscape | K::InvalidQuotedScalarHexEscape | K::InvalidUnicodeEscape => (
            "a backslash is followed by something unknown".into(),
            "write `\\\\` for a backslash, or use single quotes",
        ),
        K::UnknownAnchor | K::MissingAnchorOrAliasName => return no_anchor().at(at),
        K::RecursionLimitExceeded => return too_deep().at(at),
        other => (format!("not valid YAML: {other}"), ""),
    };
    Problem::new(message).suggest(Some(hint.to_owned()).filter(|hint| !hint.is_empty())).at(at)
}

/// The tab that is meant may stand on the line after the place that the parser names.
fn tab(at: Range<usize>, text: &str) -> Range<usize> {
    let begin = text[..at.start].rfind('\n').map_or(0, |newline| newline + 1);
    text[begin..].find('\t').map_or(at, |found| begin + found..begin + found + 1)
}

/// The parser notices an open quote where the next line begins.
fn opening_quote(at: Range<usize>, text: &str) -> Range<usize> {
    let quote = |c: char| c == '"' || c == '\'';
    if text[at.start..].starts_with(quote) {
        return at;
    }
    text[..at.start].rfind(quote).map_or(at, |found| found..found + 1)
}

/// Some places come as line and column only.
fn place(location: Location, text: &str) -> Range<usize> {
    if location.span().byte_offset().is_some() {
        let Range { start, end } = range(location);
        return text.floor_char_boundary(start)..text.floor_char_boundary(end);
    }
    let number = |n: u64| usize::try_from(n).unwrap_or(usize::MAX).saturating_sub(1);
    let before: usize = text.split_inclusive('\n').take(number(location.line())).map(str::len).sum();
    let mut characters = text[before..].char_indices().skip(number(location.column()));
    let start = characters.next().map_or(text.len(), |(offset, _)| before + offset);
    start..characters.next().map_or(text.len(), |(offset, _)| before + offset)
}

#[cfg(test)]
mod tests {
    use super::super::pictures::pictures;

    #[test]
    fn what_is_not_yaml() {
        let shown = pictures(&[
            "hooks:\n\tstop: []\n",
            "hooks:\n  stop:\n    - command: ./check.sh\n\t  timeout: 3\n",
            "agent: \"claude\nversion: 1\n",
            "agent: claude: fast\n",
            "secrets: [A, B\nversion: 1\n",
            "hooks:\n  stop: []\n on_error: []\n",
            "agent: @claude\n",
            "version: 1\n---\nversion: 1\n",
            "agent: *claude\n",
            "agent: \"a\\q\"\n",
        ]);
        insta::assert_snapshot!(shown, @r#"
        error: a tab where YAML wants spaces
         --> config.yaml:2:1
          |
        2 |  stop: []
          | ^
        hint: indent with spaces

        error: a tab where YAML wants spaces
         --> config.yaml:4:1
          |
        4 |    timeout: 3
          | ^
        hint: indent with spaces

        error: this quote is not closed
         --> config.yaml:1:8
          |
        1 | agent: "claude
          |        ^

        error: a `: ` is out of place here
         --> config.yaml:1:14
          |
        1 | agent: claude: fast
          |              ^
        hint: put text that contains `: ` in quotes; otherwise check the indentation

        error: a `:` is out of place here
         --> config.yaml:2:8
          |
        2 | version: 1
          |        ^
        hint: is a bracket or a quote before it left open?

        error: this line does not fit the lines above it
         --> config.yaml:3:2
          |
        3 |  on_error: []
          |  ^
        hint: keys of one map start in the same column, and each ends with `:`

        error: text cannot start with `@`
         --> config.yaml:1:8
          |
        1 | agent: @claude
          |        ^
        hint: put it in quotes

        error: a second document starts here; one is all that a file has
         --> config.yaml:2:1
          |
        2 | ---
          | ^^^
        hint: remove the `---`

        error: this alias repeats something that has no such name
         --> config.yaml:1:8
          |
        1 | agent: *claude
          |        ^
        hint: text that starts with `*` or `&` needs quotes

        error: a backslash is followed by something unknown
         --> config.yaml:1:8
          |
        1 | agent: "a\q"
          |        ^
        hint: write `\\` for a backslash, or use single quotes
        "#);
    }
}
