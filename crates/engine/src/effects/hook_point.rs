//! The points in the life of the work at which hooks run, with their properties.
//!
//! Invariants:
//! - Every point has one name, which is in the log, in configurations and in the input of hooks. No event type has the name of
//!   another point.
//!
//! Not here: other spellings that configurations may use (`config`), and the events of agents' own hook systems (`bridge`).

use std::cmp::Ordering;
use std::fmt::{self, Display};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::effects::hook_outcome::HookFailurePolicy;
use crate::log::event_type::EventType;
use crate::log::id::FactType;

/// A point at which hooks run.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum HookPoint {
    SessionStart,
    PreIteration,
    PostIteration,
    OnTaskComplete,
    OnError,
    SessionEnd,
    /// The gate after every turn of an agent.
    Stop,
    BeforeSubmit,
    AfterSubmit,
    BeforeMerge,
    AfterMerge,
    PreToolUse,
    PostToolUse,
    UserPromptSubmit,
    SubagentStop,
    Notification,
    PreCompact,
    /// After all other hooks at the end of a session, and when a session asks a person.
    Notify,
    /// Every event of this type.
    Event(EventType),
    /// Every fact of this type, which the project defines.
    Fact(FactType),
}

/// A text that names no hook point.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a hook point")]
pub struct UnknownHookPoint(String);

impl HookPoint {
    /// The points that are more than an event or a fact.
    pub const NAMED: [Self; 18] = [
        Self::SessionStart,
        Self::PreIteration,
        Self::PostIteration,
        Self::OnTaskComplete,
        Self::OnError,
        Self::SessionEnd,
        Self::Stop,
        Self::BeforeSubmit,
        Self::AfterSubmit,
        Self::BeforeMerge,
        Self::AfterMerge,
        Self::PreToolUse,
        Self::PostToolUse,
        Self::UserPromptSubmit,
        Self::SubagentStop,
        Self::Notification,
        Self::PreCompact,
        Self::Notify,
    ];

    pub fn name(&self) -> &str {
        match self {
            Self::SessionStart => "session_start",
            Self::PreIteration => "pre_iteration",
            Self::PostIteration => "post_iteration",
            Self::OnTaskComplete => "on_task_complete",
            Self::OnError => "on_error",
            Self::SessionEnd => "session_end",
            Self::Stop => "stop",
            Self::BeforeSubmit => "before_submit",
            Self::AfterSubmit => "after_submit",
            Self::BeforeMerge => "before_merge",
            Self::AfterMerge => "after_merge",
            Self::PreToolUse => "pre_tool_use",
            Self::PostToolUse => "post_tool_use",
            Self::UserPromptSubmit => "user_prompt_submit",
            Self::SubagentStop => "subagent_stop",
            Self::Notification => "notification",
            Self::PreCompact => "pre_compact",
            Self::Notify => "notify",
            Self::Event(event) => event.name(),
            Self::Fact(fact) => fact.as_str(),
        }
    }

    /// Returns the events whose hooks run here: those of the loop first, then calls of an agent's own hook system.
    pub fn event_types(&self) -> Vec<EventType> {
        use EventType as E;
        match self {
            Self::SessionStart => vec![E::SessionStarted, E::BridgeCalled],
            Self::PreIteration => vec![E::IterationStarted],
            Self::PostIteration => vec![E::IterationCompleted],
            Self::OnTaskComplete => vec![E::TaskCompleted],
            Self::OnError => vec![E::IterationFailed],
            Self::SessionEnd => vec![E::SessionEnded, E::BridgeCalled],
            Self::Stop => vec![E::TurnFinished, E::BridgeCalled],
            Self::BeforeSubmit => vec![E::SubmissionStarted],
            Self::AfterSubmit => vec![E::TaskSubmitted],
            Self::BeforeMerge => vec![E::MergeStarted],
            Self::AfterMerge => vec![E::ChangeMerged],
            Self::PreToolUse
            | Self::PostToolUse
            | Self::UserPromptSubmit
            | Self::SubagentStop
            | Self::Notification
            | Self::PreCompact => vec![E::BridgeCalled],
            // A question reaches a person at once, before other hooks see it.
            Self::Notify => vec![E::SessionEnded, E::GateDecided],
            Self::Event(event) => vec![*event],
            Self::Fact(_) => vec![E::FactLogged],
        }
    }

