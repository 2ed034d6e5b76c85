//! The reason why an agent did not work, from its output: a rate limit, denied access, an outage.
//!
//! Agents report such failures in their own words, on either stream, with any exit code. The tables here hold the words of
//! the known agents. A message that looks like an answer is searched only for words that stand alone: a text about rate
//! limits is no rate limit.
//!
//! Invariants:
//! - A reported reset time never leads to a wait of more than a week.
//! - The middle of a long output is never searched: the agent reports a failure at the end.
//!
//! Not here: waiting, ending the session (`engine`).

use std::sync::LazyLock;

use regex_lite::{Regex, RegexBuilder};
use serde_json::Value;
use windlass_engine::TurnFailure;

use crate::TurnEnd;
use crate::rate_limit_reset::RateLimitReset;

/// How many lines at the end of each stream are searched.
const MAX_STDERR_LINES: usize = 12;
const MAX_STDOUT_LINES: usize = 4;
/// A longer text is always an answer.
const MAX_FAILURE_ANSWER_LENGTH: usize = 600;
/// How much of a line is reported.
const MAX_REPORTED_CHARS: usize = 240;
/// How much of a line is searched: the patterns are slow, and lines may be of any length.
const MAX_SEARCHED_LINE_LENGTH: usize = 4 * 1024;

/// A failure of an agent that could be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentFailure {
    /// The agent is rate limited and can be prompted again later.
    RateLimited { said: String, reset: Option<RateLimitReset> },
    /// The agent has no access to its model: no key, no login, or no credit.
    AccessDenied { said: String, paid: bool },
    /// The agent refuses to run as root.
    RootRefused { said: String },
    /// The turn failed with a known fault.
    Failed { said: String, fault: TurnFailure },
}

impl AgentFailure {
    /// Returns the turn end for this failure. `command` tells the agent, and so the remedy.
    pub fn into_turn_end(self, command: &str) -> TurnEnd {
        match self {
            Self::RateLimited { said, reset } => TurnEnd::RateLimited { said, reset },
            Self::AccessDenied { said, paid } => {
                TurnEnd::AccessDenied { said, remedy: find_access_remedy(command, paid) }
            }
            Self::RootRefused { said } => TurnEnd::Broken(format!("{said}; {ROOT_REMEDY}")),
            Self::Failed { said, fault } => TurnEnd::from_failure(fault, said),
        }
    }
}

/// Claude Code's message if it runs as root without permission prompts.
const ROOT_REFUSED_TEXT: &str = "cannot be used with root/sudo privileges";
/// Only the user can state that a machine is a sandbox: Windlass never sets the variable.
const ROOT_REMEDY: &str = "if this machine is a sandbox in which the agent may do anything, set \
                           `IS_SANDBOX: \"1\"` under `env` of the agent in the configuration; else run as another user";

/// Failures that need a payment. Some services use the same words for a limit, with the time of its reset.
const UNPAID_PATTERNS: [&str; 4] =
    ["credit balance is too low", "insufficient_quota", r"check your plan and billing", r"payment required"];

/// Messages about denied access.
const ACCESS_DENIED_PATTERNS: [&str; 18] = [
    r"invalid api key",
    r"incorrect api key",
    r"api key not valid",
    r"invalid_api_key",
    r"invalid x-api-key",
    r"authentication_error",
    r"authentication ?(error|failed|required)",
    r"\b401\b.{0,40}unauthorized|unauthorized.{0,40}\b401\b|api error:? \(?401|status:? 401|http 401|error 401",
    r"not logged in|login required|not authenticated",
    r"(please )?run `?/login|please (log|sign) ?in|log out and sign in again",
    r"(oauth|access|auth|refresh) ?token (has )?(expired|could not be refreshed|is invalid|was revoked)",
    r"missing bearer",
    r"no (valid )?(api key|credentials|authentication)",
    r"set an auth method",
    r"[A-Z_]+_API_KEY.{0,40}(not set|missing|required|environment variable)",
    r"missing environment variable: `?[A-Z_]*(KEY|TOKEN)",
    r"could not resolve authentication|couldn't find .{0,30}credentials",
    r"permission_denied: .{0,40}api key",
];

