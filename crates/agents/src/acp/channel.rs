//! The channel to an agent: passes its output to the client, and serves its requests, until it answers.
//!
//! Invariants:
//! - The requests of the agent are served while Windlass waits for its answer; no request waits for another.
//! - An agent whose turn has to end is asked to cancel first, and its programs are ended.
//! - Paused time does not count against deadlines.

use std::time::{Duration, Instant};

use serde_json::Value;
use windlass_process::{InteractiveProcess, IoSession, OwnerLock, ProcessEvent, RunControl};

use super::client::{AcpClient, AcpEvent};
use super::client_services::ClientServices;
use super::http_server::McpHttpServer;
use super::json_rpc::JsonRpcError;
use super::protocol_error::ProtocolError;
use super::transcript::TranscriptRenderer;
use crate::TurnBudget;

/// The most bytes of answers that are kept for an agent that does not read them.
const MAX_UNREAD_ANSWERS: usize = 64 * 1024 * 1024;

/// The limits of a turn and the receiver of its transcript.
pub struct TurnContext<'a> {
    pub owner_lock: &'a OwnerLock,
    pub budget: &'a mut TurnBudget,
    /// Receives the transcript while the agent works.
    pub transcript: &'a mut dyn FnMut(&str),
}

impl TurnContext<'_> {
    /// Borrows the context again, for one call.
    pub(super) fn reborrow(&mut self) -> TurnContext<'_> {
        let Self { owner_lock, budget, transcript: emit } = self;
        TurnContext { owner_lock, budget, transcript: &mut **emit }
    }
}

/// Reasons why a request has no answer.
pub enum RequestFailure {
    Refused(JsonRpcError),
    Breach(ProtocolError),
    /// The agent has exited, or has closed its output.
    AgentExited,
    /// The agent took too long over a request before the first prompt.
    AnswerOverdue,
    /// The turn had to end before the answer came.
    Interrupted(TurnInterruption),
    Other(String),
}

/// Reasons to end a turn early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnInterruption {
    /// The deadline of the turn has passed.
    TimedOut,
    /// The agent was silent for longer than the budget allows.
    Silent,
    Cancelled,
}

/// A running agent with its protocol client and the services for it.
pub struct AcpChannel {
    pub live: InteractiveProcess,
    pub client: AcpClient,
    pub services: ClientServices,
    /// MCP servers that listen for the agent. They end with it.
    pub servers: Vec<McpHttpServer>,
}

impl AcpChannel {
    /// Waits for the answer to the open request. With a grace, an agent whose turn has to end is asked to cancel first.
    pub fn await_answer(
        &mut self,
        context: TurnContext<'_>,
        grace: Option<Duration>,
    ) -> (Result<Value, RequestFailure>, Option<TurnInterruption>) {
        let TurnContext { owner_lock, budget: TurnBudget { until, silence, control, .. }, transcript: emit } = context;
        let (mut interruption, mut leave) = (None, None);
        let mut session_io = match self.live.open_session(control) {
            Ok(session_io) => session_io,
            Err(error) => return (Err(RequestFailure::Other(format!("cannot listen to the agent: {error}"))), None),
        };
        session_io.reset_last_output();
        let mut renderer = TranscriptRenderer::default();
        loop {
            for (id, answer) in self.services.take_deferred_responses() {
                self.client.send_response(id, answer);
            }
            session_io.send_input(&self.client.take_outgoing());
            if let Err(breach) = check_unread_answers(session_io.unread_byte_count()) {
                return (Err(RequestFailure::Breach(breach)), interruption);
            }
            let (until, silence) = match interruption {
                None => (&mut *until, *silence),
                Some(_) => (&mut leave, None),
            };
            let heard = wait_for_event(&mut session_io, &mut self.services, until, silence);
            let why = match heard {
                ChannelEvent::Heard(ProcessEvent::Output(bytes)) => {
                    match handle_agent_bytes(
                        &bytes,
                        &mut self.client,
                        &mut self.services,
                        owner_lock,
                        (&mut renderer, emit),
                    ) {
                        Err(breach) => return (Err(RequestFailure::Breach(breach)), interruption),
                        Ok(Some(answer)) => return (answer.map_err(RequestFailure::Refused), interruption),
                        Ok(None) => continue,
                    }
                }
                ChannelEvent::Heard(ProcessEvent::BackgroundEnded) => continue,
                ChannelEvent::Heard(ProcessEvent::OutputEnded) => {
                    return (Err(RequestFailure::AgentExited), interruption);
                }
                ChannelEvent::Heard(ProcessEvent::Killed) => {
                    return (Err(RequestFailure::Interrupted(TurnInterruption::Cancelled)), interruption);
                }
                ChannelEvent::Heard(ProcessEvent::DeadlinePassed) | ChannelEvent::Silent if interruption.is_some() => {
                    return (Err(RequestFailure::Interrupted(TurnInterruption::TimedOut)), interruption);
                }
                ChannelEvent::Heard(ProcessEvent::DeadlinePassed) => TurnInterruption::TimedOut,
                ChannelEvent::Silent => TurnInterruption::Silent,
                ChannelEvent::Heard(ProcessEvent::Cancelled) => TurnInterruption::Cancelled,
            };
            let Some(grace) = grace else { return (Err(RequestFailure::Interrupted(why)), None) };
            interruption = interruption.or(Some(why));
            self.client.cancel_turn();
            self.services.end_turn();
            leave = Some(Instant::now() + grace);
        }
    }

