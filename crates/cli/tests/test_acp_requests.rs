//! Unusual requests of agents with the Agent Client Protocol: many at once, and without reading the answers

use windlass_agents::TurnEnd;
use windlass_engine::TurnFailure;
use windlass_process::ProgramInvocation;

use crate::support::acp_agents::{AcpOpenOptions, ScriptedAcpAgent};

/// The begin of such an agent: it opens a conversation and reads the prompt, which is request 3.
const AGENT_PREAMBLE: &str = r#"
say() { printf '{"jsonrpc":"2.0",%s}\n' "$1"; }
ask() { say "\"id\":\"$1\",\"method\":\"$2\",\"params\":$3"; }
words() {
    say '"method":"session/update","params":{"sessionId":"one","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'"$1"'"}}}'
}
# Reads answers until there is one to this question.
answer() { while read -r line; do case $line in *'"id":"'$1'"'*) return;; esac; done; }
end() { words "$1"; say '"id":3,"result":{"stopReason":"end_turn"}'; cat > /dev/null; }
read -r line; say '"id":1,"result":{"protocolVersion":1}'
read -r line; say '"id":2,"result":{"sessionId":"one"}'
read -r line
"#;

/// Returns the outcome of a turn of an agent that goes on with this script.
fn run_turn(driven: &ScriptedAcpAgent, script: &str) -> (TurnEnd, String) {
    driven.world.write("wild.sh", format!("{AGENT_PREAMBLE}{script}"));
    let opened = driven.open_program(ProgramInvocation::Shell("sh wild.sh".into()), &AcpOpenOptions::default());
    let (outcome, _, told) = driven.run_prompt(opened.connection);
    (outcome.end, told)
}

/// Every request that waits for the end of a program is answered, whatever ends the program.
#[test]
fn terminal_exit_answers_pending_wait_requests() {
    for (method, told) in [("kill", "SIGKILL"), ("release", "there is no terminal")] {
        let script = format!(
            r#"
ask a terminal/create '{{"command":"sleep 60"}}'; answer a
ask b terminal/wait_for_exit '{{"terminalId":"terminal-1"}}'
ask c terminal/{method} '{{"terminalId":"terminal-1"}}'; answer c
answer b; case $line in *'{told}'*) end Done.;; *) end Wrong.;; esac
"#
        );
        assert_eq!(run_turn(&ScriptedAcpAgent::new(&[]), &script).0, TurnEnd::Answered("Done.".to_owned()), "{method}");
    }
}

#[test]
fn unreleased_terminals_are_dropped_above_the_limit() {
    let script = r#"
number=0
while [ $number -lt 70 ]; do
    number=$((number + 1))
    ask a$number terminal/create '{"command":"true"}'; answer a$number
    case $line in *'"error"'*) end "$number";; esac
    ask b$number terminal/wait_for_exit '{"terminalId":"terminal-'$number'"}'; answer b$number
done
ask c terminal/output '{"terminalId":"terminal-70"}'; answer c
case $line in *exitStatus*) end Done.;; esac
"#;
    let (end, _) = run_turn(&ScriptedAcpAgent::new(&[]), script);
    assert_eq!(end, TurnEnd::Answered("Done.".to_owned()));
}

#[test]
fn agent_that_sends_requests_without_reading_is_ended() {
    let driven = ScriptedAcpAgent::new(&[]);
    driven.world.write("large", "x".repeat(4 * 1024 * 1024));
    let script = r#"
number=0
while [ $number -lt 40 ]; do
    number=$((number + 1))
    ask $number fs/read_text_file '{"path":"large"}'
done
sleep 60
"#;
    let (end, told) = run_turn(&driven, script);
    let why =
        "the agent broke the protocol: it sends requests faster than it reads answers: 64 MiB of answers wait for it";
    assert_eq!(end, TurnEnd::from_failure(TurnFailure::Breach, why), "{told}");
}

/// A request together with the end of a turn comes too late: a gate may be judging the files.
#[test]
fn file_write_requested_after_turn_end_is_refused() {
    let driven = ScriptedAcpAgent::new(&[]);
    let script = r#"
words One.
together=$(
    say '"id":3,"result":{"stopReason":"end_turn"}'
    ask a fs/write_text_file '{"path":"written","content":"x"}'
    ask b fs/read_text_file '{"path":"wild.sh","limit":0}'
)
printf '%s\n' "$together"
answer a; case $line in *'the turn is over'*) ;; *) exit 1;; esac
answer b; case $line in *content*) ;; *) exit 1;; esac
read -r line; words Two.; say '"id":4,"result":{"stopReason":"end_turn"}'; cat > /dev/null
"#;
    driven.world.write("wild.sh", format!("{AGENT_PREAMBLE}{script}"));
    let opened = driven.open_program(ProgramInvocation::Shell("sh wild.sh".into()), &AcpOpenOptions::default());
    let mut connection = driven.run_prompt(opened.connection).1.expect("it is good for another prompt");
    assert!(driven.is_ready(&mut connection));
    assert_eq!(driven.run_prompt(connection).0.end, TurnEnd::Answered("Two.".to_owned()));
    assert!(!driven.world.path("written").exists());
}

#[test]
fn long_path_in_request_is_truncated_in_transcript() {
    let script = r#"
path=$(printf '%5000s' x | tr ' ' x)
ask a fs/read_text_file '{"path":"'$path'"}'; answer a
end Done.
"#;
    let (end, told) = run_turn(&ScriptedAcpAgent::new(&[]), script);
    assert!(end == TurnEnd::Answered("Done.".to_owned()) && told.len() < 1500, "{end:?} {}", told.len());
}
