//! Workflows: the log contains each step with its result, and a crash loses at most the step in progress.

use core::time::Duration;

use serde_json::{Map, Value, json};

use super::script::{ScriptProject, default_rules};
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

fn owner_name() -> OwnerName {
    "w1".parse().unwrap()
}

fn workflow_rules() -> EngineRules {
    EngineRules { effects: Some(HookPlan::for_all_tasks("hooks: {}", owner_name(), [])), ..default_rules() }
}

/// Returns a project with T1 and a pending workflow about it that has begun, at the step `a`.
fn project_with_begun_workflow() -> ScriptProject {
    let mut project = ScriptProject::after(workflow_rules(), "add mend the pump");
    project.commit_as_person(&trigger_command("w")).unwrap();
    project.run_script(&format!("begin {}", workflow_effect(&project).id));
    let (workflow, step) = ("w".to_owned(), "a".to_owned());
    let effect = workflow_effect(&project).id;
    project
        .commit_as_person(&Command::StartWorkflow {
            effect,
            owner: owner_name(),
            workflow,
            digest: Digest::of_bytes(b"w"),
            step,
            steps: 2,
        })
        .unwrap();
    project
}

fn trigger_command(id: &str) -> Command {
    let context = json!({"days": 3}).as_object().unwrap().clone();
    Command::TriggerWorkflow { id: id.to_owned(), context, task: Some("T1".parse().unwrap()) }
}

fn workflow_effect(project: &ScriptProject) -> PendingEffect {
    project.pending_effects().remove(0)
}

/// Ends the step `a`, which leads to `b` or, if it fails, to `c`.
fn end_step_a(project: &mut ScriptProject, execution: StepExecution) -> Result<Vec<String>, Refusal> {
    end_step(project, "a", execution, Some("b"), Some("c"))
}

fn end_step(
    project: &mut ScriptProject,
    step: &str,
    execution: StepExecution,
    on_success: Option<&str>,
    on_failure: Option<&str>,
) -> Result<Vec<String>, Refusal> {
    let owned = |name: Option<&str>| name.map(str::to_owned);
    let stored: Map<String, Value> = [("seen".to_owned(), json!(1))].into_iter().collect();
    let end = StepReport {
        step: step.to_owned(),
        execution,
        took: Duration::from_millis(5),
        stored,
        on_success: owned(on_success),
        on_failure: owned(on_failure),
    };
    let effect = workflow_effect(project).id;
    let records = project.commit_as_person(&Command::EndStep { effect, owner: owner_name(), end: Box::new(end) })?;
    Ok(records.iter().map(|record| record.kind().to_string()).collect())
}

fn successful_step(step: &str) -> StepExecution {
    StepExecution::Ended(StepResult::succeeded(step, None, Duration::ZERO))
}

fn failed_step(step: &str) -> StepExecution {
    StepExecution::Ended(StepResult::failed(step, "exit 1", Duration::ZERO))
}

fn requesting_step(payload: Value) -> StepExecution {
    StepExecution::RunAction(ActionRequest { kind: "create_task".to_owned(), payload })
}

fn next_step(project: &ScriptProject) -> Option<String> {
    workflow_effect(project).progress.and_then(|progress| progress.next)
}

#[test]
fn triggered_workflow_is_enqueued() {
    let mut project = ScriptProject::after(workflow_rules(), "add mend the pump");
    project.commit_as_person(&trigger_command("w")).unwrap();
    let owed = workflow_effect(&project);
    assert_eq!((owed.task.unwrap().to_string().as_str(), owed.attempts), ("T1", 0));
    assert_eq!(project.event_data(EventType::WorkflowTriggered)["context"], json!({"days": 3}));
    assert_eq!(owed.recovery_action(), RecoveryAction::Run);
    project.simulate_crash();
    assert_eq!(workflow_effect(&project), owed);
}

