//! The output of aider, which prints everything on standard output and always exits with 0.
//!
//! ```text
//!   its version and settings, a blank line ─► a reply, `Tokens: …`, its actions ─► a reply, `Tokens: …` …
//! ```
//!
//! Only the last reply is the answer. An error follows it, if there was one.

use windlass_engine::TurnFailure;

use crate::failure::{AgentFailure, classify_failed_output};

/// The prefix of an error, printed by aider's model library.
const ERROR_PREFIX: &str = "litellm.";
/// The messages for a truncated answer and for an empty one.
const TOKEN_LIMIT_SUFFIX: &str = "has hit a token limit!";
const EMPTY_RESPONSE_PREFIX: &str = "Empty response received from LLM.";

/// Error classes whose message alone does not tell the fault.
const FAULT_CLASSES: [(&str, TurnFailure); 6] = [
    ("InternalServer", TurnFailure::Outage),
    ("ServiceUnavailable", TurnFailure::Outage),
    ("APIConnection", TurnFailure::Outage),
    ("Timeout", TurnFailure::Outage),
    ("ContextWindowExceeded", TurnFailure::OutOfTokens),
    ("ContentPolicyViolation", TurnFailure::Refused),
];

/// Returns aider's answer, or its failure. `None` if the output is not aider's.
pub fn read_aider_output(stdout: &str) -> Option<Result<String, AgentFailure>> {
    let lines: Vec<&str> = stdout.lines().collect();
    let head = lines.iter().position(|line| line.starts_with("Aider v"))?;
    let start = lines[head..].iter().position(|line| line.trim().is_empty()).map_or(lines.len(), |blank| head + blank);
    let lines = &lines[start..];
    let ends: Vec<usize> = (0..lines.len()).filter(|place| is_reply_end(lines[*place])).collect();
    let (reply, rest) = match ends[..] {
        [] => (lines, lines),
        [end] => (&lines[..end], &lines[end..]),
        [.., before, end] => (&lines[before + 1..end], &lines[end..]),
    };
    let said = reply.join("\n").trim().to_owned();
    let failed = |fault, said: &str| Some(Err(AgentFailure::Failed { said: said.to_owned(), fault }));
    if let Some(place) = rest.iter().rposition(|line| line.starts_with(ERROR_PREFIX)) {
        return Some(Err(classify_error_lines(&rest[place..])));
    }
    match rest.iter().find(|line| line.ends_with(TOKEN_LIMIT_SUFFIX)) {
        Some(line) => failed(TurnFailure::OutOfTokens, line),
        None if said.starts_with(EMPTY_RESPONSE_PREFIX) => failed(TurnFailure::Empty, &said),
        None => Some(Ok(said)),
    }
}

/// Returns whether a line ends a reply: `Tokens: 1.2k sent, 34 received.`
fn is_reply_end(line: &str) -> bool {
    line.starts_with("Tokens: ") && line.contains(" sent")
}

/// Classifies an error. aider wraps its lines at the terminal's width.
fn classify_error_lines(lines: &[&str]) -> AgentFailure {
    let error_lines = lines.iter().take_while(|line| !line.trim().is_empty() && !line.starts_with("Retrying in "));
    let said = error_lines.map(|line| line.trim()).collect::<Vec<_>>().join(" ");
    classify_failed_output("", &said).unwrap_or_else(|| {
        let class = said[ERROR_PREFIX.len()..].split(':').next().unwrap_or_default();
        let known = FAULT_CLASSES.iter().find(|(name, _)| class.starts_with(name));
        AgentFailure::Failed { fault: known.map_or(TurnFailure::Failed, |(_, fault)| *fault), said }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "You can skip this check with --no-gitignore\nAdded .aider* to .gitignore\nAider v0.86.2\n\
        Model: openai/stub with whole edit format\nGit repo: .git with 0 files\n\
        Repo-map: using 1024 tokens, auto refresh\n\n";
    const TOKENS: &str = "\nTokens: 1.2k sent, 34 received. Cost: $0.01 message, $0.01 session.\n";

    #[track_caller]
    fn check(body: &str, expected: &str) {
        let shown = match read_aider_output(&format!("{HEAD}{body}")).expect("aider's") {
            Ok(said) => format!("said: {said}"),
            Err(AgentFailure::RateLimited { reset, .. }) => format!("limited {reset:?}"),
            Err(AgentFailure::AccessDenied { .. }) => "locked".to_owned(),
            Err(AgentFailure::Failed { fault, .. }) => format!("{fault:?}"),
            Err(AgentFailure::RootRefused { .. }) => "root".to_owned(),
        };
        assert_eq!(shown, expected, "{body}");
    }

    fn error(class: &str, words: &str) -> String {
        let one = format!("litellm.{class}Error: {class}Error: OpenAIException - {words}\n");
        format!("{one}Retrying in 0.2 seconds...\n{one}They said no.\n\n")
    }

    #[test]
    fn only_the_last_reply_is_the_answer() {
        check(&format!("Done. <promise>COMPLETE</promise>\n{TOKENS}"), "said: Done. <promise>COMPLETE</promise>");
        let more = "\npump.sh\nApplied edit to pump.sh\nCommit cf5a8cb mend the pump\n";
        check(&format!("I begin.\n{TOKENS}{more}"), "said: I begin.");
        check(&format!("COMPLETE\n{TOKENS}litellm.py\n\nNot yet.\n{TOKENS}{more}"), "said: litellm.py\n\nNot yet.");
        check("It was cut", "said: It was cut");
        assert_eq!(read_aider_output("Done.\nTokens: 1 sent, 2 received.\n"), None, "any program may say so");
    }

    #[test]
    fn failures_are_told_apart() {
        check(&error("Authentication", "Incorrect \nAPI key provided: dummy."), "locked");
        check(&error("RateLimit", "Rate limit reached for\nrequests. Please try again later."), "limited None");
        check(&error("RateLimit", "Please try again in 20s."), "limited Some(After(20s))");
        check(&error("InternalServer", "The server \nhad an error."), "Outage");
        check(&error("InternalServer", "Connection \nerror."), "Outage");
        check(&error("ContextWindowExceeded", "too much"), "OutOfTokens");
        check(&error("NotFound", "no such model"), "Failed");
        check(&format!("Half of\n{TOKENS}{}", error("ServiceUnavailable", "no")), "Outage");
        check("I begin\n\n\n\nModel openai/stub has hit a token limit!\nToken counts below are approximate.", {
            "OutOfTokens"
        });
        check(&format!("Empty response received from LLM. Check your provider account?\n{TOKENS}"), "Empty");
        let quoted = error("Authentication", "no") + "is what it said. Mended.\n";
        check(&format!("{quoted}{TOKENS}"), &format!("said: {}", quoted.trim()));
    }
}
