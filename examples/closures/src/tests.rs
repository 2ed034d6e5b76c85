//! Tests of the closures, and of the code and output in the guide.

use std::fs;
use std::path::Path;

use serde_json::{Value, to_value};
use windlass_engine::{
    Command, EngineLimits, Event, EventRecord, EventType, HookAction, HookRegistry, NewTask, PureHook, PureHookError,
    Seq, TaskId,
};
use windlass_store::{EventFilter, Store};

use crate::hooks::{announce_releases, label_urgent, registry};
use crate::project::Project;
use crate::stopping::{judged, tool_router};
use crate::{line, tour};

/// A project in its own temporary directory.
struct Scene {
    project: Project,
    _directory: tempfile::TempDir,
}

impl Scene {
    fn new(registry: HookRegistry) -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self { project: Project::open(directory.path(), registry).unwrap(), _directory: directory }
    }

    fn with(hook: PureHook) -> Self {
        let mut registry = registry().unwrap();
        registry.register(hook).unwrap();
        Self::new(registry)
    }

    fn add(&mut self, goal: &str, labels: &[&str], priority: u8) -> Vec<EventRecord> {
        let labels = labels.iter().map(|label| (*label).to_owned()).collect();
        let priority = priority.try_into().unwrap();
        let new = NewTask { goal: goal.to_owned(), labels, priority, ..NewTask::default() };
        self.project.execute(&Command::CreateTask(new)).unwrap()
    }

    fn complete(&mut self, id: u64, result: Option<&str>) -> Vec<EventRecord> {
        let result = result.map(str::to_owned);
        self.project.execute(&Command::CompleteTask { id: TaskId(id), result, artifacts: vec![] }).unwrap()
    }

    fn labels(&self, id: u64) -> Vec<String> {
        self.project.store.open_view().unwrap().find_task(TaskId(id)).unwrap().unwrap().labels
    }
}

fn kinds(events: &[EventRecord]) -> Vec<&'static str> {
    events.iter().map(|record| record.kind().name()).collect()
}

fn data(record: &EventRecord) -> Value {
    to_value(record).unwrap()["data"].take()
}

#[test]
fn hook_labels_only_tasks_with_top_priority_as_urgent() {
    let mut scene = Scene::new(registry().unwrap());
    let events = scene.add("put out the fire", &["home"], 0);
    assert_eq!(kinds(&events), ["task_created", "task_ready", "task_updated"]);
    assert_eq!(scene.labels(1), ["home", "urgent"]);
    assert_eq!(kinds(&scene.add("paint the fence", &[], 1)), ["task_created", "task_ready"]);
    assert_eq!(scene.labels(2), [""; 0]);
}

#[test]
fn completed_release_creates_announcement_task() {
    let mut scene = Scene::new(registry().unwrap());
    scene.add("Release 1.0", &["release"], 1);
    let events = scene.complete(1, None);
    assert_eq!(kinds(&events), ["task_completed", "task_created", "dependency_added", "task_ready"]);
    let Event::TaskCreated(created) = &events[1].envelope.event else { panic!("{events:?}") };
    assert_eq!((created.goal.as_str(), u8::from(created.priority)), ("Announce: Release 1.0", 1));
    assert_eq!(events[1].cause_position(), Some(events[0].seq));
    assert_eq!(kinds(&scene.complete(2, None)), ["task_completed"], "the announcement is no release");
}

#[test]
fn stop_closure_completes_work_only_if_files_changed() {
    let mut scene = Scene::new(registry().unwrap());
    scene.add("Release 1.0", &[], 1);
    let tools = tool_router(scene.project, TaskId(1)).unwrap();
    assert_eq!(judged(tools, "T1", &[]).unwrap(), "\"CONTINUE\" because \"nothing was changed yet\"");
    let mut scene = Scene::new(registry().unwrap());
    scene.add("Release 1.0", &[], 1);
    let tools = tool_router(scene.project, TaskId(1)).unwrap();
    assert_eq!(judged(tools, "T1", &["a.rs"]).unwrap(), "\"COMPLETE\" because \"something was changed\"");
}

/// Fails where a task is completed without a word.
fn wants_results() -> PureHook {
    PureHook::new("wants-results", [EventType::TaskCompleted], |record, _view| match &record.envelope.event {
        Event::TaskCompleted(done) if done.result.is_none() => Err(PureHookError::failed("a result is missing")),
        _ => Ok(vec![]),
    })
    .priority(0)
}