/// Messages about rate limits.
const RATE_LIMIT_PATTERNS: [&str; 13] = [
    r"usage limit",
    r"rate.?limit",
    r"too many requests",
    r"(^|\b(error|status|http|code)\D{0,4})429\b|\b429 (too many|resource)",
    r"resource_exhausted|resource has been exhausted",
    r"exhausted your .{0,30}quota",
    r"quota (exceeded|will reset)|exceeded your.{0,30}quota|quota metric",
    r"(hit|reached|exceeded) your .{0,30}limit",
    r"(\d+-hour|daily|weekly|session|monthly) limit reached",
    r"overloaded_error|(error|status|http|code)\D{0,4}529\b|model is overloaded",
    r"at capacity|capacity constraints",
    r"throttl(ed|ing)exception|request was throttled",
    r"tokens per (min|minute|day)|requests per (min|minute|day)",
];

/// Messages about a truncated, a refused and an empty answer.
const OUT_OF_TOKENS_PATTERNS: [&str; 4] = [
    r"max_output_tokens|output.token (maximum|limit)",
    r"maximum context length|context.{0,20}exceeded|prompt is too long",
    r"input token count.{0,20}exceeds the maximum|exceeds the model's .{0,20}context window",
    r"compacting conversation context.{0,200}compaction cancelled",
];
const REFUSED_PATTERNS: [&str; 1] = [r"content.?filter"];
const EMPTY_ANSWER_PATTERNS: [&str; 1] =
    [r"model returned an empty response|stream ended with empty response|no response was returned"];

/// Messages about a model that cannot be reached or does not work.
const OUTAGE_PATTERNS: [&str; 6] = [
    r"(api error|status|http|code)\D{0,8}50[0234]\b|\b50[0234]\b.{0,20}(error|bad gateway|unavailable|time)",
    r"internal server error|bad gateway|service unavailable|gateway time-?out",
    r"\b(econnrefused|econnreset|enotfound|etimedout|eai_again)\b|connection (refused|reset by peer)|fetch failed",
    r"experiencing high demand|stream disconnected before completion",
    r"could not resolve host|name or service not known|error sending request",
    r"^network error: |api error: terminated|connection lost|stream ended without a finish reason|error decoding response body",
];

/// The prefixes of messages that replace an answer, for any failure.
const FAILURE_ANSWER_PREFIXES: [&str; 3] = [
    "ran into this error:",
    "ran into this error trying to compact:",
    "error: failed to get response from the ai model",
];
/// Warnings that some agents print before their answer: how they begin and end.
const WARNING_DELIMITERS: [(&str, &str); 4] = [
    ("Info: ", "Retrying..."),
    ("Warning: ", "Verify the current state before continuing."),
    ("Warning: ", "\n\n"),
    ("Config warning: ", "\n\n"),
];
/// The longest warning that is skipped.
const MAX_WARNING_LENGTH: usize = 1000;

/// The start of messages that replace an answer.
const FAILURE_ANSWER_PATTERN: &str = r"(?i)^\W{0,4}(error:? *)?(ran into this error( trying to compact)?:|network error: [^\n]*\s+please resend your message|compacting conversation context.*compaction cancelled\.?$|400 this model.s maximum context length|429 rate limit reached for \S+ |the model returned an empty response|incomplete response returned|stream disconnected before completion|we.re currently experiencing high demand|failed to get response from the ai model|authentication failed with provider|no response was returned\. send your message again|unexpected status \d|exceeded retry limit|claude( ai| code)? usage limit reached|you.ve (hit|reached|exceeded) your|api error:? \(?(401|403|429|5\d\d)|(\d+-hour|daily|weekly|session) limit reached|invalid api key|not logged in|oauth token (has )?expired|credit balance is too low)";

/// A message that consists only of these parts reports a rate limit: words before it, the limit itself, and words that may
/// follow. Any other word makes the message an answer.
const BEFORE_RATE_LIMIT_PATTERN: &str =
    r"(api|http|request|server|provider|upstream|stream|model|fatal|error|failed|status|code|429)\b";
const RATE_LIMIT_PATTERN: &str = r"(rate.?limits?[ _]?(has been |was )?(exceeded|reached|hit)|rate.?limited|rate.?limit.?error|usage limit (reached|exceeded)|quota exceeded|too many requests)\b";
const AFTER_RATE_LIMIT_PATTERN: &str = r"(retry.?after:? *\d+ ?(s|sec|seconds?)?|(please )?(try again|retry|wait|slow down)( later| shortly)?( (in|after|for))?( ?\d+(\.\d+)? ?(ms|milliseconds?|s|sec|seconds?|m|min|minutes?|h|hours?|days?))*|resets? (at |in )?\d[\d:]* ?(am|pm|s|m|h)?|for (requests|tokens|[\w.-]*\d[\w.-]*)|in organization [\w-]+|on (tokens|requests) per (min|minute|day)( \([TR]P[MD])?|(limit|used|requested):? *[\d,]+|visit https?://\S+( to learn more)?)\b";
/// Characters between the parts.
const SEPARATOR_PATTERN: &str = r#"[\s.,;:!·∙|()\[\]{}"'`*–—-]*"#;

