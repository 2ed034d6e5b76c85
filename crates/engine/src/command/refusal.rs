//! Refusals of commands. Each names both sides: the request and the state that stands against it.

use crate::apply::ApplyError;
use crate::log::event_type::EventType;
use crate::log::id::{EffectId, Epoch, RunId, SeriesId, SessionName, TaskId, TypeName};
use crate::task::edge::EdgeKind;
use crate::task::lease::Lease;
use crate::task::resolution::TaskResolution;
use crate::task::state::TaskState;
use crate::view::ViewError;

#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    #[error("there is no task {0}")]
    UnknownTask(TaskId),
    #[error("{what} {why}")]
    Invalid { what: &'static str, why: String },
    #[error("cannot {} {id}: it is {state}{}", verb_of_event(*event), describe_allowed_states(from))]
    IllegalMove { id: TaskId, state: TaskState, event: EventType, from: Vec<TaskState>, forceable: bool },
    #[error("{id} waits for {}", join_with_conjunction(open, "and"))]
    OpenDependencies { id: TaskId, open: Vec<TaskId> },
    #[error("{id} does not wait for the answer `{answer}`: it is {state}")]
    NotAsking { id: TaskId, answer: TaskResolution, state: TaskState },
    #[error("only a person can {what}")]
    NoPerson { what: &'static str },
    #[error("only a person can change or move {id}: it is the task of session `{session}`")]
    OwnTask { id: TaskId, session: SessionName },
    #[error("only a person can change the type or the labels of {id}: they decide how work on it is judged")]
    Rejudged { id: TaskId },
    #[error("cannot {verb} {id} from inside a session: tasks of the type `{kind}` must pass their gates ({})", gates.join(", "))]
    GatedTask { verb: &'static str, id: TaskId, kind: TypeName, gates: Vec<String> },
    #[error("cannot link {0} to itself")]
    SelfDependency(TaskId),
    #[error("cannot add the edge: it would close a cycle: {}", join_with_arrows(path))]
    Cycle { path: Vec<TaskId> },
    #[error("cannot link {from} to {to}: {to} is deleted")]
    LinkToDeleted { from: TaskId, to: TaskId },
    #[error("there is no edge {from} {kind} {to}")]
    UnknownEdge { from: TaskId, kind: EdgeKind, to: TaskId },
    #[error("cannot delete {id}: it is needed by {}", join_with_conjunction(dependents, "and"))]
    HasDependents { id: TaskId, dependents: Vec<TaskId> },
    #[error("{id} is held by {} (epoch {})", lease.holder_name(), lease.epoch)]
    Held { id: TaskId, lease: Box<Lease> },
    #[error("epoch {epoch} of {id} is over; {}", match current { Some(now) => format!("epoch {now} holds it"), None => "it has no holder".to_owned() })]
    LeaseLost { id: TaskId, epoch: Epoch, current: Option<Epoch> },
    #[error("cannot merge {id}: it has no change")]
    NoChange { id: TaskId },
    #[error("cannot claim completion: the turn {0} is over")]
    RunEnded(RunId),
    #[error("nothing is ready")]
    NothingReady,
    #[error("there is no type `{kind}`; {}", match near {
        Some(near) => format!("did you mean `{near}`? There are {}", join_with_conjunction(known, "and")),
        None => format!("there are {}", join_with_conjunction(known, "and")),
    })]
    UnknownType { kind: TypeName, near: Option<String>, known: Vec<TypeName> },
    #[error("{id} is of the type `{kind}`, on which `{agent}` may not work; {}", describe_allowed_agents(allowed))]
    NotForAgent { id: TaskId, kind: TypeName, agent: String, allowed: Vec<String> },
    #[error("nothing is ready {}; {id} is{}, and {}",
        agent.as_ref().map_or("that is open to all".to_owned(), |agent| format!("for `{agent}`")),
        kind.as_ref().map(|kind| format!(" of the type `{kind}`")).unwrap_or_default(), describe_allowed_agents(allowed))]
    NothingForAgent { agent: Option<String>, id: TaskId, kind: Option<TypeName>, allowed: Vec<String> },
    #[error("there is no session `{0}`")]
    UnknownSession(SessionName),
    #[error("session `{name}` {why}")]
    IllegalSession { name: SessionName, why: &'static str },
    #[error("{id} {why}")]
    IllegalSeries { id: SeriesId, why: String },
    #[error("{task} has {} stop hooks; at most {} are allowed", .most, .most)]
    TooManyHooks { task: TaskId, most: usize },
    #[error("there is no pending effect {0}")]
    UnknownEffect(EffectId),
    #[error("{effect} {why}")]
    IllegalEffect { effect: EffectId, why: &'static str },
    /// Other commands remain that may succeed.
    #[error("cannot run further commands of {effect}")]
    NoneSucceeds { effect: EffectId },
    #[error(
        "this project's hooks are not trusted in their present form, and this would run {}",
        join_with_conjunction(hooks, "and")
    )]
    Untrusted { hooks: Vec<String> },
    #[error("a cascade of hooks may make {limit}; the rest is refused")]
    CascadeLimit { limit: String },
    #[error("cannot look up the present state")]
    View(#[from] ViewError),
    #[error("cannot decide the command: internal error")]
    Apply(#[source] ApplyError),
}

impl Refusal {
    pub(crate) fn invalid_input(what: &'static str, why: impl Into<String>) -> Self {
        Self::Invalid { what, why: why.into() }
    }

    /// Returns whether the refusal concerns more than one action: the store has failed, or untrusted hooks would be
    /// enqueued.
    pub(crate) fn is_fatal(&self) -> bool {
        matches!(self, Self::View(_) | Self::Apply(_) | Self::Untrusted { .. })
    }
}

impl From<ApplyError> for Refusal {
    fn from(error: ApplyError) -> Self {
        match error {
            ApplyError::View(error) => Self::View(error),
            error => Self::Apply(error),
        }
    }
}

/// Returns the verb for a refused command, by the event that would have recorded it.
fn verb_of_event(event: EventType) -> &'static str {
    match event {
        EventType::TaskStarted | EventType::TaskClaimed => "start",
        EventType::TaskSubmitted => "submit",
        EventType::TaskCompleted | EventType::CompletionClaimed => "complete",
        EventType::TaskBlocked => "block",
        EventType::TaskUnblocked => "unblock",
        EventType::TaskFailed => "fail",
        EventType::TaskReopened => "reopen",
        EventType::TaskReleased => "release",
        EventType::TaskDeleted => "delete",
        EventType::TaskUpdated => "update",
        _ => "move",
    }
}

