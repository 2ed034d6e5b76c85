//! Error messages for a file that is not YAML, with hints for common mistakes.

use serde_saphyr::granit_parser::{ErrorKind, ScanError};

use super::error::ConfigProblem;
use super::yaml::bounds_problem;

/// The characters that unquoted text cannot begin with.
const YAML_INDICATORS: [char; 7] = ['{', '[', '@', '*', '&', '!', '%'];
pub const QUOTES_HINT: &str = "put text that begins with one of `{[@*&!%` in quotes";

pub fn explain_scan_error(error: &ScanError, text: &str) -> ConfigProblem {
    let start = text.floor_char_boundary(error.marker().byte_offset().unwrap_or(text.len()));
    let problem = match error.kind() {
        ErrorKind::RecursionLimitExceeded => bounds_problem(),
        kind => ConfigProblem::new(format!("not valid YAML: {}", error.info()))
            .with_suggestion(hint_for_error(kind).or_else(|| find_quotes_hint(start, text)).map(str::to_owned)),
    };
    let end = text[start..].chars().next().map_or(start, |letter| start + letter.len_utf8());
    problem.with_range(start..end)
}

/// Returns a hint for unquoted text that begins with a YAML indicator: at this offset, or earlier in its line.
fn find_quotes_hint(at: usize, text: &str) -> Option<&'static str> {
    let line = text[..at].rsplit('\n').next()?;
    let values = [&text[at..], line.rsplit_once(": ").map_or("", |(_, value)| value)];
    values.iter().any(|value| value.trim_start().starts_with(YAML_INDICATORS)).then_some(QUOTES_HINT)
}

/// Returns a hint for common mistakes.
fn hint_for_error(kind: &ErrorKind) -> Option<&'static str> {
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

#[cfg(test)]
mod tests {
    use crate::tests::diagnostics::render_problems;

    #[test]
    fn invalid_yaml_is_explained_with_hint() {
        let shown = render_problems(&[
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

        error: not valid YAML: while parsing node, found unknown anchor
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
        let filled =
            render_problems(&["hooks:\n  stop:\n    - command: {{error}} > x\n", "test_command: [ -f x ] && y\n"]);
        assert_eq!(filled.matches(super::QUOTES).count(), 2, "{filled}");
    }
}