struct FailurePatterns {
    unpaid: Vec<Regex>,
    locked: Vec<Regex>,
    limited: Vec<Regex>,
    faults: [(TurnFailure, Vec<Regex>); 4],
}

/// A separate static: most answers need no other pattern.
static FAILURE_ANSWER_REGEX: LazyLock<Regex> = LazyLock::new(|| Regex::new(FAILURE_ANSWER_PATTERN).expect("a pattern"));

static RATE_LIMIT_ANSWER_REGEX: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = format!(
        "^{SEPARATOR_PATTERN}({BEFORE_RATE_LIMIT_PATTERN}{SEPARATOR_PATTERN})*{RATE_LIMIT_PATTERN}{SEPARATOR_PATTERN}(({BEFORE_RATE_LIMIT_PATTERN}|{RATE_LIMIT_PATTERN}|{AFTER_RATE_LIMIT_PATTERN}){SEPARATOR_PATTERN})*$"
    );
    RegexBuilder::new(&pattern).case_insensitive(true).build().expect("a pattern")
});

static FAILURE_PATTERNS: LazyLock<FailurePatterns> = LazyLock::new(|| {
    let one = |pattern: &&str| RegexBuilder::new(pattern).case_insensitive(true).build();
    let any = |patterns: &[&str]| {
        let built: Result<Vec<Regex>, _> = patterns.iter().map(one).collect();
        built.expect("the tables hold patterns")
    };
    let faults = [
        (TurnFailure::OutOfTokens, any(&OUT_OF_TOKENS_PATTERNS)),
        (TurnFailure::Refused, any(&REFUSED_PATTERNS)),
        (TurnFailure::Empty, any(&EMPTY_ANSWER_PATTERNS)),
        (TurnFailure::Outage, any(&OUTAGE_PATTERNS)),
    ];
    FailurePatterns {
        unpaid: any(&UNPAID_PATTERNS),
        locked: any(&ACCESS_DENIED_PATTERNS),
        limited: any(&RATE_LIMIT_PATTERNS),
        faults,
    }
});

/// Classifies the output of an agent that has failed.
pub fn classify_failed_output(stdout: &str, stderr: &str) -> Option<AgentFailure> {
    classify_last_line(&take_last_lines(stderr, MAX_STDERR_LINES))
        .or_else(|| classify_last_line(&take_last_lines(stdout, MAX_STDOUT_LINES)))
}

/// Classifies a failure that an agent reports in place of an answer.
pub fn classify_failure_answer(stdout: &str) -> Option<AgentFailure> {
    let text = strip_leading_warnings(stdout).trim();
    if let Some(error) = read_error_object(text) {
        let failed = || AgentFailure::Failed { said: truncate_reported_line(&error), fault: TurnFailure::Failed };
        return Some(classify_last_line(&take_last_lines(&error, MAX_STDERR_LINES)).unwrap_or_else(failed));
    }
    let lines = take_last_lines(text, MAX_STDOUT_LINES);
    let short = text.len() <= MAX_FAILURE_ANSWER_LENGTH
        && lines.len() == text.lines().filter(|line| !line.trim().is_empty()).count();
    if !short || !(FAILURE_ANSWER_REGEX.is_match(text) || RATE_LIMIT_ANSWER_REGEX.is_match(text)) {
        return None;
    }
    let unwell = || {
        let lower = text.to_lowercase();
        let own = FAILURE_ANSWER_PREFIXES.iter().any(|words| lower.starts_with(words));
        own.then(|| AgentFailure::Failed { said: truncate_reported_line(text), fault: TurnFailure::Failed })
    };
    classify_last_line(&lines).or_else(unwell)
}

/// Returns what an error object of a model's service says, if a text is nothing else: `{"error": {"message": …}}`.
fn read_error_object(text: &str) -> Option<String> {
    if !text.starts_with('{') || text.len() > MAX_SEARCHED_LINE_LENGTH {
        return None;
    }
    let object: Value = serde_json::from_str(text).ok()?;
    let (error, message) = (&object["error"], object["error"]["message"].as_str()?);
    let kind = error["code"].as_str().or(error["type"].as_str())?;
    (object.as_object()?.len() == 1).then(|| format!("{message} ({kind})"))
}

