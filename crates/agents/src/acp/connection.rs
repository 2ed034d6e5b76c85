//! A running agent and one conversation with it.
//!
//! ```text
//!   run_turn: session/prompt ─► updates, requests … ─► stop reason     cancelled, timed out, silent: session/cancel, then
//!                                                                      CANCELLATION_GRACE for the answer
//! ```
//!
//! Invariants:
//! - A connection that is handed back accepts another prompt. Any other has been ended, with all its processes.
//! - Opening and prompting share one deadline. When it passes, the turn has timed out in either phase.
//! - No process that was started for the agent outlives its turn.
//!
//! Not here: the handshake (`handshake`), the meaning of messages (`client`), when to prompt an agent (`runner`).

use std::time::Duration;

use serde_json::{Value, json};
use windlass_engine::TurnFailure as Kind;
use windlass_process::{OwnerLock, RunControl};

use super::channel::{AcpChannel, RequestFailure, TurnContext, TurnInterruption};
use super::handshake::PendingConnection;
use super::methods::PROMPT;
use super::protocol_error::ProtocolError;
use super::start_request::describe_rpc_error;
use crate::failure::strip_leading_warnings;
use crate::prompt_spec::find_last_nonblank_line;
use crate::{TurnEnd, TurnOutcome};

/// The time that the agent has to answer after a cancellation.
const CANCELLATION_GRACE: Duration = Duration::from_secs(10);
/// The longest time in which a connection must become silent before its next turn.
const READINESS_TIMEOUT: Duration = Duration::from_secs(1);
/// The time to wait for a message after the answer, if the turn had none before it.
const TRAILING_MESSAGE_TIMEOUT: Duration = Duration::from_millis(500);

/// An agent that is ready for prompts.
pub struct AcpConnection {
    channel: AcpChannel,
    conversation: String,
}

impl AcpConnection {
    pub(super) fn new(channel: AcpChannel, conversation: String) -> Self {
        Self { channel, conversation }
    }

    pub fn conversation(&self) -> &str {
        &self.conversation
    }

    /// Returns whether the agent and its MCP servers still run and the agent is silent. Output since the last turn belongs to no
    /// turn.
    pub fn is_ready(&mut self, control: &RunControl, owner_lock: &OwnerLock) -> bool {
        self.channel.servers.iter_mut().all(|server| server.is_running())
            && self.channel.drain_pending_output(control, owner_lock, READINESS_TIMEOUT)
    }

    /// Sends a prompt and waits for the end of the turn. Returns the outcome, and the connection if it accepts another prompt.
    pub fn run_turn(mut self, prompt: &str, mut context: TurnContext<'_>) -> (TurnOutcome, Option<Self>) {
        let params = json!({"sessionId": self.conversation, "prompt": [{"type": "text", "text": prompt}]});
        let silence = context.budget.silence;
        self.channel.services.begin_turn();
        self.channel.client.send_request(PROMPT, params);
        let (answer, interruption) = self.channel.await_answer(context.reborrow(), Some(CANCELLATION_GRACE));
        if answer.is_ok() && interruption.is_none() && self.channel.client.is_turn_empty() {
            self.channel.drain_trailing_output(context, TRAILING_MESSAGE_TIMEOUT);
        }
        self.channel.services.end_turn();
        let interfered = |end: TurnEnd| match interruption {
            None => end,
            Some(TurnInterruption::Cancelled) => TurnEnd::Cancelled,
            // Windlass itself may have been told to end everything meanwhile.
            Some(_) if end == TurnEnd::Cancelled => end,
            Some(TurnInterruption::TimedOut) => TurnEnd::TimedOut,
            Some(TurnInterruption::Silent) => {
                TurnEnd::from_failure(Kind::Silent, describe_silence(silence.unwrap_or_default()))
            }
        };
        let (end, usage) = match answer {
            Ok(answer) => (self.read_stop_reason(&answer), self.channel.client.meter.finish_turn(&answer)),
            Err(RequestFailure::Refused(refused)) => {
                let why = format!("the agent failed: {}", describe_rpc_error(&refused));
                (TurnEnd::from_failure(Kind::Failed, why), self.channel.client.meter.finish_turn(&Value::Null))
            }
            Err(fault) => {
                let (kind, usage) =
                    (classify_request_failure(&fault), self.channel.client.meter.finish_turn(&Value::Null));
                let half = PendingConnection::new(self.channel);
                let end =
                    half.end_with_failure(PROMPT, fault).map_or_else(|end| end, |why| TurnEnd::from_failure(kind, why));
                return (TurnOutcome { usage, ..TurnOutcome::from_turn_end(interfered(end)) }, None);
            }
        };
        // The stopped processes cannot change the workspace while gates and hooks judge it.
        self.channel.live.suspend_tree();
        (TurnOutcome { usage, ..TurnOutcome::from_turn_end(interfered(end)) }, Some(self))
    }

    /// Takes the last message if it is separate: it may say that the turn failed.
    pub fn take_trailing_message(&mut self) -> Option<String> {
        self.channel.client.take_trailing_message()
    }

    /// Ends the agent and its programs.
    pub fn close_connection(mut self) {
        self.channel.services.end_turn();
        self.channel.live.end_gracefully();
    }

    /// Returns the turn end that a stop reason stands for.
    fn read_stop_reason(&mut self, answer: &Value) -> TurnEnd {
        let said = self.channel.client.take_final_message();
        let failed = |kind: Kind, why: &str| {
            let last = find_last_nonblank_line(&said).map(|line| format!(": {line}")).unwrap_or_default();
            TurnEnd::from_failure(kind, format!("{why}{last}"))
        };
        match answer["stopReason"].as_str() {
            Some("end_turn")
                if strip_leading_warnings(&said).is_empty() && self.channel.client.tools.used_count() == 0 =>
            {
                failed(Kind::Empty, "the agent ended its turn without a message and without a tool call")
            }
            Some("end_turn") => TurnEnd::Answered(said),
            Some("max_tokens") => failed(Kind::OutOfTokens, "the agent ran out of tokens (max_tokens)"),
            Some("max_turn_requests") => failed(Kind::OutOfTurns, "the agent ran out of requests (max_turn_requests)"),
            Some("refusal") => failed(Kind::Refused, "the agent refused to continue (refusal)"),
            Some("cancelled") => failed(Kind::GaveUp, "the agent cancelled its turn itself (cancelled)"),
            Some(other) => {
                let why = format!("the agent ended its turn for a reason that is not known here (`{other}`)");
                failed(Kind::Breach, &why)
            }
            None => failed(Kind::Breach, "the agent ended its turn without a reason, against the protocol"),
        }
    }
}

fn describe_silence(time: Duration) -> String {
    format!("the agent was silent for {} s", time.as_secs_f32())
}

fn classify_request_failure(fault: &RequestFailure) -> Kind {
    match fault {
        RequestFailure::AgentExited => Kind::Crashed,
        RequestFailure::Breach(ProtocolError::NotJson { .. } | ProtocolError::Noise { .. }) => Kind::Garbage,
        RequestFailure::Breach(_) => Kind::Breach,
        RequestFailure::Interrupted(TurnInterruption::Silent) => Kind::Silent,
        RequestFailure::Refused(_)
        | RequestFailure::AnswerOverdue
        | RequestFailure::Interrupted(_)
        | RequestFailure::Other(_) => Kind::Failed,
    }
}
