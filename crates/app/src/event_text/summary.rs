//! An event in a few words.

use windlass_engine::{
    AfterIteration, ConversationStart, Event, EventRecord, GateAnswer, GateDecision, OwnerName, Promise, RunId,
    SessionEnd, SessionEndKind, Timestamp, TurnPurpose,
};
use windlass_process::MachineTag;

use super::{bridge, drive, pipeline, workflow};
use crate::time_format::format_local_time;

/// Returns the moment at which a failed agent is tried again, unless that is at once.
pub fn find_retry_moment(record: &EventRecord) -> Option<Timestamp> {
    let Event::IterationFailed(failed) = &record.envelope.event else { return None };
    failed.until.filter(|until| until.millis() - record.envelope.timestamp.millis() >= 1000)
}

/// Summarizes an event in a few words.
pub fn summarize_event(record: &EventRecord) -> String {
    let text = match &record.envelope.event {
        Event::TaskCreated(created) => created.goal.clone(),
        Event::TaskClaimed(claimed) => format!("by {} (epoch {})", describe_owner(&claimed.owner), claimed.epoch),
        Event::LeaseExpired(expired) => format!("of {} (epoch {})", expired.owner, expired.epoch),
        Event::TaskCompleted(completed) => completed.result.clone().unwrap_or_default(),
        Event::TaskBlocked(blocked) => blocked.reason.clone(),
        Event::TaskAnswered(answered) => {
            let said = answered.text.as_ref().map(|text| format!(": {text}")).unwrap_or_default();
            format!("{}{said}", answered.answer)
        }
        Event::TaskNeedsContinuation(payload) => payload.reason.clone(),
        Event::TaskReleased(payload) => payload.reason.clone(),
        Event::TaskFailed(payload) => payload.reason.clone(),
        Event::TaskReopened(payload) => format!("from {}: {}", payload.from, payload.reason),
        Event::DependencyAdded(edge) => format!("{} {} {}", edge.from_id, edge.edge_type, edge.to_id),
        Event::DependencyRemoved(edge) => format!("{} no longer linked to {}", edge.from_id, edge.to_id),
        Event::DependencySatisfied(payload) => format!("by {}", payload.completed_task_id),
        Event::AgentMetrics(metrics) => metrics.duration_ms.map(|ms| format!("{ms} ms")).unwrap_or_default(),
        Event::AutoLabelSuggestion(suggestion) => suggestion.labels.join(", "),
        Event::FactLogged(fact) if fact.data.is_empty() => String::new(),
        Event::FactLogged(fact) => serde_json::Value::Object(fact.data.clone()).to_string(),
        Event::NoteAdded(note) => format!("{}: {}", note.kind, note.text),
        Event::CompletionClaimed(claim) => format!("in {}", claim.run),
        Event::HookError(error) => format!("{}: {}", error.hook_name, error.error),
        Event::ActionError(error) => format!("{}: {}", error.action_type, error.error),
        Event::HookStarted(hook) => hook.hook.clone(),
        Event::HookRetrying(hook) => format!("{} failed and is tried again: {}", hook.hook, hook.error),
        Event::HookFinished(hook) => {
            let outcome = serde_json::to_value(hook.outcome).unwrap_or_default();
            let why = hook.message.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
            format!("{} {}{why}", hook.hook, outcome.as_str().unwrap_or_default().replace('_', " "))
        }
        Event::IterationFailed(failed) => match find_retry_moment(record) {
            Some(until) => format!("{}; tried again at {}", failed.error, format_local_time(until)),
            None => failed.error.clone(),
        },
        event => {
            let known = drive::summarize_drive_event(record.seq, event)
                .or_else(|| bridge::summarize_bridge_event(event))
                .or_else(|| pipeline::summarize_pipeline_event(event))
                .or_else(|| workflow::summarize_workflow_event(event));
            known.unwrap_or_else(|| summarize_session_event(event))
        }
    };
    if record.envelope.metadata.forced { format!("(forced) {text}") } else { text }
}

