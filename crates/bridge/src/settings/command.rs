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

/// Whether a command calls us for this agent: as it is written here, or as people write it, with whatever program, flags and
/// spelling. What a shell makes more of is somebody else's.
pub fn is_ours(command: &str, agent: Agent) -> bool {
    let is_guard = |tail: &str| tail.ends_with('}') && tail.contains("echo 'windlass did not answer");
    let command = match command.split_once(" || {") {
        Some((head, tail)) if is_guard(tail) => head,
        _ => command,
    };
    let Some(words) = words(command) else { return false };
    let [program, words @ ..] = words.as_slice() else { return false };
    let is_windlass = program.rsplit('/').next() == Some("windlass");
    let (mut called, mut whose) = (None, None);
    let mut words = words.iter().map(String::as_str).peekable();
    while let Some(word) = words.next() {
        match (word.strip_prefix("--"), called) {
            (Some(flag), _) => {
                let (flag, value) = flag.split_once('=').map_or((flag, None), |(flag, value)| (flag, Some(value)));
                let is_value = |next: &&str| !next.starts_with('-') && *next != "hook";
                let value = value.or_else(|| words.next_if(is_value));
                whose = if flag == "as" { Some(value) } else { whose };
            }
            (None, None) if word == "hook" => called = words.next_if(|point| is_point(point, agent)),
            _ => return false,
        }
        if called.is_none() && !word.starts_with("--") {
            return false;
        }
    }
    // Nobody else is known to have such a command, but whose it is must be said then.
    called.is_some() && whose.map_or(is_windlass, |whose| whose == Some(agent.name()))
}

/// Whether a word names one of our moments, in anybody's spelling.
fn is_point(word: &str, agent: Agent) -> bool {
    let plain = |name: &str| name.replace(['_', '-'], "").to_ascii_lowercase();
    let word = plain(word);
    let is = |moment: &Moment| {
        plain(moment.point()) == word || agent.event(*moment).is_some_and(|event| plain(event) == word)
    };
    Moment::ALL.iter().any(is)
}

/// The words of a command, if every shell sees the same ones.
fn words(command: &str) -> Option<Vec<String>> {
    let (mut words, mut word) = (Vec::new(), None::<String>);
    let mut rest = command.chars();
    while let Some(letter) = rest.next() {
        match letter {
            ' ' | '\t' => words.extend(word.take()),
            '\'' | '"' => {
                let (inside, after) = rest.as_str().split_once(letter)?;
                let is_plain = letter == '\'' || !inside.contains(['$', '`', '\\']);
                word.get_or_insert_default().push_str(is_plain.then_some(inside)?);
                rest = after.chars();
            }
            '\\' => word.get_or_insert_default().push(rest.next().filter(|next| *next == '\'')?),
            _ if letter.is_ascii_alphanumeric() || "/._-+:@=,~%".contains(letter) => {
                word.get_or_insert_default().push(letter);
            }
            _ => return None,
        }
    }
    words.extend(word);
    Some(words)
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
    }

    /// An agent that has both calls twice.
    #[test]
    fn what_people_write_is_known_too() {
        for command in [
            "windlass hook stop",
            "windlass hook stop --as claude",
            "windlass hook Stop --as=claude",
            "windlass hook subagent-stop --within 5s --as claude",
            "windlass hook stop --as claude --project /x",
            "/opt/windlass hook stop --project '/my project' --as claude --within=5m",
            "windlass --project \"/my project\" hook stop --as claude",
            "windlass --no-color hook  stop --as claude ",
            "\"/my programs/windlass\" hook stop --as 'claude'",
        ] {
            assert!(is_ours(command, Agent::Claude), "{command}");
        }
        assert!(is_ours("windlass hook AfterAgent", Agent::Gemini));
    }

    #[test]
    fn what_others_wrote_is_not() {
        for command in [
            "",
            "windlass",
            "windlass hook",
            "windlass hook --as claude",
            "windlass hook stop now --as claude",
            "windlass hook stop --as",
            "other hook stop",
            "windlass hooks test stop",
            "windlass hook stop --as codex",
            "windlass hook halt --as claude",
            "windlass hook stop --as claude && make",
            "windlass hook stop --as claude --within 5s; make",
            "WINDLASS_STATE_DIR=/x windlass hook stop --as claude",
            "my wrapper windlass hook stop --as claude",
            "echo windlass hook stop --as claude",
            "$(evil) hook stop --as claude",
            "windlass hook stop --as claude --project \"$HOME\"",
            "'unclosed hook stop --as claude",
        ] {
            assert!(!is_ours(command, Agent::Claude), "{command}");
        }
    }
}
