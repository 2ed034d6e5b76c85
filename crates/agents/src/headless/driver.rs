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

use windlass_engine::Usage;
use windlass_process::Stream;

use super::dialect::Dialect;
use super::hearing::{Ended, Hearing};
use super::stream_event::Said;
use super::words::{Place, is_name};
use super::{script, spec};
use crate::{Agent, AgentDriver, PromptRequest, TurnBudget, TurnEnd, TurnHost, TurnOutcome, TurnOutput};

/// The reason for another conversation name after a resumed one.
const RENAMED: &str = "the agent goes on under another name";

/// The driver of known agents. It starts one process for each prompt.
pub(crate) struct HeadlessDriver {
    agent: Agent,
    dialect: Dialect,
}

impl AgentDriver for HeadlessDriver {
    fn prompt(&mut self, request: &PromptRequest, budget: &mut TurnBudget, host: &mut dyn TurnHost) -> TurnOutcome {
        let mut restarted_because = None;
        if let Some(before) = request.conversation.as_deref().filter(|name| is_name(name)) {
            match self.prompt_in(Place::Before(before), None, (request, budget), host) {
                Ok(outcome) => return outcome,
                Err(gone) => restarted_because = Some(gone),
            }
        }
        let name = self.dialect.name(request.nonce);
        let outcome =
            self.prompt_in(Place::New(name.as_deref()), restarted_because.as_deref(), (request, budget), host);
        outcome.unwrap_or_else(|gone| TurnOutcome::ended(TurnEnd::Broken(gone)))
    }
}

impl HeadlessDriver {
    pub fn new(agent: Agent, dialect: Dialect) -> Self {
        Self { agent, dialect }
    }

    /// Runs a turn in a conversation. The error says why the conversation is lost.
    fn prompt_in(
        &self,
        place: Place<'_>,
        restarted_because: Option<&str>,
        (request, budget): (&PromptRequest, &TurnBudget),
        host: &mut dyn TurnHost,
    ) -> Result<TurnOutcome, String> {
        let (resumes, used, mut named, renamed) = match place {
            Place::Before(name) => (true, request.used, Some(name.to_owned()), Some(RENAMED)),
            Place::New(name) => (false, Usage::default(), name.map(str::to_owned), restarted_because),
        };
        let opened = host.word_prompt(resumes).and_then(|prompt| {
            if let Place::New(Some(name)) = place {
                host.open_conversation(name, restarted_because)?;
            }
            Ok(prompt)
        });
        let prompt = match opened {
            Ok(prompt) => prompt,
            Err(end) => return Ok(TurnOutcome::ended(end)),
        };
        let tools = request.tools.as_ref();
        let script = script(&self.agent, self.dialect, place, tools);
        let environment = self.dialect.with_tools(tools, request.environment.clone());
        let mut spec = spec(script, &prompt, &request.directory, environment);
        (spec.silence, spec.timeout) = (budget.silence, budget.time_left());
        let mut hearing = Hearing::new(self.dialect, resumes);
        let mut is_refused = false;
        let mut watch = |host: &mut dyn TurnHost, stream: Stream, bytes: &[u8]| {
            host.write(match stream {
                Stream::Stdout => TurnOutput::Stdout(bytes),
                Stream::Stderr => TurnOutput::Stderr(bytes),
            });
            for said in hearing.hear(stream, bytes) {
                match said {
                    Said::Text(text) => host.write(TurnOutput::Transcript(&text)),
                    Said::Conversation(name) if named.as_ref() == Some(&name) => {}
                    Said::Conversation(name) => {
                        is_refused |= host.open_conversation(&name, renamed).is_err();
                        named = Some(name);
                    }
                }
            }
            if hearing.is_enough() || is_refused { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let finished = match host.run_program(&spec, Some(&mut watch)) {
            Ok(finished) => finished,
            Err(end) => return Ok(TurnOutcome::ended(end)),
        };
        // A process that was ended right after its turn had no time to end its children.
        let leaky = finished.leaky && !hearing.is_enough();
        let heard = hearing.end(finished.exit);
        let usage = heard.used(used);
        match heard.ended {
            Ended::Turn(end) => Ok(TurnOutcome { leaky, usage, ..TurnOutcome::ended(end) }),
            Ended::Gone(why) => Err(why),
        }
    }
}
