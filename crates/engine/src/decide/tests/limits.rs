//! Each limit: a value within it is accepted, a value just beyond it is refused.

use serde_json::{Value, json};

use super::script::{ScriptProject, default_rules};
use crate::command::limits::EngineLimits;
use crate::command::refusal::Refusal;
use crate::command::{Command, HookReport, NewSession, NewTask, TaskPatch, TurnAnswer, TurnFailureReport};
use crate::decide::{EngineRules, HookPlan};
use crate::effects::hook_batch::HookEffect;
use crate::effects::hook_outcome::{HookClass, HookFailurePolicy, HookOutcome};
use crate::effects::registry::{PureHook, PureHookError};
use crate::log::encoding::{decode_event, encode_event};
use crate::log::event::EventRecord;
use crate::log::event_type::EventType;
use crate::log::id::TaskId;
use crate::session::{SessionEndKind, SessionTerms};
use crate::view::StateView;

const T1: TaskId = TaskId(1);

fn new_task() -> NewTask {
    NewTask { goal: "one".to_owned(), ..NewTask::default() }
}

fn sample_text(length: usize) -> String {
    "x".repeat(length)
}

fn sample_texts(count: usize) -> Vec<String> {
    (0..count).map(|number| number.to_string()).collect()
}

/// Checks that a command of a size is accepted at the limit and refused beyond it. The task is new and active.
#[track_caller]
fn check_bound(bound: usize, command: impl Fn(usize) -> Command) {
    for (size, taken) in [(bound, true), (bound + 1, false)] {
        let mut project = ScriptProject::after(default_rules(), "add one\nstart T1");
        let answer = project.commit_as_person(&command(size));
        assert_eq!(answer.is_ok(), taken, "{size}: {:?}", answer.map(|records| records.len()));
        assert!(matches!(answer, Ok(_) | Err(Refusal::Invalid { .. })));
    }
}

fn create_command(change: impl Fn(&mut NewTask, usize)) -> impl Fn(usize) -> Command {
    move |size| {
        let mut new = new_task();
        change(&mut new, size);
        Command::CreateTask(new)
    }
}

fn update_command(change: impl Fn(&mut TaskPatch, usize)) -> impl Fn(usize) -> Command {
    move |size| {
        let mut patch = TaskPatch::default();
        change(&mut patch, size);
        Command::UpdateTask { id: T1, patch }
    }
}

#[test]
fn goal_and_body_are_taken_up_to_limit() {
    check_bound(EngineLimits::GOAL_BYTES, create_command(|new, size| new.goal = sample_text(size)));
    check_bound(EngineLimits::GOAL_BYTES, update_command(|patch, size| patch.goal = Some(sample_text(size))));
    check_bound(EngineLimits::BODY_BYTES, create_command(|new, size| new.body = Some(sample_text(size))));
    check_bound(EngineLimits::BODY_BYTES, update_command(|patch, size| patch.body = Some(sample_text(size))));
}

#[test]
fn labels_are_taken_up_to_limit() {
    check_bound(EngineLimits::LABEL_BYTES, create_command(|new, size| new.labels = vec![sample_text(size)]));
    check_bound(EngineLimits::LABEL_BYTES, update_command(|patch, size| patch.labels = Some(vec![sample_text(size)])));
    check_bound(EngineLimits::LABEL_COUNT, create_command(|new, size| new.labels = sample_texts(size)));
    check_bound(EngineLimits::LABEL_COUNT, update_command(|patch, size| patch.labels = Some(sample_texts(size))));
}

#[test]
fn deliverables_are_taken_up_to_limit() {
    check_bound(
        EngineLimits::DELIVERABLE_BYTES,
        create_command(|new, size| new.deliverables = vec![sample_text(size)]),
    );
    check_bound(
        EngineLimits::DELIVERABLE_BYTES,
        update_command(|patch, size| patch.deliverables = Some(vec![sample_text(size)])),
    );
    check_bound(EngineLimits::DELIVERABLE_COUNT, create_command(|new, size| new.deliverables = sample_texts(size)));
    check_bound(
        EngineLimits::DELIVERABLE_COUNT,
        update_command(|patch, size| patch.deliverables = Some(sample_texts(size))),
    );
}

#[test]
fn results_and_artifacts_are_taken_up_to_limit() {
    let complete = |result: Option<String>, artifacts| Command::CompleteTask { id: T1, result, artifacts };
    check_bound(EngineLimits::RESULT_BYTES, |size| complete(Some(sample_text(size)), vec![]));
    check_bound(EngineLimits::ARTIFACT_BYTES, |size| complete(None, vec![sample_text(size)]));
    check_bound(EngineLimits::ARTIFACT_COUNT, |size| complete(None, sample_texts(size)));
}

