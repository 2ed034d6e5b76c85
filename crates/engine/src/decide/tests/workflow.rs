//! Workflows: the log has each step with its result, and a crash costs at most the step in progress.

use core::time::Duration;

use serde_json::{Map, Value, json};

use super::script::{Script, default_rules};
use crate::command::Command;
use crate::command::limits::EngineLimits;
use crate::command::refusal::Refusal;
use crate::decide::{ConfigTrust, EngineRules, HookPlan};
use crate::effects::action::ActionRequest;
use crate::effects::hook_batch::HookEffect;
use crate::effects::hook_outcome::{HookClass, HookFailurePolicy};
use crate::effects::hook_point::HookPoint;
use crate::effects::outbox::{PendingEffect, RecoveryAction};
use crate::log::event_type::EventType;
use crate::log::id::{Digest, OwnerName};
use crate::workflow::{BranchOutcome, ParallelOutcome, StepExecution, StepReport, StepResult, SuccessPolicy};

fn owner() -> OwnerName {
    "w1".parse().unwrap()
}

fn rules() -> EngineRules {
    EngineRules { effects: Some(HookPlan::for_all_tasks("hooks: {}", owner(), [])), ..default_rules() }
}

/// Returns a project with T1 and a pending workflow about it that has begun, at the step `a`.
fn begun() -> Script {
    let mut project = Script::after(rules(), "add mend the pump");
    project.ask(&trigger("w")).unwrap();
    project.run(&format!("begin {}", effect(&project).id));
    let (workflow, step) = ("w".to_owned(), "a".to_owned());
    let effect = effect(&project).id;
    project
        .ask(&Command::StartWorkflow {
            effect,
            owner: owner(),
            workflow,
            digest: Digest::of_bytes(b"w"),
            step,
            steps: 2,
        })
        .unwrap();
    project
}

fn trigger(id: &str) -> Command {
    let context = json!({"days": 3}).as_object().unwrap().clone();
    Command::TriggerWorkflow { id: id.to_owned(), context, task: Some("T1".parse().unwrap()) }
}

fn effect(project: &Script) -> PendingEffect {
    project.effects().remove(0)
}

/// Ends the step `a`, which leads to `b` or, if it fails, to `c`.
fn end(project: &mut Script, did: StepExecution) -> Result<Vec<String>, Refusal> {
    end_with(project, "a", did, Some("b"), Some("c"))
}

fn end_with(
    project: &mut Script,
    step: &str,
    did: StepExecution,
    on_success: Option<&str>,
    on_failure: Option<&str>,
) -> Result<Vec<String>, Refusal> {
    let owned = |name: Option<&str>| name.map(str::to_owned);
    let stored: Map<String, Value> = [("seen".to_owned(), json!(1))].into_iter().collect();
    let end = StepReport {
        step: step.to_owned(),
        execution: did,
        took: Duration::from_millis(5),
        stored,
        on_success: owned(on_success),
        on_failure: owned(on_failure),
    };
    let effect = effect(project).id;
    let records = project.ask(&Command::EndStep { effect, owner: owner(), end: Box::new(end) })?;
    Ok(records.iter().map(|record| record.kind().to_string()).collect())
}

fn ok(step: &str) -> StepExecution {
    StepExecution::Ended(StepResult::succeeded(step, None, Duration::ZERO))
}

fn bad(step: &str) -> StepExecution {
    StepExecution::Ended(StepResult::failed(step, "exit 1", Duration::ZERO))
}

fn asks(payload: Value) -> StepExecution {
    StepExecution::RunAction(ActionRequest { kind: "create_task".to_owned(), payload })
}

fn next(project: &Script) -> Option<String> {
    effect(project).progress.and_then(|progress| progress.next)
}

#[test]
fn triggered_workflow_is_enqueued() {
    let mut project = Script::after(rules(), "add mend the pump");
    project.ask(&trigger("w")).unwrap();
    let owed = effect(&project);
    assert_eq!((owed.task.unwrap().to_string().as_str(), owed.attempts), ("T1", 0));
    assert_eq!(project.data(EventType::WorkflowTriggered)["context"], json!({"days": 3}));
    assert_eq!(owed.recovery_action(), RecoveryAction::Run);
    project.crash();
    assert_eq!(effect(&project), owed);
}