fn summarize_session_event(event: &Event) -> String {
    let turn = |run: &RunId| format!("{} {}", run.session, run.iteration);
    match event {
        Event::SessionStarted(started) => format!("{} by {}", started.agent, describe_owner(&started.owner)),
        Event::SessionResumed(resumed) => format!("by {}", describe_owner(&resumed.owner)),
        Event::SessionStopping(stopping) => format_ending(stopping.ending, stopping.reason.as_deref()),
        Event::SessionEnded(ended) => format_ending(ended.ending, ended.reason.as_deref()),
        Event::IterationStarted(started) => turn(&started.run),
        Event::TurnStarted(started) => {
            let purpose = match started.purpose {
                TurnPurpose::Work => "to work",
                TurnPurpose::SendBack => "sent back",
                TurnPurpose::Recovery => "to recover",
                TurnPurpose::Delivery | TurnPurpose::UnjudgedDelivery(_) => "to listen",
            };
            match started.feedback {
                0 => purpose.to_owned(),
                pieces => format!("{purpose}, with {}", format_feedback_count(pieces)),
            }
        }
        Event::ConversationOpened(opened) => match (opened.opening, &opened.reason) {
            (ConversationStart::New, _) => format!("{}, new", opened.conversation),
            (ConversationStart::Loaded, _) => format!("{}, resumed", opened.conversation),
            (ConversationStart::Anew, None) => format!("{}, started again", opened.conversation),
            (ConversationStart::Anew, Some(reason)) => format!("{}, started again: {reason}", opened.conversation),
        },
        Event::TurnFinished(finished) => first_nonblank_line(&finished.output),
        Event::DeliveryFinished(finished) => first_nonblank_line(&finished.output),
        Event::PromiseDetected(detected) => match detected.promise {
            Promise::Complete => "COMPLETE".to_owned(),
            Promise::Escalate => "ESCALATE".to_owned(),
            Promise::Blocked => "BLOCKED".to_owned(),
        },
        Event::GateDecided(decided) => match &decided.decision {
            GateDecision::SendBack => match decided.max_retries {
                Some(most) => format!("sent back ({} of {most})", decided.retries),
                None => format!("sent back (time {})", decided.retries),
            },
            GateDecision::Ask => "a person is asked".to_owned(),
            GateDecision::Next(AfterIteration::Continue | AfterIteration::TakeUp) => "another iteration".to_owned(),
            GateDecision::Next(AfterIteration::GiveUp(reason)) => format!("left for the next run: {reason}"),
            GateDecision::Next(AfterIteration::Close(closing)) => {
                format_ending(closing.ending, closing.reason.as_deref())
            }
        },
        Event::GateAnswered(answered) => describe_gate_answer(answered.answer).to_owned(),
        Event::IterationPostponed(postponed) => {
            format!("until {}: {}", format_local_time(postponed.until), postponed.error)
        }
        Event::DeliveryFailed(failed) => failed.error.clone(),
        Event::MessageAdded(said) => format!("{}: {}", said.source, said.text),
        Event::FeedbackQueued(queued) => format!("{}: {}", queued.source, queued.text),
        Event::FeedbackDelivered(delivered) => {
            format_feedback_count(u32::try_from(delivered.feedback.len()).unwrap_or(u32::MAX))
        }
        _ => String::new(),
    }
}

/// Describes the answer of a person.
pub fn describe_gate_answer(answer: GateAnswer) -> &'static str {
    match answer {
        GateAnswer::Continue => "continue: the agent is sent back, and the count starts again",
        GateAnswer::Abort => "abort: a person takes over",
        GateAnswer::Ignore => "ignore-hook: the block counts as passed, this time",
    }
}

/// Describes an interrupted turn. A request to end its session is the reason, else the death of the process that ran it.
pub fn describe_interruption(stopping: Option<&SessionEnd>, has_lost_process: bool) -> String {
    match stopping {
        Some(SessionEnd { ending, reason }) => format!("interrupted: {}", format_ending(*ending, reason.as_deref())),
        None if has_lost_process => "interrupted: its process has died".to_owned(),
        None => "interrupted".to_owned(),
    }
}

fn format_ending(ending: SessionEndKind, reason: Option<&str>) -> String {
    let word = match ending {
        SessionEndKind::Completed => "complete",
        SessionEndKind::Limit => "stopped",
        SessionEndKind::Escalated => "a person is needed",
        SessionEndKind::Cancelled => "cancelled",
        SessionEndKind::Error => "failed",
    };
    reason.map_or_else(|| word.to_owned(), |reason| format!("{word}: {reason}"))
}

/// Formats a number of pieces of feedback.
pub fn format_feedback_count(pieces: u32) -> String {
    if pieces == 1 { "one piece of feedback".to_owned() } else { format!("{pieces} pieces of feedback") }
}

/// Returns the first line that is not blank, as a short form of an agent's long answer.
fn first_nonblank_line(output: &str) -> String {
    output.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().to_owned()
}

/// Returns the name of an owner; in a fleet, its process and its machine.
fn describe_owner(owner: &OwnerName) -> String {
    let name = owner.as_str();
    match MachineTag::find_in_owner_name(name) {
        Some(machine) => {
            let process: String = name.splitn(3, '-').take(2).collect::<Vec<_>>().join("-");
            format!("{process} on {}", machine.name())
        }
        None => name.to_owned(),
    }
}
