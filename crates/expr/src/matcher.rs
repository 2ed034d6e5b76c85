//! Tool matchers of hooks, in Claude Code's notation: a list of names, or a regular expression.
//!
//! As there, `\w`, `\d` and `(?i)` mean ASCII letters and digits. Tables for other letters would have to be relocated at every
//! start of the program, and tools have ASCII names.

use regex_lite::{Regex, RegexBuilder};

/// Maximum length of a matcher, and of its compiled form.
const MAX_MATCHER_BYTES: usize = 4 * 1024;
const MAX_COMPILED_BYTES: usize = 1024 * 1024;

/// A matcher that decides by a tool's name whether a hook runs.
#[derive(Debug, Clone)]
pub struct ToolMatcher(MatcherKind);

#[derive(Debug, Clone)]
enum MatcherKind {
    All,
    /// Exact names.
    Names(Vec<String>),
    /// A regular expression, found anywhere in the name.
    Pattern(Regex),
}

/// The reason why a matcher cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MatcherError {
    #[error("a matcher has at most {MAX_MATCHER_BYTES} bytes")]
    TooLong,
    #[error("this matcher names no tool")]
    NoNames,
    #[error("this is not a regular expression: {0}")]
    NotAPattern(String),
}

impl Default for ToolMatcher {
    /// Matches every tool.
    fn default() -> Self {
        Self(MatcherKind::All)
    }
}

impl ToolMatcher {
    pub fn parse(text: &str) -> Result<Self, MatcherError> {
        if text.len() > MAX_MATCHER_BYTES {
            return Err(MatcherError::TooLong);
        }
        if matches!(text.trim(), "" | "*") {
            return Ok(Self::default());
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ' ' | ',' | '|');
        match text.chars().all(plain) {
            true => Self::parse_names(text),
            false => Self::parse_pattern(text),
        }
    }

    fn parse_names(text: &str) -> Result<Self, MatcherError> {
        let names = text.split(['|', ',']).map(str::trim).filter(|name| !name.is_empty());
        let names: Vec<_> = names.map(str::to_owned).collect();
        match names.is_empty() {
            true => Err(MatcherError::NoNames),
            false => Ok(Self(MatcherKind::Names(names))),
        }
    }

    fn parse_pattern(text: &str) -> Result<Self, MatcherError> {
        let pattern = RegexBuilder::new(text).size_limit(MAX_COMPILED_BYTES).build();
        pattern
            .map(|pattern| Self(MatcherKind::Pattern(pattern)))
            .map_err(|error| MatcherError::NotAPattern(error.to_string()))
    }

    pub fn matches_tool(&self, tool: &str) -> bool {
        match &self.0 {
            MatcherKind::All => true,
            MatcherKind::Names(names) => names.iter().any(|name| name == tool),
            MatcherKind::Pattern(pattern) => pattern.is_match(tool),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_patterns_match_as_in_claude_code() {
        let check = |matcher: &str, tool: &str, matches: bool| {
            assert_eq!(Matcher::parse(matcher).unwrap().matches(tool), matches, "{matcher:?} {tool:?}");
        };
        for all in ["", " ", "*", " * "] {
            check(all, "Bash", true);
            check(all, "", true);
        }
        check("Write", "Write", true);
        check("Write", "WriteFile", false);
        check("Write", "write", false);
        check("Edit|Write", "Write", true);
        check("Edit|Write", "MultiEdit", false);
        check("Edit, Write", "Write", true);
        check(" Edit | Write ", "Edit", true);
        check("Edit||Write,", "", false);
        check("my-tool_2", "my-tool_2", true);
        check("my tool", "my tool", true);
        check("Edit.*", "MultiEdit", true);
        check("^Edit$", "MultiEdit", false);
        check("^Edit$", "Edit", true);
        check("mcp__.*__write", "mcp__files__write_all", true);
        check("(?i)bash", "Bash", true);
        check("Notebook.*|Bash", "Bash", true);
        check("[A-Z]+", "bash", false);
        check("é", "café", true);
        check("caf[é-ü]", "café", true);
    }

    #[test]
    fn unusable_matcher_is_refused() {
        let check = |matcher: &str, message: &str| {
            assert_eq!(Matcher::parse(matcher).unwrap_err().to_string(), message, "{matcher:?}");
        };
        check("|", "this matcher names no tool");
        check(" , | ", "this matcher names no tool");
        check("Edit(", "this is not a regular expression: found open group without closing ')'");
        check("a{1000}{1000}{1000}.", "this is not a regular expression: compiled regex exceeded size limit");
        let nested = "(".repeat(2000) + &")".repeat(2000);
        assert!(
            ToolMatcher::parse(&nested).unwrap_err().to_string().contains("nesting"),
            "{:?}",
            ToolMatcher::parse(&nested)
        );
        check(&"x".repeat(4097), "a matcher has at most 4096 bytes");
    }
}
