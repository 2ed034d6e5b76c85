//! The hook command in an agent's settings, and its recognition.

use crate::{AgentHookEvent, BridgeAgent};

/// For agents that treat any failure as a block: only exit code 2 blocks, any other prints a warning and passes.
const FAILURE_GUARD: &str =
    " || { [ $? = 2 ] && exit 2; echo 'windlass did not answer; going on without its hooks' >&2; }";

/// The path of this program, as settings name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramPath {
    /// A name in `PATH`, or a path.
    pub path: String,
    /// The path, quoted for a shell.
    pub word: String,
}

/// Returns the command for an agent that waits this long. The command's own limit is a little shorter.
pub fn format_hook_command(program: &ProgramPath, agent: BridgeAgent, moment: AgentHookEvent, seconds: u64) -> String {
    let guard = if treats_failure_as_block(agent) { FAILURE_GUARD } else { "" };
    let rest = match seconds {
        0..60 => 1,
        60..600 => 5,
        _ => 10,
    };
    format!("{} hook {} --as {agent} --within {}s{guard}", program.word, moment.point(), seconds - rest)
}

/// Returns whether a hook that cannot be started blocks the action: Copilot denies a tool for any failure, and Gemini CLI
/// drops a prompt, a tool and the end of a turn for every exit code above 1.
fn treats_failure_as_block(agent: BridgeAgent) -> bool {
    matches!(agent, Agent::Copilot | Agent::Gemini)
}

/// Returns whether a command is only a call of `windlass hook` for this agent, as `format_hook_command` or a user writes it. A
/// command with more shell syntax belongs to the user who wrote it.
pub fn is_windlass_command(command: &str, agent: BridgeAgent) -> bool {
    let command = command.strip_suffix(FAILURE_GUARD).unwrap_or(command);
    let Some((program, call)) = command.split_once(" hook ") else { return false };
    let is_plain = |text: &str| !text.contains(['$', '`', ';', '&', '|', '<', '>', '(', '"', '\n']);
    let is_program = program.starts_with('\'') || (is_plain(program) && !program.contains(' '));
    let is_for_agent = match call.split_once("--as ") {
        Some((_, agents)) => agents.split(' ').next() == Some(agent.name()),
        None => program == "windlass" || program.ends_with("/windlass"),
    };
    is_program && is_plain(call) && is_for_agent
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_command_is_ours_for_its_agent_only() {
        for word in ["windlass", "/usr/local/bin/windlass", "'/my programs/windlass'", "'/it'\\''s/here'"] {
            let program = ProgramPath { path: String::new(), word: word.to_owned() };
            for agent in BridgeAgent::ALL {
                for moment in AgentHookEvent::ALL {
                    let written = format_hook_command(&program, *agent, *moment, 600);
                    assert!(is_windlass_command(&written, *agent), "{written}");
                    assert!(
                        BridgeAgent::ALL.iter().all(|other| other == agent || !is_windlass_command(&written, *other)),
                        "{written}"
                    );
                }
            }
        }
    }

    /// An agent with both commands would call twice.
    #[test]
    fn plain_call_by_hand_is_ours() {
        for command in [
            "windlass hook stop",
            "windlass hook stop --as claude",
            "windlass hook Stop --as claude --project /x",
            "/opt/windlass hook stop --project '/my project' --as claude --within=5m",
        ] {
            assert!(is_windlass_command(command, BridgeAgent::Claude), "{command}");
        }
    }

    #[test]
    fn other_command_is_not_ours() {
        for command in [
            "",
            "windlass",
            "windlass hook",
            "other hook stop",
            "windlass hooks test stop",
            "windlass hook stop --as codex",
            "windlass hook stop --as claude && make",
            "windlass hook stop --as claude --within 5s; make",
            "windlass hook stop --as claude || { make; }",
            "WINDLASS_STATE_DIR=/x windlass hook stop --as claude",
            "my wrapper windlass hook stop --as claude",
            "echo windlass hook stop --as claude",
            "$(evil) hook stop --as claude",
            "windlass hook stop --as claude --project \"$HOME\"",
        ] {
            assert!(!is_windlass_command(command, BridgeAgent::Claude), "{command}");
        }
    }
}