/// Returns the states that would have allowed the move. A long list says nothing, so it is left out.
fn describe_allowed_states(from: &[TaskState]) -> String {
    match from.len() {
        0 | 6.. => String::new(),
        _ => format!(", and that is possible only from {}", join_with_conjunction(from, "or")),
    }
}

fn describe_allowed_agents(allowed: &[String]) -> String {
    match allowed {
        [] => "no agent may: its list of implementers is empty".to_owned(),
        allowed => {
            format!(
                "only {} may",
                join_with_conjunction(&allowed.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>(), "and")
            )
        }
    }
}

fn join_with_conjunction<T: ToString>(items: &[T], conjunction: &str) -> String {
    const MAX_LISTED_ITEMS: usize = 5;
    let mut words: Vec<String> = items.iter().take(MAX_LISTED_ITEMS).map(ToString::to_string).collect();
    if items.len() > MAX_LISTED_ITEMS {
        words.push(format!("{} more", items.len() - MAX_LISTED_ITEMS));
    }
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} {conjunction} {last}", rest.join(", ")),
        Some((last, _)) => last.clone(),
        None => "nothing".to_owned(),
    }
}

fn join_with_arrows(path: &[TaskId]) -> String {
    path.iter().map(ToString::to_string).collect::<Vec<_>>().join(" → ")
}
