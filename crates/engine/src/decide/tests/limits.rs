//! Each limit: a value within it is accepted, a value just beyond it is refused.

use serde_json::{Value, json};

use super::script::{Script, default_rules};
use crate::command::limits::Limits;
use crate::command::refusal::Refusal;
use crate::command::{Answer, Command, Failing, HookReport, NewSession, NewTask, TaskPatch};
use crate::decide::{Effects, Rules};
use crate::effects::hook_batch::HookEffect;
use crate::effects::hook_outcome::{HookClass, HookOutcome, OnFailure};
use crate::effects::registry::{Hook, HookFault};
use crate::log::encoding::{decode, encode};
use crate::log::event::Record;
use crate::log::event_type::EventType;
use crate::log::id::TaskId;
use crate::session::{Ending, Terms};
use crate::view::View;

const T1: TaskId = TaskId(1);

fn new_task() -> NewTask {
    NewTask { goal: "one".to_owned(), ..NewTask::default() }
}

fn text(length: usize) -> String {
    "x".repeat(length)
}

fn texts(count: usize) -> Vec<String> {
    (0..count).map(|number| number.to_string()).collect()
}

/// Checks that a command of a size is accepted at the limit and refused beyond it. The task is new and active.
#[track_caller]
fn check_bound(bound: usize, command: impl Fn(usize) -> Command) {
    for (size, taken) in [(bound, true), (bound + 1, false)] {
        let mut project = Script::after(default_rules(), "add one\nstart T1");
        let answer = project.ask(&command(size));
        assert_eq!(answer.is_ok(), taken, "{size}: {:?}", answer.map(|records| records.len()));
        assert!(matches!(answer, Ok(_) | Err(Refusal::Invalid { .. })));
    }
}

fn create(change: impl Fn(&mut NewTask, usize)) -> impl Fn(usize) -> Command {
    move |size| {
        let mut new = new_task();
        change(&mut new, size);
        Command::CreateTask(new)
    }
}

fn update(change: impl Fn(&mut TaskPatch, usize)) -> impl Fn(usize) -> Command {
    move |size| {
        let mut patch = TaskPatch::default();
        change(&mut patch, size);
        Command::UpdateTask { id: T1, patch }
    }
}

#[test]
fn goal_and_body() {
    check_bound(Limits::GOAL, create(|new, size| new.goal = text(size)));
    check_bound(Limits::GOAL, update(|patch, size| patch.goal = Some(text(size))));
    check_bound(Limits::BODY, create(|new, size| new.body = Some(text(size))));
    check_bound(Limits::BODY, update(|patch, size| patch.body = Some(text(size))));
}

#[test]
fn labels() {
    check_bound(Limits::LABEL, create(|new, size| new.labels = vec![text(size)]));
    check_bound(Limits::LABEL, update(|patch, size| patch.labels = Some(vec![text(size)])));
    check_bound(Limits::LABELS, create(|new, size| new.labels = texts(size)));
    check_bound(Limits::LABELS, update(|patch, size| patch.labels = Some(texts(size))));
}

#[test]
fn deliverables() {
    check_bound(Limits::DELIVERABLE, create(|new, size| new.deliverables = vec![text(size)]));
    check_bound(Limits::DELIVERABLE, update(|patch, size| patch.deliverables = Some(vec![text(size)])));
    check_bound(Limits::DELIVERABLES, create(|new, size| new.deliverables = texts(size)));
    check_bound(Limits::DELIVERABLES, update(|patch, size| patch.deliverables = Some(texts(size))));
}

#[test]
fn results_and_artifacts() {
    let complete = |result: Option<String>, artifacts| Command::CompleteTask { id: T1, result, artifacts };
    check_bound(Limits::RESULT, |size| complete(Some(text(size)), vec![]));
    check_bound(Limits::ARTIFACT, |size| complete(None, vec![text(size)]));
    check_bound(Limits::ARTIFACTS, |size| complete(None, texts(size)));
}

