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
use windlass_engine::Fault as Kind;
use windlass_process::{Control, Roster};

use super::breach::Breach;
use super::line::{Attention, Fault, Interference, Line};
use super::methods::PROMPT;
use super::opening::Half;
use super::start::words;
use crate::prompt_run::last_line_of;
use crate::trouble::without_warnings;
use crate::{TurnEnd, TurnOutcome};

/// The time that the agent has to answer after a cancellation.
const GRACE: Duration = Duration::from_secs(10);
/// The longest time in which a connection must become silent before its next turn.
const SILENCE: Duration = Duration::from_secs(1);
/// The time to wait for a message after the answer, if the turn had none before it.
const BEHIND: Duration = Duration::from_millis(500);

/// An agent that is ready for prompts.
pub struct Connection {
    line: Line,
    conversation: String,
}

impl Connection {
    pub(super) fn new(line: Line, conversation: String) -> Self {
        Self { line, conversation }
    }

    pub fn conversation(&self) -> &str {
        &self.conversation
    }

    /// Returns whether the agent and its MCP servers still run and the agent is silent. Output since the last turn belongs to no
    /// turn.
    pub fn is_ready(&mut self, control: &Control, roster: &Roster) -> bool {
        self.line.servers.iter_mut().all(|server| server.is_running()) && self.line.catch_up(control, roster, SILENCE)
    }

    /// Sends a prompt and waits for the end of the turn. Returns the outcome, and the connection if it accepts another prompt.
    pub fn prompt(mut self, prompt: &str, mut attention: Attention<'_>) -> (TurnOutcome, Option<Self>) {
        let params = json!({"sessionId": self.conversation, "prompt": [{"type": "text", "text": prompt}]});
        let silence = attention.budget.silence;
        self.line.desk.begin_turn();
        self.line.talk.ask(PROMPT, params);
        let (answer, interference) = self.line.attend(attention.again(), Some(GRACE));
        if answer.is_ok() && interference.is_none() && self.line.talk.is_wordless() {
            self.line.linger(attention, BEHIND);
        }
        self.line.desk.end_turn();
        let interfered = |end: TurnEnd| match interference {
            None => end,
            Some(Interference::Cancelled) => TurnEnd::Cancelled,
            // Windlass itself may have been told to end everything meanwhile.
            Some(_) if end == TurnEnd::Cancelled => end,
            Some(Interference::TimedOut) => TurnEnd::TimedOut,
            Some(Interference::Silent) => TurnEnd::failed(Kind::Silent, silent(silence.unwrap_or_default())),
        };
        let (end, usage) = match answer {
            Ok(answer) => (self.stopped(&answer), self.line.talk.meter.turn(&answer)),
            Err(Fault::Refused(refused)) => {
                let why = format!("the agent failed: {}", words(&refused));
                (TurnEnd::failed(Kind::Failed, why), self.line.talk.meter.turn(&Value::Null))
            }
            Err(fault) => {
                let (kind, usage) = (kind(&fault), self.line.talk.meter.turn(&Value::Null));
                let half = Half::new(self.line);
                let end = half.fail(PROMPT, fault).map_or_else(|end| end, |why| TurnEnd::failed(kind, why));
                return (TurnOutcome { usage, ..TurnOutcome::ended(interfered(end)) }, None);
            }
        };
        // The stopped processes cannot change the workspace while gates and hooks judge it.
        self.line.live.leave_stopped();
        (TurnOutcome { usage, ..TurnOutcome::ended(interfered(end)) }, Some(self))
    }

    /// Takes the last message if it is separate: it may say that the turn failed.
    pub fn take_aside(&mut self) -> Option<String> {
        self.line.talk.take_aside()
    }

    /// Ends the agent and its programs.
    pub fn close(mut self) {
        self.line.desk.end_turn();
        self.line.live.end();
    }

    /// Returns the turn end that a stop reason stands for.
    fn stopped(&mut self, answer: &Value) -> TurnEnd {
        let said = self.line.talk.take_speech();
        let failed = |kind: Kind, why: &str| {
            let last = last_line_of(&said).map(|line| format!(": {line}")).unwrap_or_default();
            TurnEnd::failed(kind, format!("{why}{last}"))
        };
        match answer["stopReason"].as_str() {
            Some("end_turn") if without_warnings(&said).is_empty() && self.line.talk.tools.used() == 0 => {
                failed(Kind::Empty, "the agent ended its turn without a word, and without having used a tool")
            }
            Some("end_turn") => TurnEnd::Said(said),
            Some("max_tokens") => failed(Kind::OutOfTokens, "the agent ran out of tokens (max_tokens)"),
            Some("max_turn_requests") => failed(Kind::OutOfTurns, "the agent ran out of requests (max_turn_requests)"),
            Some("refusal") => failed(Kind::Refused, "the agent refused to go on (refusal)"),
            Some("cancelled") => failed(Kind::GaveUp, "the agent gave its turn up by itself (cancelled)"),
            Some(other) => {
                let why = format!("the agent ended its turn for a reason that is not known here (`{other}`)");
                failed(Kind::Breach, &why)
            }
            None => failed(Kind::Breach, "the agent ended its turn without a reason, against the protocol"),
        }
    }
}

fn silent(time: Duration) -> String {
    format!("the agent was silent for {} s", time.as_secs_f32())
}

fn kind(fault: &Fault) -> Kind {
    match fault {
        Fault::Over => Kind::Crashed,
        Fault::Breach(Breach::NotJson { .. } | Breach::Noise { .. }) => Kind::Garbage,
        Fault::Breach(_) => Kind::Breach,
        Fault::Ended(Interference::Silent) => Kind::Silent,
        Fault::Refused(_) | Fault::Late | Fault::Ended(_) | Fault::Other(_) => Kind::Failed,
    }
}
