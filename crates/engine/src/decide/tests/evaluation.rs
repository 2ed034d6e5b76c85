//! Agents that run their own iterations: their rights, the consequences, and the state after a restart.

use core::time::Duration;

use serde_json::{Map, Value, json};

use super::script::{ScriptProject, default_rules, run_id};
use super::session_loop::loop_rules;
use crate::command::refusal::Refusal;
use crate::command::{Authority, Command};
use crate::effects::outbox::EffectKind;
use crate::evaluation::decision_rule::RuleAction;
use crate::evaluation::validation::RuleResult;
use crate::evaluation::{
    CheckpointTrigger, EvaluationFindings, EvaluationPurpose, HookDecision, NewCheckpoint, NewIterationSeries,
    NewStopHook, SeriesGuard, SeriesSignal, StopHook, StopRuling,
};
use crate::log::event::{Event, EventRecord, payload};
use crate::log::event_type::EventType;
use crate::log::id::{Epoch, HookId, SeriesId, TaskId};
use crate::log::time::Timestamp;
use crate::session::promise::Promise;
use crate::task::TaskState;

pub(super) const FIRST_TASK: TaskId = TaskId(1);

pub(super) fn new_series(max_iterations: u32) -> NewIterationSeries {
    let promises = vec![Promise::Complete, Promise::Blocked];
    NewIterationSeries { max_iterations, promises, rules: vec![], breaker: 20, strict: false }
}

fn findings_of(iteration: u32, promises: &[Promise], results: &[bool]) -> EvaluationFindings {
    let result = |(at, passed): (usize, &bool)| RuleResult {
        rule_name: format!("rule {at}"),
        passed: *passed,
        message: "as found".to_owned(),
        broken: false,
    };
    EvaluationFindings {
        asked: EvaluationPurpose::Validation,
        iteration,
        hooks: vec![],
        results: results.iter().enumerate().map(result).collect(),
        promises: promises.to_vec(),
        decision: None,
        agent_output: Some(format!("words of iteration {iteration}")),
        files_modified: vec![],
    }
}

fn new_stop_hook(hook: StopHook) -> NewStopHook {
    NewStopHook { hook, enabled: true, metadata: Map::from_iter([("by".to_owned(), json!("ada"))]) }
}

impl ScriptProject {
    pub(super) fn start_series(&mut self, new: NewIterationSeries) -> Result<SeriesId, Refusal> {
        self.commit_as_person(&Command::StartSeries { task: FIRST_TASK, new })?;
        Ok(self.find_task("T1").evaluation.series.expect("it has been started").id)
    }

    fn register_hook(&mut self, new: NewStopHook) -> Result<HookId, Refusal> {
        let records = self.commit_as_person(&Command::RegisterHook { task: FIRST_TASK, new })?;
        Ok(HookId(records[0].seq.0))
    }

    fn judge_series(&mut self, series: SeriesId, judging: EvaluationFindings) -> Result<Vec<EventRecord>, Refusal> {
        self.commit_as_person(&Command::JudgeSeries { task: FIRST_TASK, series, judging: Box::new(judging) })
    }

    /// Judges an iteration and advances to the next one. Returns the signal and the guard behind it.
    fn judge_and_advance(
        &mut self,
        series: SeriesId,
        judging: EvaluationFindings,
    ) -> (SeriesSignal, Option<SeriesGuard>) {
        let validation = find_validation(&self.judge_series(series, judging).unwrap());
        drop(self.commit_as_person(&Command::AdvanceSeries { task: FIRST_TASK, series }));
        (validation.signal, validation.guard)
    }

    fn complete_series(&mut self, series: SeriesId, promise: Promise) -> Result<Vec<EventRecord>, Refusal> {
        self.commit_as_person(&Command::CompleteSeries { task: FIRST_TASK, series, promise })
    }
}