#[test]
fn reasons() {
    let id = T1;
    check_bound(Limits::REASON, |size| Command::FailTask { id, reason: text(size) });
    check_bound(Limits::REASON, |size| Command::ReleaseTask { id, reason: text(size) });
    check_bound(Limits::REASON, |size| Command::NeedContinuation { id, reason: text(size) });
    check_bound(Limits::REASON, |size| Command::BlockTask { id, reason: text(size), required_knowledge: vec![] });
    for (size, taken) in [(Limits::REASON, true), (Limits::REASON + 1, false)] {
        let mut project = Script::after(default_rules(), "add one\nfail T1");
        assert_eq!(project.ask(&Command::ReopenTask { id, reason: text(size) }).is_ok(), taken);
        let mut project = Script::after(default_rules(), "add one\nsession a task=T1");
        let run = "a.1.0000000000000007".parse().unwrap();
        assert_eq!(project.ask(&Command::FailTurn { run, failing: Failing::of(text(size)) }).is_ok(), taken);
        let mut project = Script::after(default_rules(), "session a");
        let stop =
            Command::StopSession { name: "a".parse().unwrap(), ending: Ending::Cancelled, reason: Some(text(size)) };
        assert_eq!(project.ask(&stop).is_ok(), taken);
    }
}

/// Checks a command of a size, in a project in which a hook of a session has begun.
#[track_caller]
fn check_in_session(bound: usize, script: &str, command: impl Fn(&Script, usize) -> Command) {
    for (size, taken) in [(bound, true), (bound + 1, false)] {
        let hook = HookEffect {
            hook: "tell".to_owned(),
            point: "pre_iteration".parse().expect("a hook point"),
            class: HookClass::Other,
            on_failure: OnFailure::Ignore,
            send_backs: None,
        };
        let hooks = [(EventType::IterationStarted, vec![hook])];
        let effects = Effects::of("", "w1".parse().unwrap(), hooks);
        let mut project = Script::after(Rules { effects: Some(effects), ..default_rules() }, script);
        let command = command(&project, size);
        let answer = project.ask(&command);
        assert_eq!(answer.is_ok(), taken, "{size}: {answer:?}");
        assert!(matches!(answer, Ok(_) | Err(Refusal::Invalid { .. })));
    }
}

#[test]
fn what_agents_and_hooks_say() {
    let run = || "a.1.0000000000000007".parse().unwrap();
    let answers = |_: &Script, size| Command::FinishTurn {
        run: run(),
        answer: Answer { output: text(size), ..Answer::default() },
    };
    check_in_session(Limits::OUTPUT, "session a\nhook tell", answers);
    let finish = |project: &Script, message: Option<String>, feedback: Option<String>| Command::FinishEffect {
        effect: project.effects()[0].id,
        owner: "w1".parse().unwrap(),
        report: Box::new(HookReport { message, feedback, ..HookOutcome::Success.into() }),
    };
    check_in_session(Limits::REASON, "session a\nbegin tell", |project, size| finish(project, Some(text(size)), None));
    check_in_session(Limits::FEEDBACK, "session a\nbegin tell", |project, size| {
        finish(project, None, Some(text(size)))
    });
}

#[test]
fn what_a_session_is_started_with() {
    let new = |change: fn(&mut NewSession, usize)| {
        move |_: &Script, size| {
            let mut new = NewSession {
                name: "a".parse().unwrap(),
                task: None,
                goal: None,
                work: crate::session::Work::Given,
                grounds: crate::delivery::Grounds::InPlace,
                config: String::new(),
                protected: None,
                agent: "command:true".to_owned(),
                terms: Terms::default(),
                owner: "w1".parse().unwrap(),
                nonce: 7,
                fresh: false,
            };
            change(&mut new, size);
            Command::StartSession(new)
        }
    };
    check_in_session(Limits::GOAL, "", new(|new, size| new.goal = Some(text(size))));
    check_in_session(Limits::GOAL, "", new(|new, size| new.agent = text(size)));
    check_in_session(Limits::CONFIG, "", new(|new, size| new.config = text(size)));
}

/// Checks the context of a start. A released task can be started again.
#[track_caller]
fn check_context(bound: usize, context: fn(usize) -> Value) {
    for (size, taken) in [(bound, true), (bound + 1, false)] {
        let mut project = Script::after(default_rules(), "add one");
        assert_eq!(project.ask(&Command::StartTask { id: T1, context: context(size) }).is_ok(), taken, "{size}");
    }
}

#[test]
fn the_context_of_a_start() {
    // Two of the bytes are the quotation marks.
    check_context(Limits::CONTEXT, |size| json!(text(size - 2)));
}

fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(1), |value, _| json!([value]))
}

