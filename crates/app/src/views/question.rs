//! The question that waits for a person: the reason, and the last message of the agent.

use schemars::JsonSchema;
use serde::Serialize;
use windlass_engine::{Event, EventRecord, EventType, NextAction, Session, Task};
use windlass_store::EventFilter;

use super::excerpt;
use crate::answer_choice::AnswerChoice;
use crate::context::OpenedProject;
use crate::{Failure, hints};

/// The most characters of an agent's message.
const MAX_MESSAGE_LENGTH: usize = 10_000;
/// The events with a message of the agent.
const TURN_EVENTS: [EventType; 2] = [EventType::TurnFinished, EventType::DeliveryFinished];

/// A question that a person can answer now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenQuestion {
    /// The reason why the work does not go on; empty if none was given.
    pub reason: String,
    /// The last message of the agent before it stopped.
    pub message: Option<String>,
    /// The position of the event with the message.
    pub message_seq: Option<u64>,
}

impl OpenQuestion {
    /// Builds the question after a turn, if an agent has worked. An empty message counts as none.
    fn after_turn(reason: String, turn: Option<&EventRecord>) -> Self {
        let message = turn.and_then(find_agent_message);
        let message_seq = turn.filter(|_| message.is_some()).map(|turn| turn.seq.0);
        Self { reason, message, message_seq }
    }

    /// Loads the question about a task, if the task waits for an answer.
    pub(super) fn load_for_task(opened: &OpenedProject, task: &Task) -> Result<Option<Self>, Failure> {
        if AnswerChoice::list_for_task(task).is_empty() {
            return Ok(None);
        }
        let stop = find_stop_event(opened, task)?;
        Self::load_after_stop(opened, task, stop.as_ref()).map(Some)
    }

    /// Loads the question about a task that this event has stopped.
    pub(super) fn load_after_stop(
        opened: &OpenedProject,
        task: &Task,
        stop: Option<&EventRecord>,
    ) -> Result<Self, Failure> {
        let reason = task.blocked.as_ref().map(|blocked| blocked.reason.clone()).or_else(|| task.reason.clone());
        // A task that a person has blocked waits for no reply to its agent.
        let by_session = stop.is_some_and(|record| record.envelope.session.is_some());
        let turns = if by_session { read_newest_task_events(opened, task, &TURN_EVENTS, 1)? } else { Vec::new() };
        Ok(Self::after_turn(reason.unwrap_or_default(), turns.last()))
    }

    /// Loads the question about a session that waits for a person: at its gate, or because it has left its work to one.
    pub(super) fn load_for_session(opened: &OpenedProject, session: &Session) -> Result<Self, Failure> {
        let reason = match session.next_action() {
            NextAction::Answer => session.describe_block_state(),
            _ => "the session has left its work to a person".to_owned(),
        };
        let turn = session.last_turn.map(|at| opened.store.read_event(at)).transpose();
        Ok(Self::after_turn(reason, turn.map_err(hints::store_failure)?.flatten().as_ref()))
    }
}

/// Reads the newest events of some types of a task, oldest first.
pub(super) fn read_newest_task_events(
    opened: &OpenedProject,
    task: &Task,
    types: &[EventType],
    most: usize,
) -> Result<Vec<EventRecord>, Failure> {
    let filter = EventFilter { types: types.to_vec(), task: Some(task.id), ..EventFilter::default() };
    let mut found = opened.store.read_events_back(&filter, None, most).map_err(hints::store_failure)?;
    found.reverse();
    Ok(found)
}

/// Finds the event that has stopped a task.
pub(super) fn find_stop_event(opened: &OpenedProject, task: &Task) -> Result<Option<EventRecord>, Failure> {
    let types = [EventType::TaskBlocked, EventType::TaskFailed];
    Ok(read_newest_task_events(opened, task, &types, 1)?.pop())
}

/// Returns the message of an agent at the end of a turn.
fn find_agent_message(record: &EventRecord) -> Option<String> {
    let output = match &record.envelope.event {
        Event::TurnFinished(finished) => &finished.output,
        Event::DeliveryFinished(finished) => &finished.output,
        _ => return None,
    };
    Some(excerpt(output.trim(), MAX_MESSAGE_LENGTH)).filter(|said| !said.is_empty())
}

#[cfg(test)]
mod tests {
    use windlass_engine::{AgentUsage, EventEnvelope, EventMetadata, EventSubject, Seq, Timestamp, payload};

    use super::*;

    fn finished_turn(output: &str) -> EventRecord {
        let event = payload::TurnFinished {
            run: "pump.1.7".parse().unwrap(),
            output: output.to_owned(),
            leaky: false,
            record: None,
            usage: AgentUsage::default(),
            tree: None,
            unchanged: false,
        };
        let triggered_by = "run-1".to_owned();
        let metadata = EventMetadata { triggered_by, cause: None, depth: 0, via: None, forced: false, owes: None };
        let (timestamp, node, session) = (Timestamp::from_millis(1000), EventSubject::System, None);
        let envelope = EventEnvelope { timestamp, node, session, iteration: Some(1), event: event.into(), metadata };
        EventRecord { seq: Seq(9), envelope }
    }

    #[test]
    fn blank_message_of_agent_counts_as_none() {
        let build = |output: &str| OpenQuestion::after_turn(String::new(), Some(&finished_turn(output)));
        assert_eq!((build(" \n").message, build(" \n").message_seq), (None, None));
        assert_eq!((build(" Which?\n").message, build(" Which?\n").message_seq), (Some("Which?".to_owned()), Some(9)));
    }
}