fn find_validation(records: &[EventRecord]) -> payload::ValidationFinished {
    let found = records.iter().find_map(|record| match &record.envelope.event {
        Event::ValidationFinished(finished) => Some(finished.clone()),
        _ => None,
    });
    found.expect("it was judged")
}

fn event_types(records: &[EventRecord]) -> Vec<EventType> {
    records.iter().map(EventRecord::kind).collect()
}

fn project_with_task() -> ScriptProject {
    ScriptProject::after(default_rules(), "add one")
}

#[test]
fn series_runs_from_start_to_completion() {
    let mut project = project_with_task();
    let registered = project.register_hook(new_stop_hook(StopHook::Default)).unwrap();
    let id = project.start_series(new_series(10)).unwrap();
    assert_eq!(project.find_task("T1").state, TaskState::Active, "starting a series starts its task");
    project.simulate_crash();
    let ruling = StopRuling::new(RuleAction::Continue, "not yet");
    let decision = Some(HookDecision { hook: Some(registered), ruling });
    let judging =
        EvaluationFindings { hooks: vec![registered], decision, ..findings_of(1, &[Promise::Complete], &[false]) };
    let records = project.judge_series(id, judging).unwrap();
    assert_eq!(event_types(&records), [EventType::HookEvaluated, EventType::ValidationFinished]);
    let finished = find_validation(&records);
    assert_eq!((finished.signal, finished.hook), (SeriesSignal::Continue, Some(registered)), "hooks outweigh promises");
    assert_eq!(finished.feedback, ["rule 0: as found"]);
    project.commit_as_person(&Command::AdvanceSeries { task: FIRST_TASK, series: id }).unwrap();
    project.simulate_crash();
    let live = project.find_task("T1").evaluation.series.unwrap();
    assert_eq!((live.iteration, live.remaining_iterations(), live.judged), (2, 8, None));
    let records = project.complete_series(id, Promise::Complete).unwrap();
    assert_eq!(&event_types(&records)[..2], [EventType::SeriesEnded, EventType::TaskCompleted]);
    let task = project.find_task("T1");
    assert_eq!((task.state, task.evaluation.series, task.evaluation.hooks.len()), (TaskState::Completed, None, 1));
    assert_eq!(
        event_types(&project.commit_as_person(&Command::ClearHooks { task: FIRST_TASK, hook: None }).unwrap()),
        [EventType::HooksCleared]
    );
    assert!(project.commit_as_person(&Command::ClearHooks { task: FIRST_TASK, hook: None }).unwrap().is_empty());
    project.simulate_crash();
}

#[test]
fn one_registered_hook_is_switched_and_removed_alone() {
    let mut project = project_with_task();
    let (one, two) = (new_stop_hook(StopHook::Default), new_stop_hook(StopHook::Promise));
    let (one, two) = (project.register_hook(one).unwrap(), project.register_hook(two).unwrap());
    let switch = |enabled| Command::SwitchHook { task: FIRST_TASK, hook: one, enabled };
    assert_eq!(event_types(&project.commit_as_person(&switch(false)).unwrap()), [EventType::HookSwitched]);
    assert!(project.commit_as_person(&switch(false)).unwrap().is_empty(), "it is off already");
    project.simulate_crash();
    let state = |project: &ScriptProject| {
        project.find_task("T1").evaluation.hooks.iter().map(|hook| (hook.id, hook.enabled)).collect::<Vec<_>>()
    };
    assert_eq!(state(&project), [(one, false), (two, true)]);
    let remove = Command::ClearHooks { task: FIRST_TASK, hook: Some(two) };
    project.commit_as_person(&remove).unwrap();
    assert_eq!(state(&project), [(one, false)]);
    assert!(project.commit_as_person(&remove).unwrap_err().to_string().contains("is not registered for T1"));
    project.simulate_crash();
}