/// Returns a message without the agent's own warnings at its start.
pub fn strip_leading_warnings(said: &str) -> &str {
    let mut rest = said.trim_start();
    let after = |rest: &'_ str| {
        let start = rest.floor_char_boundary(MAX_WARNING_LENGTH);
        let end = |(begin, end): &(&str, &str)| {
            let after_begin = rest[..start].strip_prefix(begin)?;
            Some(begin.len() + after_begin.find(end)? + end.len())
        };
        WARNING_DELIMITERS.iter().find_map(end)
    };
    while let Some(end) = after(rest) {
        rest = rest[end..].trim_start();
    }
    rest
}

fn take_last_lines(text: &str, most: usize) -> Vec<&str> {
    let lines = text.lines().rev().map(str::trim).filter(|line| !line.is_empty());
    let mut lines: Vec<&str> =
        lines.take(most).map(|line| &line[..line.floor_char_boundary(MAX_SEARCHED_LINE_LENGTH)]).collect();
    lines.reverse();
    lines
}

/// Classifies the last line that matches. The lines around it may say when a limit resets. A spent quota is a limit only
/// if its own line says when it resets: the other lines report the agent's own retries.
fn classify_last_line(lines: &[&str]) -> Option<AgentFailure> {
    let is_any = |signs: &[Regex], line: &str| signs.iter().any(|sign| sign.is_match(line));
    lines.iter().rev().find_map(|line| {
        let said = truncate_reported_line(line);
        let reset =
            || RateLimitReset::parse_reset_time(line).or_else(|| RateLimitReset::parse_reset_time(&lines.join("\n")));
        if line.contains(ROOT_REFUSED_TEXT) {
            Some(AgentFailure::RootRefused { said })
        } else if is_any(&FAILURE_PATTERNS.unpaid, line) {
            Some(match RateLimitReset::parse_reset_time(line) {
                None => AgentFailure::AccessDenied { said, paid: false },
                reset => AgentFailure::RateLimited { said, reset },
            })
        } else if is_any(&FAILURE_PATTERNS.locked, line) {
            Some(AgentFailure::AccessDenied { said, paid: true })
        } else if is_any(&FAILURE_PATTERNS.limited, line) {
            Some(AgentFailure::RateLimited { said, reset: reset() })
        } else {
            let found = FAILURE_PATTERNS.faults.iter().find(|(_, signs)| is_any(signs, line));
            found.map(|(fault, _)| AgentFailure::Failed { said, fault: *fault })
        }
    })
}

fn truncate_reported_line(line: &str) -> String {
    line.lines().next().unwrap_or_default().chars().take(MAX_REPORTED_CHARS).collect()
}

/// How users give the known agents access.
const LOGIN_INSTRUCTIONS: [(&str, &str); 9] = [
    ("claude", "run `claude` and type /login, or set ANTHROPIC_API_KEY"),
    ("codex", "run `codex login`, or set OPENAI_API_KEY"),
    ("gemini", "run `gemini` once and choose how to log in, or set GEMINI_API_KEY"),
    ("opencode", "run `opencode auth login`"),
    ("goose", "run `goose configure`"),
    ("qwen", "run `qwen` once and log in, or set OPENAI_API_KEY"),
    ("copilot", "run `copilot` and type /login, or check the key of its provider"),
    ("kimi", "run `kimi` once and log in"),
    ("aider", "set the API key of its model's provider"),
];

/// Returns whether a command runs this agent.
pub fn is_agent_command(agent: &str, command: &str) -> bool {
    split_command_words(command).any(|name| name == agent)
}

fn split_command_words(command: &str) -> impl Iterator<Item = &str> {
    command.split(|letter: char| !(letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_')))
}

/// Returns how a user gives the agent of a command access.
fn find_access_remedy(command: &str, paid: bool) -> String {
    let known =
        split_command_words(command).find_map(|name| LOGIN_INSTRUCTIONS.iter().find(|(agent, _)| *agent == name));
    match (known, paid) {
        (Some((agent, _)), false) => format!("add credit for `{agent}`, or set another key or model"),
        (None, false) => "add credit for the agent, or set another key or model".to_owned(),
        (Some((_, way)), true) => (*way).to_owned(),
        (None, true) => "log the agent in, or set its API key".to_owned(),
    }
}

#[cfg(test)]
mod tests;
