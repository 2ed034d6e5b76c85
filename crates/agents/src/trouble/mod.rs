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
use windlass_engine::Fault;

use crate::TurnEnd;
use crate::reset::Reset;

/// How many lines at the end of each stream are searched.
const LAST_STDERR: usize = 12;
const LAST_STDOUT: usize = 4;
/// A longer text is always an answer.
const SHORT: usize = 600;
/// How much of a line is reported.
const TOLD: usize = 240;
/// How much of a line is searched: the patterns are slow, and lines may be of any length.
const LINE: usize = 4 * 1024;

/// A failure of an agent that could be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// The agent is rate limited and can be prompted again later.
    Limited { said: String, reset: Option<Reset> },
    /// The agent has no access to its model: no key, no login, or no credit.
    Locked { said: String, paid: bool },
    /// The agent refuses to run as root.
    RootRefused { said: String },
    /// The turn failed with a known fault.
    Failed { said: String, fault: Fault },
}

impl Trouble {
    /// Returns the turn end for this failure. `command` tells the agent, and so the remedy.
    pub fn end(self, command: &str) -> TurnEnd {
        match self {
            Self::Limited { said, reset } => TurnEnd::Limited { said, reset },
            Self::Locked { said, paid } => TurnEnd::Locked { said, remedy: remedy(command, paid) },
            Self::RootRefused { said } => TurnEnd::Broken(format!("{said}; {ROOT_REMEDY}")),
            Self::Failed { said, fault } => TurnEnd::failed(fault, said),
        }
    }
}

/// Claude Code's message if it runs as root without permission prompts.
const ROOT_REFUSED: &str = "cannot be used with root/sudo privileges";
/// Only the user can state that a machine is a sandbox: Windlass never sets the variable.
const ROOT_REMEDY: &str = "if this machine is a sandbox in which the agent may do anything, say so with \
                           `IS_SANDBOX: \"1\"` under `env` of the agent in the configuration; else run as another user";

/// Failures that need a payment. Some services use the same words for a limit, with the time of its reset.
const UNPAID: [&str; 4] =
    ["credit balance is too low", "insufficient_quota", r"check your plan and billing", r"payment required"];