#[test]
fn being_blocked_is_not_being_complete() {
    for (promise, reason) in
        [(Promise::Blocked, "the agent says that it is blocked"), (Promise::Escalate, "the agent asks for a person")]
    {
        let mut project = project_with_task();
        let new = NewIterationSeries { promises: vec![promise], ..new_series(3) };
        let id = project.start_series(new).unwrap();
        project.complete_series(id, promise).unwrap();
        let task = project.find_task("T1");
        assert_eq!((task.state, task.blocked.unwrap().reason.as_str()), (TaskState::Blocked, reason));
        assert_eq!(task.evaluation.series, None);
    }
}

#[test]
fn promises_decide_where_no_hook_does() {
    use Promise::{Blocked, Complete, Escalate};
    let table: [(&[Promise], SeriesSignal); 6] = [
        (&[], SeriesSignal::Continue),
        (&[Complete], SeriesSignal::Complete),
        (&[Blocked], SeriesSignal::Blocked),
        (&[Escalate], SeriesSignal::Escalate),
        (&[Blocked, Escalate, Complete], SeriesSignal::Complete),
        (&[Blocked, Escalate], SeriesSignal::Escalate),
    ];
    for (promises, signal) in table {
        let mut project = project_with_task();
        let id = project.start_series(new_series(3)).unwrap();
        assert_eq!(project.judge_and_advance(id, findings_of(1, promises, &[true])), (signal, None), "{promises:?}");
    }
    let mut project = project_with_task();
    let id = project.start_series(new_series(3)).unwrap();
    let disabled = Some(HookDecision { hook: None, ruling: StopRuling::new(RuleAction::Continue, "disabled") });
    let judging = EvaluationFindings { decision: disabled, ..findings_of(1, &[Complete], &[]) };
    assert_eq!(
        find_validation(&project.judge_series(id, judging).unwrap()).signal,
        SeriesSignal::Complete,
        "no hook has decided"
    );
    assert_eq!(project.find_task("T1").state, TaskState::Active, "judging moves no task");
}

#[test]
fn strict_series_completes_only_when_rules_pass() {
    let mut project = project_with_task();
    let id = project.start_series(NewIterationSeries { strict: true, ..new_series(5) }).unwrap();
    let refusal = project.complete_series(id, Promise::Complete).unwrap_err().to_string();
    assert_eq!(refusal, format!("{id} is strict: it is completed after iteration_validate has answered COMPLETE"));
    let finished =
        find_validation(&project.judge_series(id, findings_of(1, &[Promise::Complete], &[true, false])).unwrap());
    assert_eq!((finished.signal, finished.passed), (SeriesSignal::Continue, false));
    assert_eq!(finished.feedback.len(), 2);
    project.complete_series(id, Promise::Complete).unwrap_err();
    project.judge_series(id, findings_of(1, &[Promise::Complete], &[true, true])).unwrap();
    project.complete_series(id, Promise::Complete).unwrap();
    // A promise that the agent is blocked is always accepted.
    let mut project = project_with_task();
    let id = project.start_series(NewIterationSeries { strict: true, ..new_series(5) }).unwrap();
    project.complete_series(id, Promise::Blocked).unwrap();
}

#[test]
fn series_at_maximum_iterations_escalates_and_refuses_advance() {
    let mut project = project_with_task();
    let id = project.start_series(new_series(2)).unwrap();
    assert_eq!(project.judge_and_advance(id, findings_of(1, &[], &[])), (SeriesSignal::Continue, None));
    let finished = find_validation(&project.judge_series(id, findings_of(2, &[], &[])).unwrap());
    assert_eq!((finished.signal, finished.guard), (SeriesSignal::Escalate, Some(SeriesGuard::MaxIterations)));
    assert_eq!(finished.feedback, ["maximum: this was iteration 2 of 2"]);
    let refusal =
        project.commit_as_person(&Command::AdvanceSeries { task: FIRST_TASK, series: id }).unwrap_err().to_string();
    assert!(refusal.starts_with(&format!("{id} is at its maximum of 2 iterations: ")), "{refusal}");
    let complete = find_validation(&project.judge_series(id, findings_of(2, &[Promise::Complete], &[])).unwrap());
    assert_eq!((complete.signal, complete.guard), (SeriesSignal::Complete, None), "only what would go on is guarded");
}