    /// Handles output that follows an answer, for at most this long.
    pub fn drain_trailing_output(&mut self, context: TurnContext<'_>, most: Duration) {
        let TurnContext { owner_lock, budget, transcript: emit } = context;
        let Ok(mut session_io) = self.live.open_session(&budget.control) else { return };
        let (mut until, mut renderer) = (Some(Instant::now() + most), TranscriptRenderer::default());
        while let ProcessEvent::Output(bytes) = session_io.next_event(&mut until) {
            if handle_agent_bytes(&bytes, &mut self.client, &mut self.services, owner_lock, (&mut renderer, &mut *emit))
                .is_err()
            {
                return;
            }
            session_io.send_input(&self.client.take_outgoing());
        }
    }

    /// Handles output since the last turn, for at most this long. Returns whether the agent runs and is silent now.
    pub fn drain_pending_output(&mut self, control: &RunControl, owner_lock: &OwnerLock, most: Duration) -> bool {
        let Ok(mut session_io) = self.live.open_session(control) else { return false };
        let until = Instant::now() + most;
        while Instant::now() < until {
            match session_io.poll_event() {
                ProcessEvent::Output(bytes) => {
                    let no_observer: (_, &mut dyn FnMut(&str)) = (&mut TranscriptRenderer::default(), &mut |_| {});
                    if handle_agent_bytes(&bytes, &mut self.client, &mut self.services, owner_lock, no_observer)
                        .is_err()
                    {
                        return false;
                    }
                    session_io.send_input(&self.client.take_outgoing());
                }
                ProcessEvent::OutputEnded => return false,
                ProcessEvent::BackgroundEnded => {}
                ProcessEvent::DeadlinePassed | ProcessEvent::Cancelled | ProcessEvent::Killed => return true,
            }
        }
        false
    }
}

enum ChannelEvent {
    Heard(ProcessEvent),
    Silent,
}

/// Waits for the next event, or until the agent has been silent for too long.
fn wait_for_event(
    session_io: &mut IoSession<'_>,
    services: &mut ClientServices,
    until: &mut Option<Instant>,
    silence: Option<Duration>,
) -> ChannelEvent {
    loop {
        let quiet = silence.and_then(|silence| session_io.last_output_at().checked_add(silence));
        let mut next = until.iter().chain(&quiet).min().copied();
        let before = next;
        let heard = session_io.next_event_with_background(&mut next, services.programs());
        let paused = next.zip(before).map_or(Duration::ZERO, |(next, before)| next - before);
        *until = until.and_then(|until| until.checked_add(paused));
        if heard != ProcessEvent::DeadlinePassed || until.is_some_and(|until| Instant::now() >= until) {
            return ChannelEvent::Heard(heard);
        }
        // Programs beside the agent may have been active without an event.
        if silence.is_some_and(|silence| session_io.last_output_at().elapsed() >= silence) {
            return ChannelEvent::Silent;
        }
    }
}

/// Handles output of the agent: renders it, serves its requests, and returns the answer if it is there.
fn handle_agent_bytes(
    bytes: &[u8],
    client: &mut AcpClient,
    services: &mut ClientServices,
    owner_lock: &OwnerLock,
    (renderer, emit): (&mut TranscriptRenderer, &mut dyn FnMut(&str)),
) -> Result<Option<Result<Value, JsonRpcError>>, ProtocolError> {
    let mut answer = None;
    for said in client.receive_bytes(bytes)? {
        renderer.render_event(&said, emit);
        match said {
            AcpEvent::Answer(outcome) => {
                // Requests that arrive together with the answer are too late.
                services.end_turn();
                answer = Some(outcome);
            }
            AcpEvent::Request { id, request } => {
                let served = services.serve_request(&id, request, owner_lock);
                if let Some(note) = served.note {
                    renderer.render_note(&note, emit);
                }
                if let Some(outcome) = served.answer {
                    client.send_response(id, outcome);
                }
                check_unread_answers(client.outgoing_len())?;
            }
            _ => {}
        }
    }
    Ok(answer)
}

/// Returns an error if an agent sends requests without reading the answers, which would fill the memory.
fn check_unread_answers(bytes: usize) -> Result<(), ProtocolError> {
    if bytes > MAX_UNREAD_ANSWERS { Err(ProtocolError::UnreadAnswers { most: MAX_UNREAD_ANSWERS }) } else { Ok(()) }
}