#[test]
fn reasons_are_taken_up_to_limit() {
    let id = T1;
    check_bound(EngineLimits::REASON_BYTES, |size| Command::FailTask { id, reason: sample_text(size) });
    check_bound(EngineLimits::REASON_BYTES, |size| Command::ReleaseTask { id, reason: sample_text(size) });
    check_bound(EngineLimits::REASON_BYTES, |size| Command::NeedContinuation { id, reason: sample_text(size) });
    check_bound(EngineLimits::REASON_BYTES, |size| Command::BlockTask {
        id,
        reason: sample_text(size),
        required_knowledge: vec![],
    });
    for (size, taken) in [(EngineLimits::REASON_BYTES, true), (EngineLimits::REASON_BYTES + 1, false)] {
        let mut project = ScriptProject::after(default_rules(), "add one\nfail T1");
        assert_eq!(project.commit_as_person(&Command::ReopenTask { id, reason: sample_text(size) }).is_ok(), taken);
        let mut project = ScriptProject::after(default_rules(), "add one\nsession a task=T1");
        let run = "a.1.0000000000000007".parse().unwrap();
        assert_eq!(
            project
                .commit_as_person(&Command::FailTurn { run, failing: TurnFailureReport::from_error(sample_text(size)) })
                .is_ok(),
            taken
        );
        let mut project = ScriptProject::after(default_rules(), "session a");
        let stop = Command::StopSession {
            name: "a".parse().unwrap(),
            ending: SessionEndKind::Cancelled,
            reason: Some(sample_text(size)),
        };
        assert_eq!(project.commit_as_person(&stop).is_ok(), taken);
    }
}

/// Checks a command of a size, in a project in which a hook of a session has begun.
#[track_caller]
fn check_in_session(bound: usize, script: &str, command: impl Fn(&ScriptProject, usize) -> Command) {
    for (size, taken) in [(bound, true), (bound + 1, false)] {
        let hook = HookEffect {
            hook: "tell".to_owned(),
            point: "pre_iteration".parse().expect("a hook point"),
            class: HookClass::Other,
            on_failure: HookFailurePolicy::Ignore,
            send_backs: None,
        };
        let hooks = [(EventType::IterationStarted, vec![hook])];
        let effects = HookPlan::for_all_tasks("", "w1".parse().unwrap(), hooks);
        let mut project = ScriptProject::after(EngineRules { effects: Some(effects), ..default_rules() }, script);
        let command = command(&project, size);
        let answer = project.commit_as_person(&command);
        assert_eq!(answer.is_ok(), taken, "{size}: {answer:?}");
        assert!(matches!(answer, Ok(_) | Err(Refusal::Invalid { .. })));
    }
}

#[test]
fn agent_and_hook_texts_are_taken_up_to_limit() {
    let run = || "a.1.0000000000000007".parse().unwrap();
    let answers = |_: &ScriptProject, size| Command::FinishTurn {
        run: run(),
        answer: TurnAnswer { output: sample_text(size), ..TurnAnswer::default() },
    };
    check_in_session(EngineLimits::OUTPUT_BYTES, "session a\nhook tell", answers);
    let finish = |project: &ScriptProject, message: Option<String>, feedback: Option<String>| Command::FinishEffect {
        effect: project.pending_effects()[0].id,
        owner: "w1".parse().unwrap(),
        report: Box::new(HookReport { message, feedback, ..HookOutcome::Success.into() }),
    };
    check_in_session(EngineLimits::REASON_BYTES, "session a\nbegin tell", |project, size| {
        finish(project, Some(sample_text(size)), None)
    });
    check_in_session(EngineLimits::FEEDBACK_BYTES, "session a\nbegin tell", |project, size| {
        finish(project, None, Some(sample_text(size)))
    });
}

#[test]
fn session_fields_are_taken_up_to_limit() {
    let new = |change: fn(&mut NewSession, usize)| {
        move |_: &ScriptProject, size| {
            let mut new = NewSession {
                name: "a".parse().unwrap(),
                task: None,
                goal: None,
                work: crate::session::WorkSource::Given,
                workspace_mode: crate::delivery::WorkspaceMode::InPlace,
                config: String::new(),
                protected: None,
                agent: "command:true".to_owned(),
                terms: SessionTerms::default(),
                owner: "w1".parse().unwrap(),
                nonce: 7,
                fresh: false,
            };
            change(&mut new, size);
            Command::StartSession(new)
        }
    };
    check_in_session(EngineLimits::GOAL_BYTES, "", new(|new, size| new.goal = Some(sample_text(size))));
    check_in_session(EngineLimits::GOAL_BYTES, "", new(|new, size| new.agent = sample_text(size)));
    check_in_session(EngineLimits::CONFIG_BYTES, "", new(|new, size| new.config = sample_text(size)));
}