#[test]
fn circuit_breaker_counts_iterations_not_evaluations() {
    let mut project = project_with_task();
    let id = project.start_series(NewIterationSeries { breaker: 2, ..new_series(20) }).unwrap();
    for _ in 0..3 {
        project.judge_series(id, findings_of(1, &[], &[false])).unwrap();
    }
    assert_eq!(project.judge_and_advance(id, findings_of(1, &[], &[false])), (SeriesSignal::Continue, None));
    project.simulate_crash();
    assert_eq!(
        project.judge_and_advance(id, findings_of(2, &[], &[false])),
        (SeriesSignal::Escalate, Some(SeriesGuard::CircuitBreaker))
    );
    assert_eq!(
        project.judge_and_advance(id, findings_of(3, &[], &[true])),
        (SeriesSignal::Continue, None),
        "a success begins anew"
    );
    assert_eq!(project.judge_and_advance(id, findings_of(4, &[], &[false])), (SeriesSignal::Continue, None));
}

#[test]
fn series_repeating_same_work_and_failures_trips_thrashing_guard() {
    let check = |each: fn(u32) -> EvaluationFindings, trips: bool| {
        let mut project = project_with_task();
        let id = project.start_series(new_series(20)).unwrap();
        let guards: Vec<_> = (1..=3).map(|iteration| project.judge_and_advance(id, each(iteration)).1).collect();
        let last = trips.then_some(SeriesGuard::Thrashing);
        assert_eq!(guards, [None, None, last]);
    };
    check(|iteration| findings_of(iteration, &[], &[false]), true);
    check(|iteration| EvaluationFindings { agent_output: None, ..findings_of(iteration, &[], &[true]) }, false);
    check(
        |iteration| EvaluationFindings {
            agent_output: Some("x".repeat(iteration as usize)),
            ..findings_of(iteration, &[], &[false])
        },
        false,
    );
    check(
        |iteration| EvaluationFindings {
            files_modified: vec!["y".repeat(iteration as usize)],
            ..findings_of(iteration, &[], &[false])
        },
        false,
    );
}

#[test]
fn evaluation_of_former_iteration_is_refused() {
    let mut project = project_with_task();
    let id = project.start_series(new_series(5)).unwrap();
    project.commit_as_person(&Command::AdvanceSeries { task: FIRST_TASK, series: id }).unwrap();
    let refusal = project.judge_series(id, findings_of(1, &[], &[])).unwrap_err().to_string();
    assert_eq!(refusal, format!("{id} has come to iteration 2 while iteration 1 was judged; ask again"));
    project.register_hook(new_stop_hook(StopHook::Promise)).unwrap();
    let refusal = project.judge_series(id, findings_of(2, &[], &[])).unwrap_err().to_string();
    assert_eq!(refusal, format!("{id} has other stop hooks than those that were asked; ask again"));
    let other = project.start_series(new_series(5)).unwrap();
    let refusal = project.judge_series(id, findings_of(2, &[], &[])).unwrap_err().to_string();
    assert_eq!(refusal, format!("{id} is over: T1 continues in {other}"));
    project.run_script("complete T1");
    let refusal = project.commit_as_person(&Command::AdvanceSeries { task: FIRST_TASK, series: other }).unwrap_err();
    assert!(matches!(refusal, Refusal::IllegalMove { state: TaskState::Completed, .. }), "{refusal}");
    project.judge_series(other, findings_of(1, &[], &[])).unwrap_err();
}