#[test]
fn the_nesting_of_a_context() {
    check_context(Limits::NESTING, nested);
}

/// An event that is written and cannot be read again would make the log unreadable.
#[test]
fn what_is_taken_can_be_read_again_however_deep_it_lies() {
    let mut rules = default_rules();
    let hook = Hook::new("broken", [EventType::TaskStarted, EventType::HookError], |_, _| {
        Err(HookFault::failed("out of order"))
    });
    rules.registry.register(hook).unwrap();
    let mut project = Script::after(rules, "add one");
    project.ask(&Command::StartTask { id: T1, context: nested(Limits::NESTING) }).unwrap();
    for record in &project.log {
        assert_eq!(decode(&encode(&record.envelope)).unwrap(), record.envelope);
    }
}

/// A hook's error message comes from outside too. It is recorded up to its limit.
#[test]
fn the_words_of_a_failed_hook() {
    for (said, kept) in [
        (text(Limits::REASON), Limits::REASON),
        (text(Limits::REASON + 1), Limits::REASON),
        ("ä".repeat(Limits::REASON), Limits::REASON),
        (format!("x{}", "ä".repeat(Limits::REASON)), Limits::REASON - 1),
    ] {
        let mut rules = default_rules();
        let fails = move |_: &Record, _: &dyn View| Err(HookFault::failed(&said));
        rules.registry.register(Hook::new("broken", [EventType::TaskStarted], fails)).unwrap();
        let project = Script::after(rules, "add one\nstart T1");
        assert_eq!(project.data(EventType::HookError)["error"].as_str().unwrap().len(), kept);
    }
}

#[test]
fn dependencies() {
    let mut project = Script::new(default_rules());
    for _ in 0..=Limits::DEPENDENCIES {
        project.ask(&Command::CreateTask(new_task())).unwrap();
    }
    let on = |count: usize| {
        let depends_on = (1..=count as u64).map(TaskId).collect();
        Command::CreateTask(NewTask { depends_on, ..new_task() })
    };
    assert!(project.ask(&on(Limits::DEPENDENCIES + 1)).is_err());
    project.ask(&on(Limits::DEPENDENCIES)).unwrap();
}

#[test]
fn the_leases_that_one_claim_clears_away() {
    let mut project = Script::new(default_rules());
    for _ in 0..=Limits::EXPIRED {
        project.ask(&Command::CreateTask(new_task())).unwrap();
        project.run("claim by=w1 for=1s");
    }
    let answered = project.run("add the last\nlater 60s\nclaim by=w2 for=60s");
    let expired = |lines: &[String]| lines.iter().filter(|line| line.contains("lease_expired")).count();
    assert_eq!(expired(&answered), Limits::EXPIRED);
    assert_eq!(expired(&project.run("claim by=w2 for=60s")), 1);
}

#[test]
fn free_text_is_neither_blank_nor_does_it_carry_what_no_environment_can() {
    let mut project = Script::after(default_rules(), "add one");
    let mut refused = |new: NewTask| match project.ask(&Command::CreateTask(new)) {
        Err(Refusal::Invalid { what, why }) => format!("{what} {why}"),
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(NewTask { goal: " \n".to_owned(), ..new_task() }), "the goal is empty");
    assert_eq!(refused(NewTask { goal: "a\0b".to_owned(), ..new_task() }), "the goal contains a NUL byte");
    assert_eq!(refused(NewTask { body: Some("\0".to_owned()), ..new_task() }), "the body contains a NUL byte");
    for label in ["a\nb", "a\u{1b}[2Jb", "\u{9b}1m"] {
        let labelled = NewTask { labels: vec!["fine".to_owned(), label.to_owned()], ..new_task() };
        assert_eq!(refused(labelled), "a label contains a control character", "{label:?}");
    }
}

#[test]
fn an_update_says_only_what_differs() {
    let mut project = Script::after(default_rules(), "add one labels=a,b");
    assert_eq!(project.run("relabel T1 labels=a,b,a"), [""; 0]);
    assert_eq!(project.run("relabel T1 labels=b"), ["T1 task_updated"]);
    let patch = TaskPatch { body: Some(String::new()), kind: Some(None), ..TaskPatch::default() };
    assert!(project.ask(&Command::UpdateTask { id: T1, patch }).unwrap().is_empty());
}
