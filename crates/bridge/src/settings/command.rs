//! The command that is written into an agent's settings, and how it is known there again.

use crate::{Agent, Moment};

/// For agents that take any failure for a no: only 2 is one, and everything else lets go and says so.
const GUARD: &str = " || { [ $? = 2 ] && exit 2; echo 'windlass did not answer; going on without its hooks' >&2; }";

/// This program, as settings name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// A name that is looked up, or a path.
    pub path: String,
    /// The same as one word for a shell.
    pub word: String,
}

/// What the agent's hook system is to run.
pub fn line(program: &Program, agent: Agent, moment: Moment, within: u64) -> String {
    let guard = if takes_failure_for_no(agent) { GUARD } else { "" };
    format!("{} hook {} --as {agent} --within {within}s{guard}", program.word, moment.point())
}

/// Whether what was about to happen does not, if a hook cannot even be started: Copilot denies a tool for any failure, and
/// Gemini CLI drops a prompt, a tool and the end of a turn for every exit code above 1.
fn takes_failure_for_no(agent: Agent) -> bool {
    matches!(agent, Agent::Copilot | Agent::Gemini)
}

/// Whether a command is one of those that are written for this agent, whatever its program, version and time.
pub fn is_ours(command: &str, agent: Agent) -> bool {
    let is_guard = |tail: &str| tail.ends_with('}') && tail.contains("echo 'windlass did not answer");
    let command = match command.split_once(" || {") {
        Some((head, tail)) if is_guard(tail) => head,
        _ => command,
    };
    let Some(rest) = after_word(command) else { return false };
    let words: Vec<_> = rest.split(' ').collect();
    match words.as_slice() {
        ["", "hook", point, "--as", name, within @ ..] => {
            let whole = within.is_empty() || matches!(within, ["--within", time] if time.ends_with('s'));
            whole && *name == agent.name() && Moment::of_point(point).is_some()
        }
        _ => false,
    }
}

/// What follows the first word, if that is one word for every shell.
fn after_word(command: &str) -> Option<&str> {
    match command.strip_prefix('\'') {
        None => {
            let end = command.find(' ')?;
            let plain = command[..end].chars().all(|c| c.is_ascii_alphanumeric() || "/._-+:@".contains(c));
            (end > 0 && plain).then(|| &command[end..])
        }
        Some(mut rest) => loop {
            let (_, after) = rest.split_once('\'')?;
            match after.strip_prefix("\\''") {
                Some(more) => rest = more,
                None => return Some(after),
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_known_again() {
        for word in ["windlass", "/usr/local/bin/windlass", "'/my programs/windlass'", "'/it'\\''s/here'"] {
            let program = Program { path: String::new(), word: word.to_owned() };
            for agent in Agent::ALL {
                for moment in Moment::ALL {
                    let written = line(&program, *agent, *moment, 590);
                    assert!(is_ours(&written, *agent), "{written}");
                    assert!(Agent::ALL.iter().all(|other| other == agent || !is_ours(&written, *other)), "{written}");
                }
            }
        }
        assert!(is_ours("windlass hook stop --as claude", Agent::Claude));
    }

    #[test]
    fn what_others_wrote_is_not() {
        for command in [
            "",
            "windlass",
            "windlass hook stop",
            "windlass hook stop --as codex",
            "windlass hook halt --as claude",
            "windlass hook stop --as claude && make",
            "windlass hook stop --as claude --within 5s; make",
            "WINDLASS_STATE_DIR=/x windlass hook stop --as claude",
            "my wrapper windlass hook stop --as claude",
            "echo windlass hook stop --as claude",
            "$(evil) hook stop --as claude",
            "'unclosed hook stop --as claude",
        ] {
            assert!(!is_ours(command, Agent::Claude), "{command}");
        }
    }
}