#[test]
fn invalid_series_is_refused() {
    let mut project = project_with_task();
    let check = |project: &mut ScriptProject, new: NewIterationSeries, expected: &str| {
        let refusal = project.start_series(new).unwrap_err().to_string();
        assert_eq!(refusal, expected);
    };
    check(&mut project, new_series(0), "maxIterations is 0; give a whole number from 1 to 100");
    check(&mut project, new_series(101), "maxIterations is 101; give a whole number from 1 to 100");
    let of = |promises: &[Promise]| NewIterationSeries { promises: promises.to_vec(), ..new_series(5) };
    check(&mut project, of(&[]), "completionPromises is empty; give at least one of COMPLETE, BLOCKED, ESCALATE");
    check(&mut project, of(&[Promise::Complete; 2]), "completionPromises has COMPLETE twice");
    check(
        &mut project,
        NewIterationSeries { breaker: 21, ..new_series(5) },
        "circuitBreakerThreshold is 21; give a whole number from 1 to 20",
    );
    project.run_script("block T1");
    project.start_series(new_series(5)).unwrap_err();
    let id = {
        project.run_script("unblock T1");
        project.start_series(of(&[Promise::Complete])).unwrap()
    };
    let refusal = project.complete_series(id, Promise::Blocked).unwrap_err().to_string();
    assert_eq!(refusal, format!("{id} was not started with BLOCKED, but with COMPLETE"));
    project.run_script("complete T1");
    project.start_series(new_series(5)).unwrap_err();
    project.register_hook(new_stop_hook(StopHook::Default)).unwrap_err();
}

#[test]
fn hooks_last_until_they_are_cleared_or_the_task_begins_anew() {
    let mut project = project_with_task();
    for _ in 0..20 {
        project.register_hook(new_stop_hook(StopHook::Default)).unwrap();
    }
    assert_eq!(
        project.register_hook(new_stop_hook(StopHook::Default)).unwrap_err().to_string(),
        "T1 has 20 stop hooks; at most 20 are allowed"
    );
    project.simulate_crash();
    assert_eq!(project.find_task("T1").evaluation.hooks.len(), 20);
    project.run_script("fail T1\nreopen T1");
    assert!(project.find_task("T1").evaluation.hooks.is_empty());
}

#[test]
fn checkpoint_requested_by_hook_is_created_only_on_continue() {
    let mut project = project_with_task();
    let registered = project.register_hook(new_stop_hook(StopHook::Default)).unwrap();
    let id = project.start_series(new_series(10)).unwrap();
    let asks = |action, data: Value| EvaluationFindings {
        hooks: vec![registered],
        asked: EvaluationPurpose::Hooks,
        decision: Some(HookDecision {
            hook: Some(registered),
            ruling: StopRuling { checkpoint_data: Some(data), ..StopRuling::new(action, "halfway") },
        }),
        ..findings_of(1, &[], &[])
    };
    let known = json!({"executionPhase": "midpoint", "agentContext": {"milestone": "halfway"}});
    let records = project.judge_series(id, asks(RuleAction::Continue, known)).unwrap();
    assert_eq!(event_types(&records), [EventType::HookEvaluated, EventType::CheckpointCreated]);
    let created = project.event_data(EventType::CheckpointCreated);
    assert_eq!(created["executionPhase"], "midpoint");
    assert_eq!(
        (&created["executionStep"], &created["trigger"], &created["series"]),
        (&json!(1), &json!("hook"), &json!(id))
    );
    project.judge_series(id, asks(RuleAction::Continue, json!({"anything": [1]}))).unwrap();
    assert_eq!(project.event_data(EventType::CheckpointCreated)["agentContext"], json!({"anything": [1]}));
    let records = project.judge_series(id, asks(RuleAction::Complete, json!({}))).unwrap();
    assert_eq!(event_types(&records), [EventType::HookEvaluated], "what does not go on needs no place to go on from");
}

