//! The points at which hooks run, and the other names that agents' own hook systems have for them.

use std::collections::BTreeSet;
use std::fmt::{self, Display};
use std::sync::{Mutex, PoisonError};

use windlass_engine::{EventType, FactType, snake_case};
use windlass_hooks::notice;

/// Moments of the loop, gates, and what agents' own hook systems report.
const MOMENTS: &[&str] = &[
    "session_start",
    "pre_iteration",
    "post_iteration",
    "on_task_complete",
    "on_error",
    "session_end",
    "stop",
    "before_submit",
    "after_submit",
    "before_merge",
    "after_merge",
    "pre_tool_use",
    "post_tool_use",
    "user_prompt_submit",
    "subagent_stop",
    "notification",
    "pre_compact",
];

/// The event that each moment comes with. Event types come with themselves.
const COMES_WITH: &[(&str, EventType)] = &[
    ("session_start", EventType::SessionStarted),
    ("pre_iteration", EventType::IterationStarted),
    ("stop", EventType::TurnFinished),
    ("post_iteration", EventType::IterationCompleted),
    ("on_error", EventType::IterationFailed),
    ("on_task_complete", EventType::TaskCompleted),
    ("before_submit", EventType::SubmissionStarted),
    ("after_submit", EventType::TaskSubmitted),
    ("before_merge", EventType::MergeStarted),
    ("after_merge", EventType::ChangeMerged),
    ("session_end", EventType::SessionEnded),
    (notice::NOTIFY, EventType::SessionEnded),
    // An agent's own hook system calls.
    ("session_start", EventType::BridgeCalled),
    ("user_prompt_submit", EventType::BridgeCalled),
    ("pre_tool_use", EventType::BridgeCalled),
    ("post_tool_use", EventType::BridgeCalled),
    ("stop", EventType::BridgeCalled),
    ("subagent_stop", EventType::BridgeCalled),
    ("notification", EventType::BridgeCalled),
    ("pre_compact", EventType::BridgeCalled),
    ("session_end", EventType::BridgeCalled),
    // Where a person is asked: nobody else looks at it before one does.
    (notice::NOTIFY, EventType::GateDecided),
];

/// Names that are not just another way to write a point's own.
const ALIASES: &[(&str, &str)] = &[
    ("before_tool", "pre_tool_use"),
    ("after_tool", "post_tool_use"),
    ("before_agent", "user_prompt_submit"),
    ("before_submit_prompt", "user_prompt_submit"),
    ("after_agent", "stop"),
    ("agent_stop", "stop"),
    ("pre_compress", "pre_compact"),
];

/// A place in the life of the work where hooks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Point(&'static str);

impl Point {
    /// After everything else at the end of a session, and where it asks a person. It has a section of its own in the file.
    pub const NOTIFY: Self = Self(notice::NOTIFY);

    /// The point of that name, in any agent's spelling: `stop`, `Stop`, `PreToolUse`, `pre-tool-use`.
    /// A name with a dot is a type of fact of the project's own: `review.passed`.
    pub fn parse(name: &str) -> Option<Self> {
        if name.contains('.') {
            return name.parse().ok().map(|fact: FactType| Self(fact_name(&fact)));
        }
        let name = snake_case(name);
        let name = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name.as_str(), |(_, point)| point);
        Self::names().chain([notice::NOTIFY]).find(|known| *known == name).map(Self)
    }

    pub fn name(self) -> &'static str {
        self.0
    }

    /// The event that it comes with: the first, if there are several.
    pub fn event(self) -> Option<EventType> {
        self.events().next()
    }

    /// Whether it can be about a task. Sessions, and conversations that agents' own hook systems call from, are about none.
    pub fn has_task(self) -> bool {
        !self.events().all(|event| {
            use EventType as T;
            let of_session =
                matches!(event, T::SessionStarted | T::SessionResumed | T::SessionStopping | T::SessionEnded);
            of_session || matches!(event, T::BridgeCalled | T::BridgeAnswered | T::ConfigRecorded)
        })
    }

    /// Whether hooks there let the agent stop, or send it back.
    pub fn is_stop(self) -> bool {
        self.0 == "stop"
    }

    /// Whether the verdict of its hooks decides what happens next.
    pub fn is_gate(self) -> bool {
        matches!(self.0, "stop" | "before_submit" | "before_merge")
    }

    /// Whether hooks run there. Those of the event that makes hooks possible cannot.
    pub fn is_reached(self) -> bool {
        self.events().any(|event| event != EventType::ConfigRecorded)
    }

    /// The events that it comes with.
    pub fn events(self) -> impl Iterator<Item = EventType> {
        let moments = COMES_WITH.iter().filter(move |(name, _)| *name == self.0).map(|(_, event)| *event);
        let fact = self.is_fact().then_some(EventType::FactLogged);
        // No event has the name of a moment.
        moments.chain(self.0.parse().ok()).chain(fact)
    }

    /// Whether it is a type of fact of the project's own.
    pub fn is_fact(self) -> bool {
        self.0.contains('.')
    }

    fn names() -> impl Iterator<Item = &'static str> {
        MOMENTS.iter().copied().chain(EventType::ALL.iter().map(|kind| kind.name()))
    }

    /// Every way to write a point: `pre_tool_use`, `PreToolUse`, `preToolUse`, and other agents' names for it.
    pub fn spellings() -> BTreeSet<String> {
        let names = Self::names().chain(ALIASES.iter().map(|(alias, _)| *alias));
        names.flat_map(|name| [name.to_owned(), pascal_case(name), camel_case(name)]).collect()
    }

    /// Every name, once.
    pub fn all() -> Vec<&'static str> {
        let mut seen = BTreeSet::new();
        Self::names().filter(|name| seen.insert(*name)).collect()
    }
}