#[test]
fn failing_closure_records_hook_error_and_other_hooks_run() {
    let mut scene = Scene::with(wants_results());
    scene.add("Release 1.0", &["release"], 1);
    let events = scene.complete(1, None);
    let expected = ["task_completed", "hook_error", "task_created", "dependency_added", "task_ready"];
    assert_eq!(kinds(&events), expected, "the others run all the same");
    let failed = data(&events[1]);
    assert_eq!(failed["hookName"], "wants-results");
    assert_eq!(failed["error"], "a result is missing");
    assert_eq!(failed["originalEvent"]["type"], "task_completed");
    assert_eq!(failed["originalEvent"]["nodeId"], "T1");
    let kept = scene.project.store.read_events(&EventFilter::default(), Seq::START, usize::MAX).unwrap();
    assert_eq!(kept[kept.len() - events.len()..], events, "it is in the log");
    assert_eq!(kinds(&scene.complete(2, Some("told"))), ["task_completed"]);
}

#[test]
fn panicking_closure_is_recorded_as_hook_error() {
    let panics = PureHook::new("dizzy", [EventType::TaskCreated], |_, _| panic!("round and round"));
    let events = Scene::with(panics).add("one", &[], 2);
    assert_eq!(kinds(&events), ["task_created", "task_ready", "hook_error"]);
    assert_eq!(data(&events[2])["error"], "it panicked: round and round");
}

#[test]
fn self_triggering_closure_stops_at_cascade_depth_limit() {
    let breeds = PureHook::new("breeds", [EventType::TaskCreated], |_, _| {
        Ok(vec![HookAction::CreateTask(NewTask { goal: "another".to_owned(), ..NewTask::default() })])
    });
    let events = Scene::with(breeds).add("one", &[], 2);
    let count = |kind| events.iter().filter(|record| record.kind() == kind).count();
    assert_eq!(count(EventType::TaskCreated), 1 + usize::from(EngineLimits::CASCADE_DEPTH));
    assert_eq!(count(EventType::ActionError), 1);
}

#[test]
fn events_persist_after_store_is_reopened() {
    let directory = tempfile::tempdir().unwrap();
    let mut project = Project::open(directory.path(), registry().unwrap()).unwrap();
    let events = tour(&mut project).unwrap();
    drop(project);
    let project = Project::open(directory.path(), HookRegistry::default()).unwrap();
    assert_eq!(project.store.read_events(&EventFilter::default(), Seq::START, usize::MAX).unwrap(), events);
}

#[test]
fn hooks_can_be_switched_off_and_moved() {
    let mut registry = registry().unwrap();
    registry.disable_hook("auto-create-review-task").unwrap();
    registry.set_priority("announce-releases", 5).unwrap();
    let order: Vec<_> = registry.hooks_for_event(EventType::TaskCompleted).map(|hook| hook.name.as_str()).collect();
    assert_eq!(order, ["announce-releases", "check-dependency-satisfaction", "track-agent-task-lifecycle"]);
    for hook in [label_urgent(), announce_releases()] {
        assert!(registry.register(hook).is_err(), "a name is taken once");
    }
}

#[expect(clippy::disallowed_methods, reason = "a guide of the repository is read")]
fn guide() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/how-to/use-as-a-library.md");
    fs::read_to_string(path).unwrap()
}

/// Returns the code blocks of a language, each without indentation and empty lines.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    text.split(&fence).skip(1).map(|rest| plain(rest.split("```").next().unwrap())).collect()
}

fn plain(code: &str) -> String {
    code.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

#[test]
fn guide_code_blocks_match_example_sources() {
    let sources = [
        include_str!("../../configured-hooks/src/main.rs"),
        include_str!("hooks.rs"),
        include_str!("main.rs"),
        include_str!("project.rs"),
        include_str!("stopping.rs"),
        include_str!("tests.rs"),
    ]
    .map(plain);
    let blocks = blocks(&guide(), "rust");
    assert!(blocks.len() >= 4, "the guide shows {} pieces of code", blocks.len());
    for block in blocks {
        assert!(sources.iter().any(|source| source.contains(&block)), "not in the example:\n{block}");
    }
}

#[test]
fn guide_output_block_matches_program_output() {
    let mut scene = Scene::new(registry().unwrap());
    let printed: Vec<_> = tour(&mut scene.project).unwrap().iter().map(line).collect();
    let shown = blocks(&guide(), "text");
    assert!(shown.contains(&printed.join("\n")), "{}", printed.join("\n"));
}