#[test]
fn five_checkpoints_are_kept_and_the_last_of_the_series() {
    let mut project = project_with_task();
    let make = |project: &mut ScriptProject, trigger| {
        project
            .commit_as_person(&Command::CreateCheckpoint {
                task: FIRST_TASK,
                new: NewCheckpoint::with_trigger(trigger),
            })
            .unwrap();
    };
    let kept = |project: &ScriptProject| -> Vec<u32> {
        project.find_task("T1").evaluation.checkpoints.iter().map(|checkpoint| checkpoint.sequence).collect()
    };
    (0..7).for_each(|_| make(&mut project, CheckpointTrigger::Manual));
    assert_eq!(kept(&project), [3, 4, 5, 6, 7]);
    let now = project.find_task("T1").updated_at;
    let at_hand = |project: &ScriptProject, days: i64| {
        project.find_task("T1").evaluation.live_checkpoints_at(now.add_millis(days * 86_400_000)).count()
    };
    make(&mut project, CheckpointTrigger::Error);
    assert_eq!([0, 2, 6, 8].map(|days| at_hand(&project, days)), [5, 4, 4, 0]);
    project.simulate_crash();
}

#[test]
fn drafts_are_cut_and_say_so() {
    let mut project = project_with_task();
    let draft = "ä".repeat(30 * 1024);
    let new = NewCheckpoint { draft_content: Some(draft), ..NewCheckpoint::with_trigger(CheckpointTrigger::Manual) };
    project.commit_as_person(&Command::CreateCheckpoint { task: FIRST_TASK, new }).unwrap();
    let created = project.event_data(EventType::CheckpointCreated);
    assert_eq!(created["draftContent"].as_str().map(str::len), Some(50 * 1024));
    assert_eq!(created["draftBytes"], json!(60 * 1024));
    for expires_in in [Duration::ZERO, Duration::from_hours(366 * 24)] {
        let new =
            NewCheckpoint { expires_in: Some(expires_in), ..NewCheckpoint::with_trigger(CheckpointTrigger::Manual) };
        let refusal =
            project.commit_as_person(&Command::CreateCheckpoint { task: FIRST_TASK, new }).unwrap_err().to_string();
        assert!(refusal.starts_with("expiresIn is "), "{refusal}");
    }
    let new = NewCheckpoint {
        expires_in: Some(Duration::from_mins(5)),
        ..NewCheckpoint::with_trigger(CheckpointTrigger::Manual)
    };
    project.commit_as_person(&Command::CreateCheckpoint { task: FIRST_TASK, new }).unwrap();
    let last = project.find_task("T1").evaluation.checkpoints.pop().unwrap();
    let made_at: Timestamp = project.find_task("T1").updated_at;
    assert_eq!(last.expires_at, made_at.add_millis(300_000));
}

/// Returns a project in which a session with one configured stop hook works on T1.
fn project_in_session() -> ScriptProject {
    ScriptProject::after(loop_rules(&["check"]), "add one\nsession a task=T1")
}

#[test]
fn registered_hooks_run_first_when_turn_ends() {
    let owed = |project: &mut ScriptProject| -> Vec<String> {
        project.run_script("turn-done a.1 says=COMPLETE");
        project
            .pending_effects()
            .into_iter()
            .filter_map(|effect| match effect.kind {
                EffectKind::Hook(owed) => Some(owed.hook),
                EffectKind::Turn { .. } => None,
            })
            .collect()
    };
    assert_eq!(owed(&mut project_in_session()), ["check"]);
    let mut project = project_in_session();
    project.register_hook(new_stop_hook(StopHook::Default)).unwrap();
    assert_eq!(owed(&mut project), ["registered", "check"]);
    let answered = project.run_script("hook registered out=continue tells=more\nhook check");
    assert!(answered.iter().any(|line| line.contains("gate_decided Continue")), "{answered:?}");
    let mut project = project_in_session();
    project.register_hook(NewStopHook { enabled: false, ..new_stop_hook(StopHook::Default) }).unwrap();
    assert_eq!(owed(&mut project), ["check"]);
}