/// Returns the name of a type of fact for as long as the program runs. A project has few of them, so they are never freed.
fn fact_name(fact: &FactType) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(name) = names.get(fact.as_str()) {
        return name;
    }
    let name: &'static str = fact.as_str().to_owned().leak();
    names.insert(name);
    name
}

impl Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

fn pascal_case(name: &str) -> String {
    name.split('_').map(|word| word[..1].to_ascii_uppercase() + &word[1..]).collect()
}

fn camel_case(name: &str) -> String {
    let pascal = pascal_case(name);
    pascal[..1].to_ascii_lowercase() + &pascal[1..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_spellings_are_the_same_points() {
        let check = |name: &str, point: &str| assert_eq!(Point::parse(name).map(Point::name), Some(point), "{name}");
        check("stop", "stop");
        check("Stop", "stop");
        check("PreToolUse", "pre_tool_use");
        check("preToolUse", "pre_tool_use");
        check("SubagentStop", "subagent_stop");
        check("SessionStart", "session_start");
        check("BeforeTool", "pre_tool_use");
        check("AfterAgent", "stop");
        check("task_completed", "task_completed");
        assert_eq!(Point::parse("pre_iterations"), None);
        assert_eq!(Point::parse(""), None);
    }

    #[test]
    fn fact_type_with_namespace_is_a_point() {
        let point = Point::parse("review.passed").unwrap();
        assert_eq!((point.name(), point.events().collect::<Vec<_>>()), ("review.passed", vec![EventType::FactLogged]));
        assert_eq!(Point::parse("review.passed"), Some(point));
        for wrong in ["Review.Passed", "review.", ".passed", "review..passed", "review.pas sed"] {
            assert_eq!(Point::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn work_passes_four_points_on_its_way_from_done_to_accepted() {
        let events = |name| Point::parse(name).map(|point| point.events().collect::<Vec<_>>()).unwrap_or_default();
        assert_eq!(events("before_submit"), [EventType::SubmissionStarted]);
        assert_eq!(events("after_submit"), [EventType::TaskSubmitted]);
        assert_eq!(events("BeforeMerge"), [EventType::MergeStarted]);
        assert_eq!(events("after_merge"), [EventType::ChangeMerged]);
    }

    #[test]
    fn hooks_run_at_every_point_but_one() {
        let never = Point::all().into_iter().filter(|name| !Point::parse(name).is_some_and(Point::is_reached));
        assert_eq!(never.collect::<Vec<_>>(), ["config_recorded"]);
    }

    #[test]
    fn every_published_spelling_is_read() {
        for name in Point::spellings() {
            assert!(Point::parse(&name).is_some(), "{name}");
        }
    }

    #[test]
    fn every_event_type_is_a_point() {
        for kind in EventType::ALL {
            assert_eq!(Point::parse(kind.name()).map(Point::name), Some(kind.name()));
        }
    }
}
