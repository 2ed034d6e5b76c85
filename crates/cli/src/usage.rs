//! Parsers of values on the command line, and the failure for a wrong command line.

use std::ffi::OsString;
use std::fmt::Debug;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use windlass_app::{Failure, FailureCode};
use windlass_text as text;
use windlass_tools::find_tool;

use crate::args;

/// The longest part of clap's message that is repeated: it holds typed text of any length.
const MAX_MESSAGE_COLUMNS: usize = 400;

/// Parses a number of items, from 1 on. A number too large for `usize` counts as the largest.
pub fn parse_count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("expected a whole number from 1 on".to_owned()),
        Ok(count) => Ok(count),
        Err(_) if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => Ok(usize::MAX),
        Err(_) => Err("expected a whole number from 1 on".to_owned()),
    }
}

/// Parses a number that the log can hold.
pub fn parse_number(text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| i64::try_from(*number).is_ok());
    number.ok_or_else(|| format!("expected a whole number from 0 to {}", i64::MAX))
}

/// Parses a span of time: `90s`, `30m`, `24h`, `7d`, `2w`.
pub fn parse_time_span(text: &str) -> Result<Duration, String> {
    let expected = || "expected a length of time such as `30m`, `24h`, `7d`".to_owned();
    let digits = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(expected)?;
    let (number, unit) = text.split_at(digits);
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 24 * 3600,
        "w" => 7 * 24 * 3600,
        _ => return Err(expected()),
    };
    let number: u64 = number.parse().map_err(|_| expected())?;
    Ok(Duration::from_secs(number.saturating_mul(seconds)))
}

/// Returns a parser that accepts these names.
pub fn name_parser<T>(names: impl IntoIterator<Item = &'static str>) -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err: Debug> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(names).map(|name| name.parse().expect("each name stands for a value"))
}

/// Turns clap's error into a failure with clap's message, its suggestion, and the command that shows the usage.
pub fn usage_failure(error: &clap::Error, words: &[OsString]) -> Failure {
    let unknown = error.get(ContextKind::InvalidSubcommand);
    let root = args::build_clap_command();
    let (parent, command) = find_command(&root, words, unknown);
    let message = match error.kind() {
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            "a command is missing".to_owned()
        }
        _ => {
            let text = error.render().to_string();
            let first = text.strip_prefix("error: ").unwrap_or(&text).lines().take_while(|line| !line.is_empty());
            first.map(str::trim).collect::<Vec<_>>().join(" ")
        }
    };
    let option =
        matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(word)) if word.starts_with('-'));
    let dash = match error.kind() {
        ErrorKind::UnknownArgument if option => "; text that begins with a dash goes after `--`",
        _ => "",
    };
    let replacement = unknown.and_then(|unknown| find_replacement(words, unknown));
    Failure::new(FailureCode::Usage, text::fit_to_width(&message, MAX_MESSAGE_COLUMNS)).with_hint(
        match (replacement, find_suggestion(error, parent)) {
            (Some(replacement), _) => replacement,
            (None, Some(suggestion)) => {
                format!("did you mean `{suggestion}`? `{command} --help` shows how it is used{dash}")
            }
            (None, None) => format!("`{command} --help` shows how it is used{dash}"),
        },
    )
}

/// The commands that change nothing.
const READING_COMMANDS: [&str; 16] = [
    "check",
    "completions",
    "doctor",
    "events",
    "graph",
    "help",
    "history",
    "list",
    "logs",
    "metrics",
    "next",
    "ready",
    "schema",
    "show",
    "status",
    "why",
];

/// Returns clap's correction of a misspelt word. Commands that change something and options that override a safeguard are not
/// suggested, because a caller should know them.
fn find_suggestion<'e>(error: &'e clap::Error, parent: &clap::Command) -> Option<&'e str> {
    let kinds = [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue];
    let suggestion = kinds.into_iter().find_map(|kind| match error.get(kind)? {
        ContextValue::String(word) => Some(word.as_str()),
        // The nearest word comes last.
        ContextValue::Strings(words) => words.last().map(String::as_str),
        _ => None,
    })?;
    let is_safe = match error.kind() {
        ErrorKind::InvalidSubcommand => parent
            .find_subcommand(suggestion)
            .is_some_and(|found| found.has_subcommands() || READING_COMMANDS.contains(&found.get_name())),
        _ => !suggestion.starts_with("--force") && !suggestion.starts_with("--trust"),
    };
    Some(suggestion).filter(|_| is_safe)
}

/// Returns a hint to the tool that replaces a removed command: `iteration_start` for `windlass iteration start`. A group alone is
/// replaced by several.
fn find_replacement(words: &[OsString], unknown: &ContextValue) -> Option<String> {
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    let names = words.windows(2).map(|pair| format!("{}_{}", pair[0].trim_end_matches('s'), pair[1]));
    let is_replaced = |name: &str| ["iteration_", "checkpoint_", "hook_"].iter().any(|group| name.starts_with(group));
    let tool = names.filter(|name| is_replaced(name)).find_map(|name| find_tool(&name).ok());
    let ContextValue::String(unknown) = unknown else { return None };
    let is_group = matches!(unknown.trim_end_matches('s'), "iteration" | "checkpoint");
    let of_group = || is_group.then(|| "`windlass tool list` shows the tools that replace it".to_owned());
    tool.map(|tool| format!("`windlass tool call {}` replaces it", tool.name)).or_else(of_group)
}

/// Returns the command that these words begin with, up to the unknown one, and its name.
fn find_command<'c>(
    root: &'c clap::Command,
    words: &[OsString],
    unknown: Option<&ContextValue>,
) -> (&'c clap::Command, String) {
    let is_known = |word: &&OsString| match unknown {
        Some(ContextValue::String(unknown)) => word.to_str() != Some(unknown),
        _ => true,
    };
    let (mut command, mut name) = (root, "windlass".to_owned());
    for word in words.iter().skip(1).take_while(is_known) {
        if let Some(child) = command.find_subcommand(word) {
            name = format!("{name} {}", child.get_name());
            command = child;
        }
    }
    (command, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_words_are_named_but_for_safeguards() {
        for (line, suggestion) in [
            ("windlass stauts", Some("did you mean `status`?")),
            ("windlass tol list", Some("did you mean `tool`?")),
            ("windlass sesions list", Some("did you mean `session`?")),
            ("windlass task delte T1", None),
            ("windlass unistall", None),
            ("windlass task list --state redy", Some("did you mean `ready`?")),
            ("windlass answer T1 rejct", Some("did you mean `reject`?")),
            ("windlass trust --revke", Some("did you mean `--revoke`?")),
            ("windlass task complete T1 --forse", None),
            ("windlass run --agent x --turst", None),
        ] {
            let words = line.split(' ').map(OsString::from).collect();
            let failure = args::parse_command_line_from(words).expect_err("it is misspelt").to_failure();
            let hint = failure.hint.expect("a hint");
            assert!(hint.contains(" --help` "), "{line}: {hint}");
            assert_eq!(hint.split_inclusive('?').next().filter(|_| hint.contains('?')), suggestion, "{line}");
        }
    }
}
