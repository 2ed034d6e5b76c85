//! What the YAML parser says about a file that is not YAML, with a hint for the commonest mistakes.

use std::ops::Range;

use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::granit_parser::ErrorKind;
use serde_saphyr::localizer::ExternalMessageSource;
use serde_saphyr::{Error, Location, MessageFormatter, UserMessageFormatter};

use super::error::{Problem, quoted};
use super::yaml::{DEPTH, NODES, range};

/// What text without quotes cannot begin with.
const SIGNS: [char; 7] = ['{', '[', '@', '*', '&', '!', '%'];
pub const QUOTES: &str = "put text that begins with one of `{[@*&!%` in quotes";

pub fn translate(error: &Error, text: &str) -> Problem {
    let at = error.location().map(|location| place(location, text));
    let problem = match error {
        Error::AliasError { error, .. } => return translate(error, text),
        Error::DuplicateMappingKey { key, .. } => {
            Problem::new(format!("the key {} is given twice", quoted(key.as_deref().unwrap_or_default())))
                .suggest("keep one of them".to_owned())
        }
        Error::MultipleDocuments { .. } | Error::Budget { breach: BudgetBreach::Documents { .. }, .. } => {
            Problem::new("a second document starts here").suggest("remove the `---`".to_owned())
        }
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. } => too_much(),
        other if parser_error(other) == Some(&ErrorKind::RecursionLimitExceeded) => too_much(),
        other => Problem::new(format!("not valid YAML: {}", UserMessageFormatter.format_message(other))).suggest(
            parser_error(other).and_then(hint).or_else(|| quotes(at.as_ref()?.start, text)).map(str::to_owned),
        ),
    };
    Problem { at, ..problem }
}

/// Returns a hint for text without quotes that begins with a sign of YAML: at this place, or before it in its line.
fn quotes(at: usize, text: &str) -> Option<&'static str> {
    let line = text[..at].rsplit('\n').next()?;
    let values = [&text[at..], line.rsplit_once(": ").map_or("", |(_, value)| value)];
    values.iter().any(|value| value.trim_start().starts_with(SIGNS)).then_some(QUOTES)
}

fn too_much() -> Problem {
    Problem::new(format!("too much YAML: at most {NODES} values in {DEPTH} levels, with what aliases repeat"))
}

fn parser_error(error: &Error) -> Option<&ErrorKind> {
    match error {
        Error::ExternalMessage { source, .. } => match &**source {
            ExternalMessageSource::Parser(error) => Some(error.kind()),
            _ => None,
        },
        _ => None,
    }
}

/// Returns what to do about the mistakes that people make most.
fn hint(kind: &ErrorKind) -> Option<&'static str> {
    use ErrorKind as K;
    match kind {
        K::TabNotAllowed
        | K::TabInBlockIndentation
        | K::TabInIndentation
        | K::TabInPlainScalar
        | K::TabAtBlockScalarStart
        | K::InvalidBlockEntryWhitespace
        | K::InvalidMappingValueWhitespace => Some("indent with spaces, not with tabs"),
        K::UnclosedQuotedScalar | K::InvalidQuotedScalarIndent => Some("close the quote that was opened before"),
        K::MappingValueNotAllowed => Some("put text that contains `: ` in quotes, or check the indentation"),
        _ => None,
    }
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
    use super::super::pictures_tests::pictures;

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
        error: not valid YAML: tabs disallowed within this context (block indentation)
         --> config.yaml:2:2
          |
        2 |  stop: []
          |  ^
        hint: indent with spaces, not with tabs

        error: not valid YAML: while scanning a plain scalar, found a tab
         --> config.yaml:3:16
          |
        3 |     - command: ./check.sh
          |                ^
        hint: indent with spaces, not with tabs

        error: not valid YAML: invalid indentation in multiline quoted scalar
         --> config.yaml:2:1
          |
        2 | version: 1
          | ^
        hint: close the quote that was opened before

        error: not valid YAML: mapping values are not allowed in this context
         --> config.yaml:1:14
          |
        1 | agent: claude: fast
          |              ^
        hint: put text that contains `: ` in quotes, or check the indentation

        error: not valid YAML: illegal placement of ':' indicator
         --> config.yaml:2:8
          |
        2 | version: 1
          |        ^

        error: not valid YAML: while parsing a block mapping, did not find expected key
         --> config.yaml:3:2
          |
        3 |  on_error: []
          |  ^

        error: not valid YAML: unexpected character: `@'
         --> config.yaml:1:8
          |
        1 | agent: @claude
          |        ^
        hint: put text that begins with one of `{[@*&!%` in quotes

        error: a second document starts here
         --> config.yaml:2:1
          |
        2 | ---
          | ^^^
        hint: remove the `---`

        error: not valid YAML: reference to unknown value
         --> config.yaml:1:8
          |
        1 | agent: *claude
          |        ^
        hint: put text that begins with one of `{[@*&!%` in quotes

        error: not valid YAML: while parsing a quoted scalar, found unknown escape character
         --> config.yaml:1:8
          |
        1 | agent: "a\q"
          |        ^
        "#);
        let filled = pictures(&["hooks:\n  stop:\n    - command: {{error}} > x\n", "test_command: [ -f x ] && y\n"]);
        assert_eq!(filled.matches(super::QUOTES).count(), 2, "{filled}");
    }
}