#[test]
fn agent_in_session_starts_series_and_claims_its_completion() {
    let mut project = project_in_session();
    let refusal = project.start_series(new_series(3)).unwrap_err();
    assert!(matches!(refusal, Refusal::Held { .. }), "a person does not take over: {refusal}");
    let run = Some(run_id("a.1"));
    let start = Command::StartSeries { task: FIRST_TASK, new: new_series(3) };
    project.commit_as(Authority::Person, run.clone(), &start).unwrap();
    let id = project.find_task("T1").evaluation.series.unwrap().id;
    let complete = Command::CompleteSeries { task: FIRST_TASK, series: id, promise: Promise::Complete };
    let records = project.commit_as(Authority::Person, run.clone(), &complete).unwrap();
    assert_eq!(event_types(&records), [EventType::SeriesEnded, EventType::CompletionClaimed], "the session judges");
    assert_eq!(project.find_task("T1").state, TaskState::Active);
    project.commit_as(Authority::Person, run.clone(), &start).unwrap();
    let id = project.find_task("T1").evaluation.series.unwrap().id;
    let blocked = Command::CompleteSeries { task: FIRST_TASK, series: id, promise: Promise::Blocked };
    let refusal = project.commit_as(Authority::Person, run, &blocked).unwrap_err();
    assert!(matches!(refusal, Refusal::Held { .. }), "{refusal}");
    assert!(project.find_task("T1").evaluation.series.is_some(), "what is refused has changed nothing");
}

#[test]
fn agent_clears_only_stop_hooks_it_registered_itself() {
    let mut project = project_in_session();
    let others = project.register_hook(new_stop_hook(StopHook::Validation)).unwrap();
    let run = Some(run_id("a.1"));
    let own = Command::RegisterHook { task: FIRST_TASK, new: new_stop_hook(StopHook::Promise) };
    project.commit_as(Authority::Person, run.clone(), &own).unwrap();
    let hook_states = |project: &ScriptProject| -> Vec<(HookId, bool)> {
        project.find_task("T1").evaluation.hooks.iter().map(|hook| (hook.id, hook.inside)).collect()
    };
    assert_eq!(hook_states(&project).iter().map(|(_, inside)| *inside).collect::<Vec<_>>(), [false, true]);
    let clear = Command::ClearHooks { task: FIRST_TASK, hook: None };
    assert_eq!(project.commit_as(Authority::Person, run.clone(), &clear).unwrap().len(), 1);
    assert_eq!(hook_states(&project), [(others, false)]);
    assert!(project.commit_as(Authority::Person, run, &clear).unwrap().is_empty());
    project.simulate_crash();
    project.commit_as_person(&clear).unwrap();
    assert!(hook_states(&project).is_empty(), "a person takes away what they like");
}

#[test]
fn hook_of_session_takes_no_stop_hook_away_that_others_registered() {
    let mut project = ScriptProject::after(loop_rules(&["check"]), "add one\nsession a task=T1");
    let others = project.register_hook(new_stop_hook(StopHook::Validation)).unwrap();
    project.run_script("turn-done a.1\nhook registered\nbegin check");
    let via = project.pending_effects().into_iter().find(|effect| effect.attempts > 0).map(|effect| effect.id);
    let clear = Command::ClearHooks { task: FIRST_TASK, hook: None };
    assert!(project.commit_via_hook(via, Authority::Person, None, &clear).unwrap().is_empty());
    let refusal = project
        .commit_via_hook(
            via,
            Authority::Person,
            None,
            &Command::SwitchHook { task: FIRST_TASK, hook: others, enabled: false },
        )
        .unwrap_err();
    assert!(matches!(refusal, Refusal::NoPerson { .. }), "{refusal}");
}