/// Checks the context of a start. A released task can be started again.
#[track_caller]
fn check_context(bound: usize, context: fn(usize) -> Value) {
    for (size, taken) in [(bound, true), (bound + 1, false)] {
        let mut project = ScriptProject::after(default_rules(), "add one");
        assert_eq!(
            project.commit_as_person(&Command::StartTask { id: T1, context: context(size) }).is_ok(),
            taken,
            "{size}"
        );
    }
}

#[test]
fn start_context_is_taken_up_to_limit() {
    // Two of the bytes are the quotation marks.
    check_context(EngineLimits::CONTEXT_BYTES, |size| json!(sample_text(size - 2)));
}

fn nested_value(levels: usize) -> Value {
    (0..levels).fold(json!(1), |value, _| json!([value]))
}

#[test]
fn context_depth_is_taken_up_to_limit() {
    check_context(EngineLimits::VALUE_DEPTH, nested_value);
}

/// An event that the store writes and cannot read again would make the log unreadable.
#[test]
fn deepest_accepted_context_round_trips_through_event_encoding() {
    let mut rules = default_rules();
    let hook = PureHook::new("broken", [EventType::TaskStarted, EventType::HookError], |_, _| {
        Err(PureHookError::failed("out of order"))
    });
    rules.registry.register(hook).unwrap();
    let mut project = ScriptProject::after(rules, "add one");
    project.commit_as_person(&Command::StartTask { id: T1, context: nested_value(EngineLimits::VALUE_DEPTH) }).unwrap();
    for record in &project.log {
        assert_eq!(decode_event(&encode_event(&record.envelope)).unwrap(), record.envelope);
    }
}

/// A hook's error message comes from outside too. It is recorded up to its limit.
#[test]
fn error_of_failed_hook_is_cut_to_limit() {
    for (said, kept) in [
        (sample_text(EngineLimits::REASON_BYTES), EngineLimits::REASON_BYTES),
        (sample_text(EngineLimits::REASON_BYTES + 1), EngineLimits::REASON_BYTES),
        ("ä".repeat(EngineLimits::REASON_BYTES), EngineLimits::REASON_BYTES),
        (format!("x{}", "ä".repeat(EngineLimits::REASON_BYTES)), EngineLimits::REASON_BYTES - 1),
    ] {
        let mut rules = default_rules();
        let fails = move |_: &EventRecord, _: &dyn StateView| Err(PureHookError::failed(&said));
        rules.registry.register(PureHook::new("broken", [EventType::TaskStarted], fails)).unwrap();
        let project = ScriptProject::after(rules, "add one\nstart T1");
        assert_eq!(project.event_data(EventType::HookError)["error"].as_str().unwrap().len(), kept);
    }
}

#[test]
fn dependencies_are_taken_up_to_limit() {
    let mut project = ScriptProject::new(default_rules());
    for _ in 0..=EngineLimits::DEPENDENCY_COUNT {
        project.commit_as_person(&Command::CreateTask(new_task())).unwrap();
    }
    let on = |count: usize| {
        let depends_on = (1..=count as u64).map(TaskId).collect();
        Command::CreateTask(NewTask { depends_on, ..new_task() })
    };
    assert!(project.commit_as_person(&on(EngineLimits::DEPENDENCY_COUNT + 1)).is_err());
    project.commit_as_person(&on(EngineLimits::DEPENDENCY_COUNT)).unwrap();
}

#[test]
fn one_claim_clears_expired_leases_up_to_limit() {
    let mut project = ScriptProject::new(default_rules());
    for _ in 0..=EngineLimits::EXPIRED_LEASES_PER_CLAIM {
        project.commit_as_person(&Command::CreateTask(new_task())).unwrap();
        project.run_script("claim by=w1 for=1s");
    }
    let answered = project.run_script("add the last\nlater 60s\nclaim by=w2 for=60s");
    let expired = |lines: &[String]| lines.iter().filter(|line| line.contains("lease_expired")).count();
    assert_eq!(expired(&answered), EngineLimits::EXPIRED_LEASES_PER_CLAIM);
    assert_eq!(expired(&project.run_script("claim by=w2 for=60s")), 1);
}

#[test]
fn free_text_is_neither_blank_nor_does_it_carry_what_no_environment_can() {
    let mut project = ScriptProject::after(default_rules(), "add one");
    let mut refused = |new: NewTask| match project.commit_as_person(&Command::CreateTask(new)) {
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
fn task_update_is_recorded_only_when_values_differ() {
    let mut project = ScriptProject::after(default_rules(), "add one labels=a,b");
    assert_eq!(project.run_script("relabel T1 labels=a,b,a"), [""; 0]);
    assert_eq!(project.run_script("relabel T1 labels=b"), ["T1 task_updated"]);
    let patch = TaskPatch { body: Some(String::new()), kind: Some(None), ..TaskPatch::default() };
    assert!(project.commit_as_person(&Command::UpdateTask { id: T1, patch }).unwrap().is_empty());
}
