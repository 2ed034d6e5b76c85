//! The driver of known agents: resumes the previous conversation, or begins a new one.
//!
//! ```text
//!   previous conversation? ── yes ─► prompt in it ── it is lost ─┐
//!            └── no ───────────────────────────────────────────────┴─► prompt in a new one, with everything from before
//! ```
//!
//! Invariants:
//! - A conversation is recorded before the prompt is sent if Windlass chooses its name, else as soon as the agent reports it.
//! - Usage that an agent reports for the whole conversation is counted from the previous total.

use std::ops::ControlFlow;

use windlass_engine::AgentUsage;
use windlass_process::OutputStream;

use super::command_line::{PromptTarget, is_conversation_name};
use super::dialect::HeadlessDialect;
use super::stream_event::StreamEvent;
use super::stream_reader::{HeadlessTurnEnd, StreamReader};
use super::{build_prompt_script, build_stream_spec};
use crate::{Agent, AgentDriver, PromptRequest, TurnBudget, TurnEnd, TurnHost, TurnOutcome, TurnOutput};

/// The reason for another conversation name after a resumed one.
const RENAMED_REASON: &str = "the agent continues under another conversation id";

/// The driver of known agents. It starts one process for each prompt.
pub(crate) struct HeadlessDriver {
    agent: Agent,
    dialect: HeadlessDialect,
}

impl AgentDriver for HeadlessDriver {
    fn run_turn(&mut self, request: &PromptRequest, budget: &mut TurnBudget, host: &mut dyn TurnHost) -> TurnOutcome {
        let mut restarted_because = None;
        if let Some(before) = request.conversation.as_deref().filter(|name| is_conversation_name(name)) {
            match self.run_turn_in_conversation(PromptTarget::Existing(before), None, (request, budget), host) {
                Ok(outcome) => return outcome,
                Err(gone) => restarted_because = Some(gone),
            }
        }
        let name = self.dialect.new_conversation_name(request.nonce);
        let outcome = self.run_turn_in_conversation(
            PromptTarget::NewConversation(name.as_deref()),
            restarted_because.as_deref(),
            (request, budget),
            host,
        );
        outcome.unwrap_or_else(|gone| TurnOutcome::from_turn_end(TurnEnd::Broken(gone)))
    }
}

impl HeadlessDriver {
    pub fn new(agent: Agent, dialect: HeadlessDialect) -> Self {
        Self { agent, dialect }
    }

    /// Runs a turn in a conversation. The error says why the conversation is lost.
    fn run_turn_in_conversation(
        &self,
        place: PromptTarget<'_>,
        restarted_because: Option<&str>,
        (request, budget): (&PromptRequest, &TurnBudget),
        host: &mut dyn TurnHost,
    ) -> Result<TurnOutcome, String> {
        let (resumes, used, mut named, renamed) = match place {
            PromptTarget::Existing(name) => (true, request.used, Some(name.to_owned()), Some(RENAMED_REASON)),
            PromptTarget::NewConversation(name) => {
                (false, AgentUsage::default(), name.map(str::to_owned), restarted_because)
            }
        };
        let opened = host.word_prompt(resumes).and_then(|prompt| {
            if let PromptTarget::NewConversation(Some(name)) = place {
                host.open_conversation(name, restarted_because)?;
            }
            Ok(prompt)
        });
        let prompt = match opened {
            Ok(prompt) => prompt,
            Err(end) => return Ok(TurnOutcome::from_turn_end(end)),
        };
        let tools = request.tools.as_ref();
        let script = build_prompt_script(&self.agent, self.dialect, place, tools);
        let environment = self.dialect.environment_with_tools(tools, request.environment.clone());
        let mut spec = build_stream_spec(script, &prompt, &request.directory, environment);
        spec.wrapper.clone_from(&request.wrapper);
        (spec.idle_timeout, spec.timeout) = (budget.silence, budget.time_left());
        let mut hearing = StreamReader::new(self.dialect, resumes);
        let mut is_refused = false;
        let mut watch = |host: &mut dyn TurnHost, stream: OutputStream, bytes: &[u8]| {
            host.write_output(match stream {
                OutputStream::Stdout => TurnOutput::Stdout(bytes),
                OutputStream::Stderr => TurnOutput::Stderr(bytes),
            });
            for said in hearing.receive_bytes(stream, bytes) {
                match said {
                    StreamEvent::Text(text) => host.write_output(TurnOutput::Transcript(&text)),
                    StreamEvent::Conversation(name) if named.as_ref() == Some(&name) => {}
                    StreamEvent::Conversation(name) => {
                        is_refused |= host.open_conversation(&name, renamed).is_err();
                        named = Some(name);
                    }
                }
            }
            if hearing.is_finished() || is_refused { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let finished = match host.run_program(&spec, Some(&mut watch)) {
            Ok(finished) => finished,
            Err(end) => return Ok(TurnOutcome::from_turn_end(end)),
        };
        // A process that was ended right after its turn had no time to end its children.
        let leaky = finished.leaky && !hearing.is_finished();
        let heard = hearing.finish_turn(finished.exit);
        let usage = heard.usage_since(used);
        match heard.end {
            HeadlessTurnEnd::Turn(end) => Ok(TurnOutcome { leaky, usage, ..TurnOutcome::from_turn_end(end) }),
            HeadlessTurnEnd::ConversationLost(why) => Err(why),
        }
    }
}