#[test]
fn a_hook_may_ask_for_one_and_it_is_about_the_hooks_task() {
    let mut rules = rules();
    let (hook, point) = ("one".to_owned(), HookPoint::Event(EventType::TaskStarted));
    let hook =
        HookEffect { hook, point, class: HookClass::Other, on_failure: HookFailurePolicy::Ignore, send_backs: None };
    rules.effects = Some(HookPlan::for_all_tasks("hooks: {}", owner(), [(EventType::TaskStarted, vec![hook])]));
    let mut project = Script::after(rules, "add mend the pump\nstart T1");
    let answered = project.run(r#"hook one asks=execute_workflow:{"workflowId":"w","context":{"a":1}}"#);
    assert!(answered.last().unwrap().starts_with("T1 workflow_triggered"), "{answered:?}");
    assert_eq!(effect(&project).task, Some("T1".parse().unwrap()));
}

#[test]
fn workflow_is_refused_without_runner_or_trust() {
    let mut project = Script::after(default_rules(), "add mend the pump");
    assert!(project.ask(&trigger("w")).unwrap_err().to_string().contains("this caller runs no effects"));
    let mut rules = rules();
    rules.effects.as_mut().unwrap().trust = ConfigTrust::No;
    let mut project = Script::after(rules, "add mend the pump");
    assert!(matches!(project.ask(&trigger("w")), Err(Refusal::Untrusted { .. })));
    let unknown = Command::TriggerWorkflow { id: "w".to_owned(), context: Map::new(), task: "T9".parse().ok() };
    assert!(matches!(Script::after(self::rules(), "add x").ask(&unknown), Err(Refusal::UnknownTask(_))));
}

#[test]
fn what_a_step_does_and_its_end_are_one_commit() {
    let mut project = begun();
    let made = end(&mut project, asks(json!({"goal": "Review", "parentTaskId": "T1"}))).unwrap();
    assert_eq!(made, ["task_created", "dependency_added", "task_ready", "workflow_step_finished"]);
    let finished = project.data(EventType::WorkflowStepFinished);
    assert_eq!(finished["result"]["data"], json!({"taskId": "T2"}));
    assert_eq!((&finished["next"], &finished["stored"]), (&json!("b"), &json!({"seen": 1})));
    project.crash();
    assert_eq!(next(&project).as_deref(), Some("b"));
}

#[test]
fn one_that_is_refused_has_failed_and_leaves_nothing() {
    let mut project = begun();
    let made = end(&mut project, asks(json!({"goal": "Review", "parentTaskId": "T9"}))).unwrap();
    assert_eq!(made, ["workflow_step_finished"]);
    let finished = project.data(EventType::WorkflowStepFinished);
    assert_eq!(finished["result"]["error"], "there is no task T9");
    assert_eq!(finished.get("stored"), None, "what failed leaves nothing");
    assert_eq!(next(&project).as_deref(), Some("c"));
}

#[test]
fn workflow_ends_when_no_step_follows() {
    let mut project = begun();
    assert_eq!(
        end_with(&mut project, "a", ok("a"), None, None).unwrap(),
        ["workflow_step_finished", "workflow_completed"]
    );
    assert_eq!(next(&project), None);
    let mut project = begun();
    assert_eq!(
        end_with(&mut project, "a", bad("a"), Some("b"), None).unwrap(),
        ["workflow_step_finished", "workflow_failed"]
    );
    assert_eq!(project.data(EventType::WorkflowFailed)["error"], "`a`: exit 1");
    assert_eq!(effect(&project).progress.unwrap().failed.as_deref(), Some("`a`: exit 1"));
    assert!(end(&mut project, ok("a")).is_err(), "it is over");
}

#[test]
fn only_owner_takes_next_step() {
    let mut project = begun();
    assert!(end_with(&mut project, "b", ok("b"), None, None).is_err());
    let (effect, other) = (effect(&project).id, "w2".parse().unwrap());
    assert!(project.ask(&Command::BeginStep { effect, owner: other, step: "a".to_owned() }).is_err());
    project.ask(&Command::BeginStep { effect, owner: owner(), step: "a".to_owned() }).unwrap();
    let twice = Command::BeginStep { effect, owner: owner(), step: "a".to_owned() };
    assert!(project.ask(&twice).is_err(), "it has begun already");
}

#[test]
fn after_a_crash_it_is_known_what_was_under_way() {
    let mut project = begun();
    end(&mut project, ok("a")).unwrap();
    let id = effect(&project).id;
    project.ask(&Command::BeginStep { effect: id, owner: owner(), step: "b".to_owned() }).unwrap();
    project.crash();
    assert_eq!(effect(&project).recovery_action(), RecoveryAction::Continue);
    project.run(&format!("recover {id} from=w1 by=w2"));
    let progress = effect(&project).progress.unwrap();
    assert_eq!((progress.next.as_deref(), progress.under_way.as_deref()), (Some("b"), Some("b")));
    assert_eq!((progress.done.len(), effect(&project).attempts), (1, 2));
    // A step that runs again says so.
    let again = Command::BeginStep { effect: id, owner: "w2".parse().unwrap(), step: "b".to_owned() };
    project.ask(&again).unwrap();
    assert_eq!(project.data(EventType::WorkflowStepStarted)["attempt"], 2);
    assert!(project.ask(&again).is_err(), "it has begun already");
}

#[test]
fn one_that_is_tried_again_begins_anew() {
    let mut project = begun();
    end_with(&mut project, "a", bad("a"), None, None).unwrap();
    let id = effect(&project).id;
    project.run(&format!("retry {id} after=flaky"));
    assert_eq!(effect(&project).progress, None);
}

fn several(branches: Vec<BranchOutcome>, wanted: SuccessPolicy) -> StepExecution {
    StepExecution::Parallel(ParallelOutcome { branches, wanted })
}

fn acts(step: &str, payload: Value) -> BranchOutcome {
    BranchOutcome::RunAction {
        step: step.to_owned(),
        request: ActionRequest { kind: "create_task".to_owned(), payload },
    }
}

fn within(project: &Script) -> Vec<String> {
    let finished = project.data(EventType::WorkflowStepFinished);
    finished["within"]
        .as_array()
        .map(|results| results.iter().map(|result| format!("{} {}", result["stepId"], result["success"])).collect())
        .unwrap_or_default()
}

#[test]
fn several_at_once_succeed_with_all_of_them_or_with_one() {
    let good = || BranchOutcome::Ended(StepResult::succeeded("x", None, Duration::ZERO));
    let wrong = || BranchOutcome::Ended(StepResult::failed("y", "no", Duration::ZERO));
    let check =
        |branches: Vec<BranchOutcome>, wanted: SuccessPolicy, next_step: &str, results: &[&str], tasks: usize| {
            let mut project = begun();
            let made = end(&mut project, several(branches, wanted)).unwrap();
            assert_eq!(next(&project).as_deref(), Some(next_step));
            assert_eq!(within(&project), results, "in the order of the file");
            assert_eq!(made.iter().filter(|kind| *kind == "task_created").count(), tasks);
        };
    let more = || acts("z", json!({"goal": "more"}));
    check(vec![wrong(), more(), good()], SuccessPolicy::All, "c", &["\"y\" false", "\"z\" true", "\"x\" true"], 1);
    check(vec![more(), good()], SuccessPolicy::All, "b", &["\"z\" true", "\"x\" true"], 1);
    // One success is enough: later branches are left out.
    check(vec![wrong(), more(), good()], SuccessPolicy::One, "b", &["\"y\" false", "\"x\" true"], 0);
    let refused = || acts("w", json!({"goal": ""}));
    let again = || acts("again", json!({"goal": "again"}));
    let one = &["\"w\" false", "\"z\" true", "\"y\" false"];
    check(vec![refused(), more(), again(), wrong()], SuccessPolicy::One, "b", one, 1);
    check(vec![refused(), more(), again()], SuccessPolicy::OneOrContinue, "b", &one[..2], 1);
    check(vec![refused(), wrong()], SuccessPolicy::One, "c", &["\"w\" false", "\"y\" false"], 0);
}

#[test]
fn step_without_success_changes_nothing_while_others_remain() {
    let mut project = begun();
    let before = effect(&project);
    let refused = end(&mut project, several(vec![acts("w", json!({"goal": ""}))], SuccessPolicy::OneOrContinue));
    assert!(matches!(refused, Err(Refusal::NoneSucceeds { effect }) if effect == before.id));
    assert_eq!(effect(&project), before);
}

#[test]
fn context_with_reserved_name_is_refused() {
    for name in ["steps", "data", "workflow"] {
        let mut project = Script::after(rules(), "add mend the pump");
        let context = json!({name: 1}).as_object().unwrap().clone();
        let refused = project.ask(&Command::TriggerWorkflow { id: "w".to_owned(), context, task: None }).unwrap_err();
        assert!(refused.to_string().contains(&format!("the context names `{name}`")), "{refused}");
    }
}

#[test]
fn it_comes_to_an_end_whatever_its_steps_lead_to() {
    let mut project = begun();
    for number in 1..EngineLimits::WORKFLOW_STEPS {
        let ended = end_with(&mut project, "a", ok("a"), Some("a"), None).unwrap();
        assert_eq!(ended, ["workflow_step_finished"], "{number}");
    }
    let ended = end_with(&mut project, "a", ok("a"), Some("a"), None).unwrap();
    assert_eq!(ended, ["workflow_step_finished", "workflow_failed"]);
    assert!(project.data(EventType::WorkflowFailed)["error"].as_str().unwrap().contains("1000 steps are the limit"));
}

#[test]
fn what_it_makes_is_bounded_as_that_of_any_hook() {
    let mut project = begun();
    let mut made = 0;
    while end_with(&mut project, "a", asks(json!({"goal": "more"})), Some("a"), None).unwrap().len() > 2 {
        made += 1;
        assert!(made < 1000, "it never ends");
    }
    assert!(project.data(EventType::WorkflowFailed)["error"].as_str().unwrap().contains("256 events"));
    assert!((64..=256).contains(&made), "{made}");
}

#[test]
fn a_step_does_not_move_what_is_held() {
    let mut project = begun();
    project.run("claim T1 by=w9 for=60s");
    let payload = json!({"taskId": "T1", "action": "block", "reason": "why"});
    let ended =
        end(&mut project, StepExecution::RunAction(ActionRequest { kind: "update_task".to_owned(), payload })).unwrap();
    assert_eq!(ended, ["workflow_step_finished"]);
    assert_eq!(next(&project).as_deref(), Some("c"), "it has failed");
}
