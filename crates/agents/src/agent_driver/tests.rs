//! Drivers with a host that records all calls.

use windlass_process::{OwnerLock, RunControl, run_program};

use super::*;
use crate::headless::HeadlessDialect;
use crate::{Agent, AgentKind};

struct NotingHost<'a> {
    owner_lock: &'a OwnerLock,
    notes: Vec<String>,
}

impl TurnHost for NotingHost<'_> {
    fn word_prompt(&mut self, remembers: bool) -> Result<String, TurnEnd> {
        self.notes.push(format!("prompt, remembers: {remembers}"));
        Ok("Go.".to_owned())
    }

    fn open_conversation(&mut self, name: &str, restarted_because: Option<&str>) -> Result<(), TurnEnd> {
        self.notes.push(format!("conversation {name}: {}", restarted_because.unwrap_or("-")));
        if name == "refused" { Err(TurnEnd::Cancelled) } else { Ok(()) }
    }

    fn write_output(&mut self, output: TurnOutput<'_>) {
        if let TurnOutput::Transcript(text) = output {
            self.notes.push(format!("transcript: {text}"));
        }
    }

    fn run_program(
        &mut self,
        spec: &ProgramSpec,
        watch: Option<&mut OutputWatch<'_>>,
    ) -> Result<ProgramOutcome, TurnEnd> {
        let (owner_lock, control) = (self.owner_lock, RunControl::new().with_own_cancel());
        let ran = match watch {
            None => run_program(spec, owner_lock, &control, &mut |_, _| {}),
            Some(watch) => run_program(spec, owner_lock, &control, &mut |stream, bytes| {
                if watch(self, stream, bytes).is_break() {
                    control.cancel_own_runs();
                }
            }),
        };
        ran.map_err(|error| TurnEnd::Broken(error.to_string()))
    }
}

/// Prompts an agent whose program is this script, in the conversation `before`.
fn prompt(driver: AgentKind, script: &str) -> (TurnEnd, String) {
    prompt_with_wrapper(&[], driver, script)
}

fn prompt_with_wrapper(wrapper: &[&str], driver: AgentKind, script: &str) -> (TurnEnd, String) {
    let directory = tempfile::tempdir().expect("a directory");
    let mut agent = Agent::with_default_setup("x", driver);
    agent.setup.command = Some("sh agent.sh".to_owned());
    let owner_lock = OwnerLock::acquire(&directory.path().join("owners"), 1).expect("an owner lock");
    let mut host = NotingHost { owner_lock: &owner_lock, notes: Vec::new() };
    std::fs::write(directory.path().join("agent.sh"), script).expect("a script");
    let request = PromptRequest {
        directory: directory.path().to_owned(),
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        wrapper: wrapper.iter().map(Into::into).collect(),
        tools: None,
        conversation: Some("before".to_owned()),
        used: AgentUsage::default(),
        nonce: 7,
        record: directory.path().join("1"),
    };
    let mut budget = TurnBudget::new(None, None, RunControl::new());
    let outcome = agent.create_driver(None, &owner_lock).run_turn(&request, &mut budget, &mut host);
    (outcome.end, host.notes.join("\n"))
}

#[test]
fn wrapper_starts_program_of_agent() {
    let wrapper = ["env", "WRAPPED=yes"];
    let kind = || AgentKind::Command("sh agent.sh".to_owned());
    let (end, _) = prompt_with_wrapper(&wrapper, kind(), "cat >/dev/null; echo wrapped: $WRAPPED");
    assert_eq!(end, TurnEnd::Answered("wrapped: yes\n".to_owned()));
    let line = r#"{"type":"result","subtype":"success","is_error":false,"result":"'$WRAPPED'","session_id":"before"}"#;
    let (end, _) = prompt_with_wrapper(
        &wrapper,
        AgentKind::Headless(HeadlessDialect::Claude),
        &format!("cat >/dev/null; echo '{line}'"),
    );
    assert_eq!(end, TurnEnd::Answered("yes".to_owned()));
}

#[test]
fn command_agent_remembers_nothing() {
    let (end, notes) = prompt(AgentKind::Command("cat; echo; sh agent.sh".to_owned()), "echo Done.");
    assert_eq!((end, &*notes), (TurnEnd::Answered("Go.\nDone.\n".to_owned()), "prompt, remembers: false"));
}

#[test]
fn headless_agent_begins_anew_where_the_conversation_is_lost() {
    let script = r#"
case "$*" in *resume*) echo 'No conversation found with session ID: before' >&2; exit 1;; esac
echo '{"type":"thread.started","thread_id":"new"}'
echo '{"type":"item.completed","item":{"id":"1","type":"agent_message","text":"Done."}}'
echo '{"type":"turn.completed"}'
"#;
    let (end, notes) = prompt(AgentKind::Headless(HeadlessDialect::Codex), script);
    assert_eq!(end, TurnEnd::Answered("Done.".to_owned()));
    insta::assert_snapshot!(notes, @r"
    prompt, remembers: true
    prompt, remembers: false
    conversation new: No conversation found with session ID: before
    transcript: Done.
    ");
}

#[test]
fn headless_agent_is_ended_where_the_host_cannot_note_its_conversation() {
    let script = r#"echo '{"type":"thread.started","thread_id":"refused"}'; exec sleep 600"#;
    let (end, notes) = prompt(AgentKind::Headless(HeadlessDialect::Codex), script);
    assert_eq!(end, TurnEnd::Cancelled);
    insta::assert_snapshot!(notes, @r"
    prompt, remembers: true
    conversation refused: the agent continues under another conversation id
    ");
}

#[test]
fn agent_that_stays_needs_a_launcher() {
    let (end, notes) = prompt(AgentKind::Acp("sh agent.sh".to_owned()), "");
    assert_eq!((end, &*notes), (TurnEnd::Broken("only `windlass run` can speak with it".to_owned()), ""));
}