#[test]
fn rules_of_other_starter_hold_until_work_is_accepted() {
    let mut project = ScriptProject::after(loop_rules(&["check"]), "add one");
    let rules = json!([{"type": "file_existence", "name": "docs", "config": {"paths": ["README.md"]}}]);
    let rules = serde_json::from_value(rules).unwrap();
    let id = project.start_series(NewIterationSeries { rules, ..new_series(9) }).unwrap();
    project.run_script("release T1\nsession a task=T1");
    let run = Some(run_id("a.1"));
    let start = Command::StartSeries { task: FIRST_TASK, new: new_series(1) };
    let refusal = project.commit_as(Authority::Person, run.clone(), &start).unwrap_err().to_string();
    assert!(refusal.starts_with(&format!("{id} was started for T1 by another")), "{refusal}");
    let complete = Command::CompleteSeries { task: FIRST_TASK, series: id, promise: Promise::Complete };
    let records = project.commit_as(Authority::Person, run, &complete).unwrap();
    assert_eq!(event_types(&records), [EventType::CompletionClaimed]);
    assert!(project.find_task("T1").evaluation.series.is_some());
    assert!(project.find_task("T1").evaluation.has_turn_judge());
}

#[test]
fn agent_of_the_loop_neither_advances_nor_replaces_a_series_of_others() {
    let mut project = ScriptProject::after(loop_rules(&["check"]), "add one");
    let id = project.start_series(new_series(9)).unwrap();
    project.run_script("release T1\nsession a task=T1");
    let run = Some(run_id("a.1"));
    let advance = Command::AdvanceSeries { task: FIRST_TASK, series: id };
    let refusal = project.commit_as(Authority::Person, run.clone(), &advance).unwrap_err().to_string();
    assert_eq!(refusal, format!("{id} advances with the loop that works on T1: end your turn, and it is judged"));
    let start = Command::StartSeries { task: FIRST_TASK, new: new_series(50) };
    project.commit_as(Authority::Person, run, &start).unwrap_err();
    project.commit_as_person(&advance).unwrap();
}

#[test]
fn series_of_blocked_task_does_not_advance() {
    let mut project = project_with_task();
    let id = project.start_series(new_series(5)).unwrap();
    project.run_script("block T1");
    let refusal =
        project.commit_as_person(&Command::AdvanceSeries { task: FIRST_TASK, series: id }).unwrap_err().to_string();
    assert_eq!(refusal, format!("{id} waits for a person: T1 is blocked"));
}

#[test]
fn gate_ruling_is_recorded_with_session_and_iteration() {
    let mut project = project_in_session();
    let id = project.register_hook(new_stop_hook(StopHook::Default)).unwrap();
    let ruling = StopRuling {
        checkpoint_data: Some(json!({"executionPhase": "midpoint"})),
        ..StopRuling::new(RuleAction::Continue, "not yet")
    };
    let judging =
        EvaluationFindings { decision: Some(HookDecision { hook: Some(id), ruling }), ..gate_findings(1, true) };
    let records =
        project.commit_as_person(&Command::RecordRuling { task: FIRST_TASK, judging: Box::new(judging) }).unwrap();
    assert_eq!(event_types(&records), [EventType::HookEvaluated, EventType::CheckpointCreated]);
    let place = (records[0].envelope.session.as_ref().map(|name| name.as_str()), records[0].envelope.iteration);
    assert_eq!(place, (Some("a"), Some(1)));
}

/// Without a session, only the holder of a task may start a series on it.
#[test]
fn series_is_refused_on_task_held_by_other_worker() {
    let mut project = ScriptProject::after(default_rules(), "add one\nclaim T1 by=w9 for=60s");
    assert!(matches!(project.start_series(new_series(3)), Err(Refusal::Held { .. })));
    let own = Command::StartSeries { task: FIRST_TASK, new: new_series(3) };
    project.commit_as(Authority::Holder(Epoch(1)), None, &own).unwrap();
}

/// Returns the findings at a gate in an iteration of the series: one rule, which passes or fails.
pub(super) fn gate_findings(iteration: u32, passed: bool) -> EvaluationFindings {
    EvaluationFindings {
        asked: EvaluationPurpose::Gate,
        iteration,
        hooks: vec![],
        results: vec![RuleResult {
            rule_name: "tests".to_owned(),
            passed,
            message: format!("run {iteration}"),
            broken: false,
        }],
        promises: vec![],
        decision: None,
        agent_output: Some(format!("said in {iteration}")),
        files_modified: vec![],
    }
}