    pub fn is_stop(&self) -> bool {
        *self == Self::Stop
    }

    /// Returns whether the verdict of its hooks decides what happens next.
    pub fn is_gate(&self) -> bool {
        matches!(self, Self::Stop | Self::BeforeSubmit | Self::BeforeMerge)
    }

    /// Returns the meaning of a hook's failure if the hook's entry does not say.
    pub fn default_on_failure(&self) -> HookFailurePolicy {
        match self {
            Self::BeforeSubmit | Self::BeforeMerge => HookFailurePolicy::Block,
            _ => HookFailurePolicy::Ignore,
        }
    }

    /// Returns whether a calling agent receives the output of its hooks.
    pub fn output_is_context(&self) -> bool {
        matches!(self, Self::SessionStart | Self::UserPromptSubmit)
    }

    /// Returns whether a calling agent receives a refusal.
    pub fn hears_refusal(&self) -> bool {
        matches!(self, Self::Stop | Self::SubagentStop | Self::PreToolUse | Self::PostToolUse | Self::UserPromptSubmit)
    }

    /// Returns whether a refused agent continues, so that it could be refused for ever.
    pub fn sends_back(&self) -> bool {
        matches!(self, Self::Stop | Self::SubagentStop)
    }

    /// Returns whether it can be about a task. Sessions and calls of agents' own hook systems are about none.
    pub fn has_task(&self) -> bool {
        !self.event_types().iter().all(|event| {
            use EventType as E;
            let of_session =
                matches!(event, E::SessionStarted | E::SessionResumed | E::SessionStopping | E::SessionEnded);
            of_session || matches!(event, E::BridgeCalled | E::BridgeAnswered | E::ConfigRecorded)
        })
    }

    /// Returns whether hooks can run here. They cannot at the event that records their configuration.
    pub fn is_reachable(&self) -> bool {
        *self != Self::Event(EventType::ConfigRecorded)
    }
}

impl FromStr for HookPoint {
    type Err = UnknownHookPoint;

    fn from_str(name: &str) -> Result<Self, UnknownHookPoint> {
        if let Some(point) = Self::NAMED.iter().find(|point| point.name() == name) {
            return Ok(point.clone());
        }
        let event = name.parse().map(Self::Event).ok();
        event.or_else(|| name.parse().map(Self::Fact).ok()).ok_or_else(|| UnknownHookPoint(name.to_owned()))
    }
}

impl Display for HookPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Points are sorted by their names.
impl Ord for HookPoint {
    fn cmp(&self, other: &Self) -> Ordering {
        self.name().cmp(other.name())
    }
}

impl PartialOrd for HookPoint {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Serialize for HookPoint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for HookPoint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        name.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_is_known_by_its_name_alone() {
        let events = EventType::ALL.iter().map(|event| HookPoint::Event(*event));
        for point in HookPoint::NAMED.into_iter().chain(events) {
            assert_eq!(point.name().parse(), Ok(point.clone()));
            let text = serde_json::to_string(&point).expect("a name is text");
            assert_eq!(serde_json::from_str::<HookPoint>(&text).expect("it was written so"), point);
        }
        assert_eq!("review.passed".parse::<HookPoint>().expect("a fact").event_types(), [EventType::FactLogged]);
        assert!("pre_iterations".parse::<HookPoint>().is_err());
    }

    #[test]
    fn work_passes_four_points_between_done_and_accepted() {
        use HookPoint as P;
        let events = [P::BeforeSubmit, P::AfterSubmit, P::BeforeMerge, P::AfterMerge].map(|point| point.event_types());
        use EventType as E;
        let expected = [E::SubmissionStarted, E::TaskSubmitted, E::MergeStarted, E::ChangeMerged];
        assert_eq!(events, expected.map(|event| vec![event]));
    }

    #[test]
    fn hooks_run_at_every_point_but_one() {
        let unreachable = EventType::ALL.iter().filter(|event| !HookPoint::Event(**event).is_reachable());
        assert_eq!(unreachable.copied().collect::<Vec<_>>(), [EventType::ConfigRecorded]);
    }
}