#[test]
fn hook_action_triggers_workflow_for_task_of_hook() {
    let mut rules = workflow_rules();
    let (hook, point) = ("one".to_owned(), HookPoint::Event(EventType::TaskStarted));
    let hook =
        HookEffect { hook, point, class: HookClass::Other, on_failure: HookFailurePolicy::Ignore, send_backs: None };
    rules.effects = Some(HookPlan::for_all_tasks("hooks: {}", owner_name(), [(EventType::TaskStarted, vec![hook])]));
    let mut project = ScriptProject::after(rules, "add mend the pump\nstart T1");
    let answered = project.run_script(r#"hook one asks=execute_workflow:{"workflowId":"w","context":{"a":1}}"#);
    assert!(answered.last().unwrap().starts_with("T1 workflow_triggered"), "{answered:?}");
    assert_eq!(workflow_effect(&project).task, Some("T1".parse().unwrap()));
}

#[test]
fn workflow_is_refused_without_runner_or_trust() {
    let mut project = ScriptProject::after(default_rules(), "add mend the pump");
    assert!(
        project
            .commit_as_person(&trigger_command("w"))
            .unwrap_err()
            .to_string()
            .contains("this caller runs no effects")
    );
    let mut rules = workflow_rules();
    rules.effects.as_mut().unwrap().trust = ConfigTrust::No;
    let mut project = ScriptProject::after(rules, "add mend the pump");
    assert!(matches!(project.commit_as_person(&trigger_command("w")), Err(Refusal::Untrusted { .. })));
    let unknown = Command::TriggerWorkflow { id: "w".to_owned(), context: Map::new(), task: "T9".parse().ok() };
    assert!(matches!(
        ScriptProject::after(workflow_rules(), "add x").commit_as_person(&unknown),
        Err(Refusal::UnknownTask(_))
    ));
}

#[test]
fn step_actions_and_step_end_are_committed_together() {
    let mut project = project_with_begun_workflow();
    let made = end_step_a(&mut project, requesting_step(json!({"goal": "Review", "parentTaskId": "T1"}))).unwrap();
    assert_eq!(made, ["task_created", "dependency_added", "task_ready", "workflow_step_finished"]);
    let finished = project.event_data(EventType::WorkflowStepFinished);
    assert_eq!(finished["result"]["data"], json!({"taskId": "T2"}));
    assert_eq!((&finished["next"], &finished["stored"]), (&json!("b"), &json!({"seen": 1})));
    project.simulate_crash();
    assert_eq!(next_step(&project).as_deref(), Some("b"));
}

#[test]
fn one_that_is_refused_has_failed_and_leaves_nothing() {
    let mut project = project_with_begun_workflow();
    let made = end_step_a(&mut project, requesting_step(json!({"goal": "Review", "parentTaskId": "T9"}))).unwrap();
    assert_eq!(made, ["workflow_step_finished"]);
    let finished = project.event_data(EventType::WorkflowStepFinished);
    assert_eq!(finished["result"]["error"], "there is no task T9");
    assert_eq!(finished.get("stored"), None, "what failed leaves nothing");
    assert_eq!(next_step(&project).as_deref(), Some("c"));
}

#[test]
fn workflow_ends_when_no_step_follows() {
    let mut project = project_with_begun_workflow();
    assert_eq!(
        end_step(&mut project, "a", successful_step("a"), None, None).unwrap(),
        ["workflow_step_finished", "workflow_completed"]
    );
    assert_eq!(next_step(&project), None);
    let mut project = project_with_begun_workflow();
    assert_eq!(
        end_step(&mut project, "a", failed_step("a"), Some("b"), None).unwrap(),
        ["workflow_step_finished", "workflow_failed"]
    );
    assert_eq!(project.event_data(EventType::WorkflowFailed)["error"], "`a`: exit 1");
    assert_eq!(workflow_effect(&project).progress.unwrap().failed.as_deref(), Some("`a`: exit 1"));
    assert!(end_step_a(&mut project, successful_step("a")).is_err(), "it is over");
}

#[test]
fn only_owner_takes_next_step() {
    let mut project = project_with_begun_workflow();
    assert!(end_step(&mut project, "b", successful_step("b"), None, None).is_err());
    let (effect, other) = (workflow_effect(&project).id, "w2".parse().unwrap());
    assert!(project.commit_as_person(&Command::BeginStep { effect, owner: other, step: "a".to_owned() }).is_err());
    project.commit_as_person(&Command::BeginStep { effect, owner: owner_name(), step: "a".to_owned() }).unwrap();
    let twice = Command::BeginStep { effect, owner: owner_name(), step: "a".to_owned() };
    assert!(project.commit_as_person(&twice).is_err(), "it has begun already");
}

#[test]
fn recovered_workflow_continues_at_step_interrupted_by_crash() {
    let mut project = project_with_begun_workflow();
    end_step_a(&mut project, successful_step("a")).unwrap();
    let id = workflow_effect(&project).id;
    project.commit_as_person(&Command::BeginStep { effect: id, owner: owner_name(), step: "b".to_owned() }).unwrap();
    project.simulate_crash();
    assert_eq!(workflow_effect(&project).recovery_action(), RecoveryAction::Continue);
    project.run_script(&format!("recover {id} from=w1 by=w2"));
    let progress = workflow_effect(&project).progress.unwrap();
    assert_eq!((progress.next.as_deref(), progress.under_way.as_deref()), (Some("b"), Some("b")));
    assert_eq!((progress.done.len(), workflow_effect(&project).attempts), (1, 2));
    // The event of a repeated step has the number of the attempt.
    let again = Command::BeginStep { effect: id, owner: "w2".parse().unwrap(), step: "b".to_owned() };
    project.commit_as_person(&again).unwrap();
    assert_eq!(project.event_data(EventType::WorkflowStepStarted)["attempt"], 2);
    assert!(project.commit_as_person(&again).is_err(), "it has begun already");
}

#[test]
fn one_that_is_tried_again_begins_anew() {
    let mut project = project_with_begun_workflow();
    end_step(&mut project, "a", failed_step("a"), None, None).unwrap();
    let id = workflow_effect(&project).id;
    project.run_script(&format!("retry {id} after=flaky"));
    assert_eq!(workflow_effect(&project).progress, None);
}

fn parallel_step(branches: Vec<BranchOutcome>, wanted: SuccessPolicy) -> StepExecution {
    StepExecution::Parallel(ParallelOutcome { branches, wanted })
}

fn requesting_branch(step: &str, payload: Value) -> BranchOutcome {
    BranchOutcome::RunAction {
        step: step.to_owned(),
        request: ActionRequest { kind: "create_task".to_owned(), payload },
    }
}

fn branch_names(project: &ScriptProject) -> Vec<String> {
    let finished = project.event_data(EventType::WorkflowStepFinished);
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
        |branches: Vec<BranchOutcome>, wanted: SuccessPolicy, expected_step: &str, results: &[&str], tasks: usize| {
            let mut project = project_with_begun_workflow();
            let made = end_step_a(&mut project, parallel_step(branches, wanted)).unwrap();
            assert_eq!(next_step(&project).as_deref(), Some(expected_step));
            assert_eq!(branch_names(&project), results, "in the order of the file");
            assert_eq!(made.iter().filter(|kind| *kind == "task_created").count(), tasks);
        };
    let more = || requesting_branch("z", json!({"goal": "more"}));
    check(vec![wrong(), more(), good()], SuccessPolicy::All, "c", &["\"y\" false", "\"z\" true", "\"x\" true"], 1);
    check(vec![more(), good()], SuccessPolicy::All, "b", &["\"z\" true", "\"x\" true"], 1);
    // One success is enough: later branches are left out.
    check(vec![wrong(), more(), good()], SuccessPolicy::One, "b", &["\"y\" false", "\"x\" true"], 0);
    let refused = || requesting_branch("w", json!({"goal": ""}));
    let again = || requesting_branch("again", json!({"goal": "again"}));
    let one = &["\"w\" false", "\"z\" true", "\"y\" false"];
    check(vec![refused(), more(), again(), wrong()], SuccessPolicy::One, "b", one, 1);
    check(vec![refused(), more(), again()], SuccessPolicy::OneOrContinue, "b", &one[..2], 1);
    check(vec![refused(), wrong()], SuccessPolicy::One, "c", &["\"w\" false", "\"y\" false"], 0);
}

#[test]
fn step_without_success_changes_nothing_while_others_remain() {
    let mut project = project_with_begun_workflow();
    let before = workflow_effect(&project);
    let refused = end_step_a(
        &mut project,
        parallel_step(vec![requesting_branch("w", json!({"goal": ""}))], SuccessPolicy::OneOrContinue),
    );
    assert!(matches!(refused, Err(Refusal::NoneSucceeds { effect }) if effect == before.id));
    assert_eq!(workflow_effect(&project), before);
}

#[test]
fn context_with_reserved_name_is_refused() {
    for name in ["steps", "data", "workflow"] {
        let mut project = ScriptProject::after(workflow_rules(), "add mend the pump");
        let context = json!({name: 1}).as_object().unwrap().clone();
        let refused = project
            .commit_as_person(&Command::TriggerWorkflow { id: "w".to_owned(), context, task: None })
            .unwrap_err();
        assert!(refused.to_string().contains(&format!("the context names `{name}`")), "{refused}");
    }
}

#[test]
fn workflow_fails_when_step_limit_is_reached() {
    let mut project = project_with_begun_workflow();
    for number in 1..EngineLimits::WORKFLOW_STEPS {
        let ended = end_step(&mut project, "a", successful_step("a"), Some("a"), None).unwrap();
        assert_eq!(ended, ["workflow_step_finished"], "{number}");
    }
    let ended = end_step(&mut project, "a", successful_step("a"), Some("a"), None).unwrap();
    assert_eq!(ended, ["workflow_step_finished", "workflow_failed"]);
    assert!(
        project.event_data(EventType::WorkflowFailed)["error"].as_str().unwrap().contains("1000 steps are the limit")
    );
}

#[test]
fn workflow_fails_when_its_actions_exceed_event_limit() {
    let mut project = project_with_begun_workflow();
    let mut made = 0;
    while end_step(&mut project, "a", requesting_step(json!({"goal": "more"})), Some("a"), None).unwrap().len() > 2 {
        made += 1;
        assert!(made < 1000, "it never ends");
    }
    assert!(project.event_data(EventType::WorkflowFailed)["error"].as_str().unwrap().contains("256 events"));
    assert!((64..=256).contains(&made), "{made}");
}

#[test]
fn step_action_on_claimed_task_fails_without_changing_it() {
    let mut project = project_with_begun_workflow();
    project.run_script("claim T1 by=w9 for=60s");
    let payload = json!({"taskId": "T1", "action": "block", "reason": "why"});
    let ended =
        end_step_a(&mut project, StepExecution::RunAction(ActionRequest { kind: "update_task".to_owned(), payload }))
            .unwrap();
    assert_eq!(ended, ["workflow_step_finished"]);
    assert_eq!(next_step(&project).as_deref(), Some("c"), "it has failed");
}