/// Messages about denied access.
const LOCKED: [&str; 18] = [
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
const LIMITED: [&str; 13] = [
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
const CUT: [&str; 4] = [
    r"max_output_tokens|output.token (maximum|limit)",
    r"maximum context length|context.{0,20}exceeded|prompt is too long",
    r"input token count.{0,20}exceeds the maximum|exceeds the model's .{0,20}context window",
    r"compacting conversation context.{0,200}compaction cancelled",
];
const REFUSED: [&str; 1] = [r"content.?filter"];
const EMPTY: [&str; 1] =
    [r"model returned an empty response|stream ended with empty response|no response was returned"];

/// Messages about a model that cannot be reached or does not work.
const DOWN: [&str; 6] = [
    r"(api error|status|http|code)\D{0,8}50[0234]\b|\b50[0234]\b.{0,20}(error|bad gateway|unavailable|time)",
    r"internal server error|bad gateway|service unavailable|gateway time-?out",
    r"\b(econnrefused|econnreset|enotfound|etimedout|eai_again)\b|connection (refused|reset by peer)|fetch failed",
    r"experiencing high demand|stream disconnected before completion",
    r"could not resolve host|name or service not known|error sending request",
    r"^network error: |api error: terminated|connection lost|stream ended without a finish reason|error decoding response body",
];

/// The prefixes of messages that replace an answer, for any failure.
const OWN_WORDS: [&str; 3] = [
    "ran into this error:",
    "ran into this error trying to compact:",
    "error: failed to get response from the ai model",
];
/// Warnings that some agents print before their answer: how they begin and end.
const ASIDES: [(&str, &str); 4] = [
    ("Info: ", "Retrying..."),
    ("Warning: ", "Verify the current state before continuing."),
    ("Warning: ", "\n\n"),
    ("Config warning: ", "\n\n"),
];
/// The longest warning that is skipped.
const ASIDE: usize = 1000;

/// The start of messages that replace an answer.
const INSTEAD_OF_AN_ANSWER: &str = r"(?i)^\W{0,4}(error:? *)?(ran into this error( trying to compact)?:|network error: [^\n]*\s+please resend your message|compacting conversation context.*compaction cancelled\.?$|400 this model.s maximum context length|429 rate limit reached for \S+ |the model returned an empty response|incomplete response returned|stream disconnected before completion|we.re currently experiencing high demand|failed to get response from the ai model|authentication failed with provider|no response was returned\. send your message again|unexpected status \d|exceeded retry limit|claude( ai| code)? usage limit reached|you.ve (hit|reached|exceeded) your|api error:? \(?(401|403|429|5\d\d)|(\d+-hour|daily|weekly|session) limit reached|invalid api key|not logged in|oauth token (has )?expired|credit balance is too low)";

/// A message that consists only of these parts reports a rate limit: words before it, the limit itself, and words that may
/// follow. Any other word makes the message an answer.
const BEFORE: &str = r"(api|http|request|server|provider|upstream|stream|model|fatal|error|failed|status|code|429)\b";
const TOO_OFTEN: &str = r"(rate.?limits?[ _]?(has been |was )?(exceeded|reached|hit)|rate.?limited|rate.?limit.?error|usage limit (reached|exceeded)|quota exceeded|too many requests)\b";
const AFTER: &str = r"(retry.?after:? *\d+ ?(s|sec|seconds?)?|(please )?(try again|retry|wait|slow down)( later| shortly)?( (in|after|for))?( ?\d+(\.\d+)? ?(ms|milliseconds?|s|sec|seconds?|m|min|minutes?|h|hours?|days?))*|resets? (at |in )?\d[\d:]* ?(am|pm|s|m|h)?|for (requests|tokens|[\w.-]*\d[\w.-]*)|in organization [\w-]+|on (tokens|requests) per (min|minute|day)( \([TR]P[MD])?|(limit|used|requested):? *[\d,]+|visit https?://\S+( to learn more)?)\b";
/// Characters between the parts.
const BETWEEN: &str = r#"[\s.,;:!·∙|()\[\]{}"'`*–—-]*"#;

struct Signs {
    unpaid: Vec<Regex>,
    locked: Vec<Regex>,
    limited: Vec<Regex>,
    faults: [(Fault, Vec<Regex>); 4],
}

/// A separate static: most answers need no other pattern.
static INSTEAD: LazyLock<Regex> = LazyLock::new(|| Regex::new(INSTEAD_OF_AN_ANSWER).expect("a pattern"));

static ONLY_TOO_OFTEN: LazyLock<Regex> = LazyLock::new(|| {
    let pattern =
        format!("^{BETWEEN}({BEFORE}{BETWEEN})*{TOO_OFTEN}{BETWEEN}(({BEFORE}|{TOO_OFTEN}|{AFTER}){BETWEEN})*$");
    RegexBuilder::new(&pattern).case_insensitive(true).build().expect("a pattern")
});

static SIGNS: LazyLock<Signs> = LazyLock::new(|| {
    let one = |pattern: &&str| RegexBuilder::new(pattern).case_insensitive(true).build();
    let any = |patterns: &[&str]| {
        let built: Result<Vec<Regex>, _> = patterns.iter().map(one).collect();
        built.expect("the tables hold patterns")
    };
    let faults = [
        (Fault::OutOfTokens, any(&CUT)),
        (Fault::Refused, any(&REFUSED)),
        (Fault::Empty, any(&EMPTY)),
        (Fault::Outage, any(&DOWN)),
    ];
    Signs { unpaid: any(&UNPAID), locked: any(&LOCKED), limited: any(&LIMITED), faults }
});

/// Classifies the output of an agent that has failed.
pub fn of_failure(stdout: &str, stderr: &str) -> Option<Trouble> {
    trouble(&last_lines(stderr, LAST_STDERR)).or_else(|| trouble(&last_lines(stdout, LAST_STDOUT)))
}

/// Classifies a failure that an agent reports in place of an answer.
pub fn instead_of_an_answer(stdout: &str) -> Option<Trouble> {
    let text = without_warnings(stdout).trim();
    if let Some(error) = error_object(text) {
        let failed = || Trouble::Failed { said: told(&error), fault: Fault::Failed };
        return Some(trouble(&last_lines(&error, LAST_STDERR)).unwrap_or_else(failed));
    }
    let lines = last_lines(text, LAST_STDOUT);
    let short = text.len() <= SHORT && lines.len() == text.lines().filter(|line| !line.trim().is_empty()).count();
    if !short || !(INSTEAD.is_match(text) || ONLY_TOO_OFTEN.is_match(text)) {
        return None;
    }
    let unwell = || {
        let lower = text.to_lowercase();
        let own = OWN_WORDS.iter().any(|words| lower.starts_with(words));
        own.then(|| Trouble::Failed { said: told(text), fault: Fault::Failed })
    };
    trouble(&lines).or_else(unwell)
}

/// Returns what an error object of a model's service says, if a text is nothing else: `{"error": {"message": …}}`.
fn error_object(text: &str) -> Option<String> {
    if !text.starts_with('{') || text.len() > LINE {
        return None;
    }
    let object: Value = serde_json::from_str(text).ok()?;
    let (error, message) = (&object["error"], object["error"]["message"].as_str()?);
    let kind = error["code"].as_str().or(error["type"].as_str())?;
    (object.as_object()?.len() == 1).then(|| format!("{message} ({kind})"))
}

/// Returns a message without the agent's own warnings at its start.
pub fn without_warnings(said: &str) -> &str {
    let mut rest = said.trim_start();
    let after = |rest: &'_ str| {
        let start = rest.floor_char_boundary(ASIDE);
        let end = |(begin, end): &(&str, &str)| {
            let told = rest[..start].strip_prefix(begin)?;
            Some(begin.len() + told.find(end)? + end.len())
        };
        ASIDES.iter().find_map(end)
    };
    while let Some(end) = after(rest) {
        rest = rest[end..].trim_start();
    }
    rest
}

fn last_lines(text: &str, most: usize) -> Vec<&str> {
    let lines = text.lines().rev().map(str::trim).filter(|line| !line.is_empty());
    let mut lines: Vec<&str> = lines.take(most).map(|line| &line[..line.floor_char_boundary(LINE)]).collect();
    lines.reverse();
    lines
}

/// Classifies the last line that matches. The lines around it may say when a limit resets. A spent quota is a limit only
/// if its own line says when it resets: the other lines report the agent's own retries.
fn trouble(lines: &[&str]) -> Option<Trouble> {
    let is_any = |signs: &[Regex], line: &str| signs.iter().any(|sign| sign.is_match(line));
    lines.iter().rev().find_map(|line| {
        let said = told(line);
        let reset = || Reset::read(line).or_else(|| Reset::read(&lines.join("\n")));
        if line.contains(ROOT_REFUSED) {
            Some(Trouble::RootRefused { said })
        } else if is_any(&SIGNS.unpaid, line) {
            Some(match Reset::read(line) {
                None => Trouble::Locked { said, paid: false },
                reset => Trouble::Limited { said, reset },
            })
        } else if is_any(&SIGNS.locked, line) {
            Some(Trouble::Locked { said, paid: true })
        } else if is_any(&SIGNS.limited, line) {
            Some(Trouble::Limited { said, reset: reset() })
        } else {
            let found = SIGNS.faults.iter().find(|(_, signs)| is_any(signs, line));
            found.map(|(fault, _)| Trouble::Failed { said, fault: *fault })
        }
    })
}

fn told(line: &str) -> String {
    line.lines().next().unwrap_or_default().chars().take(TOLD).collect()
}

/// How users give the known agents access.
const WAYS_IN: [(&str, &str); 9] = [
    ("claude", "run `claude` and type /login, or set ANTHROPIC_API_KEY"),
    ("codex", "run `codex login`, or set OPENAI_API_KEY"),
    ("gemini", "run `gemini` once and choose how to log in, or set GEMINI_API_KEY"),
    ("opencode", "run `opencode auth login`"),
    ("goose", "run `goose configure`"),
    ("qwen", "run `qwen` once and log in, or set OPENAI_API_KEY"),
    ("copilot", "run `copilot` and type /login, or see to the key of its own provider"),
    ("kimi", "run `kimi` once and log in"),
    ("aider", "set the API key of its model's provider"),
];

/// Returns whether a command runs this agent.
pub fn is_agent(agent: &str, command: &str) -> bool {
    names(command).any(|name| name == agent)
}

fn names(command: &str) -> impl Iterator<Item = &str> {
    command.split(|letter: char| !(letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_')))
}

/// Returns how a user gives the agent of a command access.
fn remedy(command: &str, paid: bool) -> String {
    let known = names(command).find_map(|name| WAYS_IN.iter().find(|(agent, _)| *agent == name));
    match (known, paid) {
        (Some((agent, _)), false) => format!("pay for what `{agent}` uses, or give it another key or model"),
        (None, false) => "pay for what the agent uses, or give it another key or model".to_owned(),
        (Some((_, way)), true) => (*way).to_owned(),
        (None, true) => "log the agent in, or set its API key".to_owned(),
    }
}

#[cfg(test)]
mod tests;
