//! Agents that run their own iterations: their rights, the consequences, and the state after a restart.

use core::time::Duration;

use serde_json::{Map, Value, json};

use super::script::{Script, default_rules, run_id};
use super::session_loop::hooks;
use crate::command::refusal::Refusal;
use crate::command::{Authority, Command};
use crate::effects::outbox::EffectKind;
use crate::evaluation::ruling::RuleAction;
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

pub(super) const TASK: TaskId = TaskId(1);

pub(super) fn series(max_iterations: u32) -> NewIterationSeries {
    let promises = vec![Promise::Complete, Promise::Blocked];
    NewIterationSeries { max_iterations, promises, rules: vec![], breaker: 20, strict: false }
}

fn judging(iteration: u32, promises: &[Promise], results: &[bool]) -> EvaluationFindings {
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

fn hook(hook: StopHook) -> NewStopHook {
    NewStopHook { hook, enabled: true, metadata: Map::from_iter([("by".to_owned(), json!("ada"))]) }
}

impl Script {
    pub(super) fn start_series(&mut self, new: NewIterationSeries) -> Result<SeriesId, Refusal> {
        self.ask(&Command::StartSeries { task: TASK, new })?;
        Ok(self.task("T1").drive.series.expect("it has been started").id)
    }

    fn register(&mut self, new: NewStopHook) -> Result<HookId, Refusal> {
        let records = self.ask(&Command::RegisterHook { task: TASK, new })?;
        Ok(HookId(records[0].seq.0))
    }

    fn judge(&mut self, series: SeriesId, judging: EvaluationFindings) -> Result<Vec<EventRecord>, Refusal> {
        self.ask(&Command::JudgeSeries { task: TASK, series, judging: Box::new(judging) })
    }

    /// Judges an iteration and advances to the next one. Returns the signal and the guard behind it.
    fn iterate(&mut self, series: SeriesId, judging: EvaluationFindings) -> (SeriesSignal, Option<SeriesGuard>) {
        let told = told(&self.judge(series, judging).unwrap());
        drop(self.ask(&Command::AdvanceSeries { task: TASK, series }));
        (told.signal, told.guard)
    }

    fn complete_series(&mut self, series: SeriesId, promise: Promise) -> Result<Vec<EventRecord>, Refusal> {
        self.ask(&Command::CompleteSeries { task: TASK, series, promise })
    }
}

fn told(records: &[EventRecord]) -> payload::ValidationFinished {
    let found = records.iter().find_map(|record| match &record.envelope.event {
        Event::ValidationFinished(finished) => Some(finished.clone()),
        _ => None,
    });
    found.expect("it was judged")
}

fn kinds(records: &[EventRecord]) -> Vec<EventType> {
    records.iter().map(EventRecord::kind).collect()
}

fn one_task() -> Script {
    Script::after(default_rules(), "add one")
}

#[test]
fn series_runs_from_start_to_completion() {
    let mut project = one_task();
    let registered = project.register(hook(StopHook::Default)).unwrap();
    let id = project.start_series(series(10)).unwrap();
    assert_eq!(project.task("T1").state, TaskState::Active, "starting a series starts its task");
    project.crash();
    let ruling = StopRuling::new(RuleAction::Continue, "not yet");
    let decision = Some(HookDecision { hook: Some(registered), ruling });
    let judging =
        EvaluationFindings { hooks: vec![registered], decision, ..judging(1, &[Promise::Complete], &[false]) };
    let records = project.judge(id, judging).unwrap();
    assert_eq!(kinds(&records), [EventType::HookEvaluated, EventType::ValidationFinished]);
    let finished = told(&records);
    assert_eq!((finished.signal, finished.hook), (SeriesSignal::Continue, Some(registered)), "hooks outweigh promises");
    assert_eq!(finished.feedback, ["rule 0: as found"]);
    project.ask(&Command::AdvanceSeries { task: TASK, series: id }).unwrap();
    project.crash();
    let live = project.task("T1").drive.series.unwrap();
    assert_eq!((live.iteration, live.remaining_iterations(), live.judged), (2, 8, None));
    let records = project.complete_series(id, Promise::Complete).unwrap();
    assert_eq!(&kinds(&records)[..2], [EventType::SeriesEnded, EventType::TaskCompleted]);
    let task = project.task("T1");
    assert_eq!((task.state, task.drive.series, task.drive.hooks.len()), (TaskState::Completed, None, 1));
    assert_eq!(
        kinds(&project.ask(&Command::ClearHooks { task: TASK, hook: None }).unwrap()),
        [EventType::HooksCleared]
    );
    assert!(project.ask(&Command::ClearHooks { task: TASK, hook: None }).unwrap().is_empty());
    project.crash();
}

#[test]
fn one_registered_hook_is_switched_and_removed_alone() {
    let mut project = one_task();
    let (one, two) = (hook(StopHook::Default), hook(StopHook::Promise));
    let (one, two) = (project.register(one).unwrap(), project.register(two).unwrap());
    let switch = |enabled| Command::SwitchHook { task: TASK, hook: one, enabled };
    assert_eq!(kinds(&project.ask(&switch(false)).unwrap()), [EventType::HookSwitched]);
    assert!(project.ask(&switch(false)).unwrap().is_empty(), "it is off already");
    project.crash();
    let state = |project: &Script| {
        project.task("T1").drive.hooks.iter().map(|hook| (hook.id, hook.enabled)).collect::<Vec<_>>()
    };
    assert_eq!(state(&project), [(one, false), (two, true)]);
    let remove = Command::ClearHooks { task: TASK, hook: Some(two) };
    project.ask(&remove).unwrap();
    assert_eq!(state(&project), [(one, false)]);
    assert!(project.ask(&remove).unwrap_err().to_string().contains("is not registered for T1"));
    project.crash();
}

#[test]
fn being_blocked_is_not_being_complete() {
    for (promise, reason) in
        [(Promise::Blocked, "the agent says that it is blocked"), (Promise::Escalate, "the agent asks for a person")]
    {
        let mut project = one_task();
        let new = NewIterationSeries { promises: vec![promise], ..series(3) };
        let id = project.start_series(new).unwrap();
        project.complete_series(id, promise).unwrap();
        let task = project.task("T1");
        assert_eq!((task.state, task.blocked.unwrap().reason.as_str()), (TaskState::Blocked, reason));
        assert_eq!(task.drive.series, None);
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
        let mut project = one_task();
        let id = project.start_series(series(3)).unwrap();
        assert_eq!(project.iterate(id, judging(1, promises, &[true])), (signal, None), "{promises:?}");
    }
    let mut project = one_task();
    let id = project.start_series(series(3)).unwrap();
    let disabled = Some(HookDecision { hook: None, ruling: StopRuling::new(RuleAction::Continue, "disabled") });
    let judging = EvaluationFindings { decision: disabled, ..judging(1, &[Complete], &[]) };
    assert_eq!(told(&project.judge(id, judging).unwrap()).signal, SeriesSignal::Complete, "no hook has decided");
    assert_eq!(project.task("T1").state, TaskState::Active, "judging moves no task");
}

#[test]
fn strict_series_completes_only_when_rules_pass() {
    let mut project = one_task();
    let id = project.start_series(NewIterationSeries { strict: true, ..series(5) }).unwrap();
    let refusal = project.complete_series(id, Promise::Complete).unwrap_err().to_string();
    assert_eq!(refusal, format!("{id} is strict: it is completed after iteration_validate has answered COMPLETE"));
    let finished = told(&project.judge(id, judging(1, &[Promise::Complete], &[true, false])).unwrap());
    assert_eq!((finished.signal, finished.passed), (SeriesSignal::Continue, false));
    assert_eq!(finished.feedback.len(), 2);
    project.complete_series(id, Promise::Complete).unwrap_err();
    project.judge(id, judging(1, &[Promise::Complete], &[true, true])).unwrap();
    project.complete_series(id, Promise::Complete).unwrap();
    // A promise that the agent is blocked is always accepted.
    let mut project = one_task();
    let id = project.start_series(NewIterationSeries { strict: true, ..series(5) }).unwrap();
    project.complete_series(id, Promise::Blocked).unwrap();
}

#[test]
fn the_maximum_is_named() {
    let mut project = one_task();
    let id = project.start_series(series(2)).unwrap();
    assert_eq!(project.iterate(id, judging(1, &[], &[])), (SeriesSignal::Continue, None));
    let finished = told(&project.judge(id, judging(2, &[], &[])).unwrap());
    assert_eq!((finished.signal, finished.guard), (SeriesSignal::Escalate, Some(SeriesGuard::MaxIterations)));
    assert_eq!(finished.feedback, ["maximum: this was iteration 2 of 2"]);
    let refusal = project.ask(&Command::AdvanceSeries { task: TASK, series: id }).unwrap_err().to_string();
    assert!(refusal.starts_with(&format!("{id} is at its maximum of 2 iterations: ")), "{refusal}");
    let complete = told(&project.judge(id, judging(2, &[Promise::Complete], &[])).unwrap());
    assert_eq!((complete.signal, complete.guard), (SeriesSignal::Complete, None), "only what would go on is guarded");
}

#[test]
fn circuit_breaker_counts_iterations_not_evaluations() {
    let mut project = one_task();
    let id = project.start_series(NewIterationSeries { breaker: 2, ..series(20) }).unwrap();
    for _ in 0..3 {
        project.judge(id, judging(1, &[], &[false])).unwrap();
    }
    assert_eq!(project.iterate(id, judging(1, &[], &[false])), (SeriesSignal::Continue, None));
    project.crash();
    assert_eq!(
        project.iterate(id, judging(2, &[], &[false])),
        (SeriesSignal::Escalate, Some(SeriesGuard::CircuitBreaker))
    );
    assert_eq!(project.iterate(id, judging(3, &[], &[true])), (SeriesSignal::Continue, None), "a success begins anew");
    assert_eq!(project.iterate(id, judging(4, &[], &[false])), (SeriesSignal::Continue, None));
}

#[test]
fn the_same_work_with_the_same_failures_is_thrashing() {
    let check = |each: fn(u32) -> EvaluationFindings, trips: bool| {
        let mut project = one_task();
        let id = project.start_series(series(20)).unwrap();
        let told: Vec<_> = (1..=3).map(|iteration| project.iterate(id, each(iteration)).1).collect();
        let last = trips.then_some(SeriesGuard::Thrashing);
        assert_eq!(told, [None, None, last]);
    };
    check(|iteration| judging(iteration, &[], &[false]), true);
    check(|iteration| EvaluationFindings { agent_output: None, ..judging(iteration, &[], &[true]) }, false);
    check(
        |iteration| EvaluationFindings {
            agent_output: Some("x".repeat(iteration as usize)),
            ..judging(iteration, &[], &[false])
        },
        false,
    );
    check(
        |iteration| EvaluationFindings {
            files_modified: vec!["y".repeat(iteration as usize)],
            ..judging(iteration, &[], &[false])
        },
        false,
    );
}

#[test]
fn evaluation_of_former_iteration_is_refused() {
    let mut project = one_task();
    let id = project.start_series(series(5)).unwrap();
    project.ask(&Command::AdvanceSeries { task: TASK, series: id }).unwrap();
    let refusal = project.judge(id, judging(1, &[], &[])).unwrap_err().to_string();
    assert_eq!(refusal, format!("{id} has come to iteration 2 while iteration 1 was judged; ask again"));
    project.register(hook(StopHook::Promise)).unwrap();
    let refusal = project.judge(id, judging(2, &[], &[])).unwrap_err().to_string();
    assert_eq!(refusal, format!("{id} has other stop hooks than those that were asked; ask again"));
    let other = project.start_series(series(5)).unwrap();
    let refusal = project.judge(id, judging(2, &[], &[])).unwrap_err().to_string();
    assert_eq!(refusal, format!("{id} is over: T1 continues in {other}"));
    project.run("complete T1");
    let refusal = project.ask(&Command::AdvanceSeries { task: TASK, series: other }).unwrap_err();
    assert!(matches!(refusal, Refusal::IllegalMove { state: TaskState::Completed, .. }), "{refusal}");
    project.judge(other, judging(1, &[], &[])).unwrap_err();
}

#[test]
fn invalid_series_is_refused() {
    let mut project = one_task();
    let check = |project: &mut Script, new: NewIterationSeries, expected: &str| {
        let refusal = project.start_series(new).unwrap_err().to_string();
        assert_eq!(refusal, expected);
    };
    check(&mut project, series(0), "maxIterations is 0; give a whole number from 1 to 100");
    check(&mut project, series(101), "maxIterations is 101; give a whole number from 1 to 100");
    let of = |promises: &[Promise]| NewIterationSeries { promises: promises.to_vec(), ..series(5) };
    check(&mut project, of(&[]), "completionPromises is empty; give at least one of COMPLETE, BLOCKED, ESCALATE");
    check(&mut project, of(&[Promise::Complete; 2]), "completionPromises has COMPLETE twice");
    check(
        &mut project,
        NewIterationSeries { breaker: 21, ..series(5) },
        "circuitBreakerThreshold is 21; give a whole number from 1 to 20",
    );
    project.run("block T1");
    project.start_series(series(5)).unwrap_err();
    let id = {
        project.run("unblock T1");
        project.start_series(of(&[Promise::Complete])).unwrap()
    };
    let refusal = project.complete_series(id, Promise::Blocked).unwrap_err().to_string();
    assert_eq!(refusal, format!("{id} was not started with BLOCKED, but with COMPLETE"));
    project.run("complete T1");
    project.start_series(series(5)).unwrap_err();
    project.register(hook(StopHook::Default)).unwrap_err();
}

#[test]
fn hooks_last_until_they_are_cleared_or_the_task_begins_anew() {
    let mut project = one_task();
    for _ in 0..20 {
        project.register(hook(StopHook::Default)).unwrap();
    }
    assert_eq!(
        project.register(hook(StopHook::Default)).unwrap_err().to_string(),
        "T1 has 20 stop hooks; at most 20 are allowed"
    );
    project.crash();
    assert_eq!(project.task("T1").drive.hooks.len(), 20);
    project.run("fail T1\nreopen T1");
    assert!(project.task("T1").drive.hooks.is_empty());
}

#[test]
fn a_checkpoint_that_a_hook_asks_for() {
    let mut project = one_task();
    let registered = project.register(hook(StopHook::Default)).unwrap();
    let id = project.start_series(series(10)).unwrap();
    let asks = |action, data: Value| EvaluationFindings {
        hooks: vec![registered],
        asked: EvaluationPurpose::Hooks,
        decision: Some(HookDecision {
            hook: Some(registered),
            ruling: StopRuling { checkpoint_data: Some(data), ..StopRuling::new(action, "halfway") },
        }),
        ..judging(1, &[], &[])
    };
    let known = json!({"executionPhase": "midpoint", "agentContext": {"milestone": "halfway"}});
    let records = project.judge(id, asks(RuleAction::Continue, known)).unwrap();
    assert_eq!(kinds(&records), [EventType::HookEvaluated, EventType::CheckpointCreated]);
    let made = project.data(EventType::CheckpointCreated);
    assert_eq!(made["executionPhase"], "midpoint");
    assert_eq!((&made["executionStep"], &made["trigger"], &made["series"]), (&json!(1), &json!("hook"), &json!(id)));
    project.judge(id, asks(RuleAction::Continue, json!({"anything": [1]}))).unwrap();
    assert_eq!(project.data(EventType::CheckpointCreated)["agentContext"], json!({"anything": [1]}));
    let records = project.judge(id, asks(RuleAction::Complete, json!({}))).unwrap();
    assert_eq!(kinds(&records), [EventType::HookEvaluated], "what does not go on needs no place to go on from");
}

#[test]
fn five_checkpoints_are_kept_and_the_last_of_the_series() {
    let mut project = one_task();
    let make = |project: &mut Script, trigger| {
        project.ask(&Command::CreateCheckpoint { task: TASK, new: NewCheckpoint::with_trigger(trigger) }).unwrap();
    };
    let kept = |project: &Script| -> Vec<u32> {
        project.task("T1").drive.checkpoints.iter().map(|checkpoint| checkpoint.sequence).collect()
    };
    (0..7).for_each(|_| make(&mut project, CheckpointTrigger::Manual));
    assert_eq!(kept(&project), [3, 4, 5, 6, 7]);
    let now = project.task("T1").updated_at;
    let at_hand = |project: &Script, days: i64| {
        project.task("T1").drive.live_checkpoints_at(now.add_millis(days * 86_400_000)).count()
    };
    make(&mut project, CheckpointTrigger::Error);
    assert_eq!([0, 2, 6, 8].map(|days| at_hand(&project, days)), [5, 4, 4, 0]);
    project.crash();
}

#[test]
fn drafts_are_cut_and_say_so() {
    let mut project = one_task();
    let draft = "ä".repeat(30 * 1024);
    let new = NewCheckpoint { draft_content: Some(draft), ..NewCheckpoint::with_trigger(CheckpointTrigger::Manual) };
    project.ask(&Command::CreateCheckpoint { task: TASK, new }).unwrap();
    let made = project.data(EventType::CheckpointCreated);
    assert_eq!(made["draftContent"].as_str().map(str::len), Some(50 * 1024));
    assert_eq!(made["draftBytes"], json!(60 * 1024));
    for expires_in in [Duration::ZERO, Duration::from_hours(366 * 24)] {
        let new =
            NewCheckpoint { expires_in: Some(expires_in), ..NewCheckpoint::with_trigger(CheckpointTrigger::Manual) };
        let refusal = project.ask(&Command::CreateCheckpoint { task: TASK, new }).unwrap_err().to_string();
        assert!(refusal.starts_with("expiresIn is "), "{refusal}");
    }
    let new = NewCheckpoint {
        expires_in: Some(Duration::from_mins(5)),
        ..NewCheckpoint::with_trigger(CheckpointTrigger::Manual)
    };
    project.ask(&Command::CreateCheckpoint { task: TASK, new }).unwrap();
    let last = project.task("T1").drive.checkpoints.pop().unwrap();
    let made_at: Timestamp = project.task("T1").updated_at;
    assert_eq!(last.expires_at, made_at.add_millis(300_000));
}

/// Returns a project in which a session with one configured stop hook works on T1.
fn in_a_session() -> Script {
    Script::after(hooks(&["check"]), "add one\nsession a task=T1")
}

#[test]
fn registered_hooks_run_first_when_turn_ends() {
    let owed = |project: &mut Script| -> Vec<String> {
        project.run("turn-done a.1 says=COMPLETE");
        project
            .effects()
            .into_iter()
            .filter_map(|effect| match effect.kind {
                EffectKind::Hook(owed) => Some(owed.hook),
                EffectKind::Turn { .. } => None,
            })
            .collect()
    };
    assert_eq!(owed(&mut in_a_session()), ["check"]);
    let mut project = in_a_session();
    project.register(hook(StopHook::Default)).unwrap();
    assert_eq!(owed(&mut project), ["registered", "check"]);
    let answered = project.run("hook registered out=continue tells=more\nhook check");
    assert!(answered.iter().any(|line| line.contains("gate_decided Continue")), "{answered:?}");
    let mut project = in_a_session();
    project.register(NewStopHook { enabled: false, ..hook(StopHook::Default) }).unwrap();
    assert_eq!(owed(&mut project), ["check"]);
}

#[test]
fn an_agent_in_a_session_sets_out_on_a_series_and_claims() {
    let mut project = in_a_session();
    let refusal = project.start_series(series(3)).unwrap_err();
    assert!(matches!(refusal, Refusal::Held { .. }), "a person does not take over: {refusal}");
    let run = Some(run_id("a.1"));
    let start = Command::StartSeries { task: TASK, new: series(3) };
    project.give(Authority::Person, run.clone(), &start).unwrap();
    let id = project.task("T1").drive.series.unwrap().id;
    let complete = Command::CompleteSeries { task: TASK, series: id, promise: Promise::Complete };
    let records = project.give(Authority::Person, run.clone(), &complete).unwrap();
    assert_eq!(kinds(&records), [EventType::SeriesEnded, EventType::CompletionClaimed], "the session judges");
    assert_eq!(project.task("T1").state, TaskState::Active);
    project.give(Authority::Person, run.clone(), &start).unwrap();
    let id = project.task("T1").drive.series.unwrap().id;
    let blocked = Command::CompleteSeries { task: TASK, series: id, promise: Promise::Blocked };
    let refusal = project.give(Authority::Person, run, &blocked).unwrap_err();
    assert!(matches!(refusal, Refusal::Held { .. }), "{refusal}");
    assert!(project.task("T1").drive.series.is_some(), "what is refused has changed nothing");
}

#[test]
fn an_agent_adds_to_what_others_registered_and_takes_nothing_of_it_away() {
    let mut project = in_a_session();
    let others = project.register(hook(StopHook::Validation)).unwrap();
    let run = Some(run_id("a.1"));
    let own = Command::RegisterHook { task: TASK, new: hook(StopHook::Promise) };
    project.give(Authority::Person, run.clone(), &own).unwrap();
    let hooks = |project: &Script| -> Vec<(HookId, bool)> {
        project.task("T1").drive.hooks.iter().map(|hook| (hook.id, hook.inside)).collect()
    };
    assert_eq!(hooks(&project).iter().map(|(_, inside)| *inside).collect::<Vec<_>>(), [false, true]);
    let clear = Command::ClearHooks { task: TASK, hook: None };
    assert_eq!(project.give(Authority::Person, run.clone(), &clear).unwrap().len(), 1);
    assert_eq!(hooks(&project), [(others, false)]);
    assert!(project.give(Authority::Person, run, &clear).unwrap().is_empty());
    project.crash();
    project.ask(&clear).unwrap();
    assert!(hooks(&project).is_empty(), "a person takes away what they like");
}

#[test]
fn hook_of_session_takes_no_stop_hook_away_that_others_registered() {
    let mut project = Script::after(hooks(&["check"]), "add one\nsession a task=T1");
    let others = project.register(hook(StopHook::Validation)).unwrap();
    project.run("turn-done a.1\nhook registered\nbegin check");
    let via = project.effects().into_iter().find(|effect| effect.attempts > 0).map(|effect| effect.id);
    let clear = Command::ClearHooks { task: TASK, hook: None };
    assert!(project.give_via(via, Authority::Person, None, &clear).unwrap().is_empty());
    let refusal = project
        .give_via(via, Authority::Person, None, &Command::SwitchHook { task: TASK, hook: others, enabled: false })
        .unwrap_err();
    assert!(matches!(refusal, Refusal::NoPerson { .. }), "{refusal}");
}

#[test]
fn rules_of_other_starter_hold_until_work_is_accepted() {
    let mut project = Script::after(hooks(&["check"]), "add one");
    let rules = json!([{"type": "file_existence", "name": "docs", "config": {"paths": ["README.md"]}}]);
    let rules = serde_json::from_value(rules).unwrap();
    let id = project.start_series(NewIterationSeries { rules, ..series(9) }).unwrap();
    project.run("release T1\nsession a task=T1");
    let run = Some(run_id("a.1"));
    let start = Command::StartSeries { task: TASK, new: series(1) };
    let refusal = project.give(Authority::Person, run.clone(), &start).unwrap_err().to_string();
    assert!(refusal.starts_with(&format!("{id} was started for T1 by another")), "{refusal}");
    let complete = Command::CompleteSeries { task: TASK, series: id, promise: Promise::Complete };
    let records = project.give(Authority::Person, run, &complete).unwrap();
    assert_eq!(kinds(&records), [EventType::CompletionClaimed]);
    assert!(project.task("T1").drive.series.is_some());
    assert!(project.task("T1").drive.has_turn_judge());
}

#[test]
fn agent_of_the_loop_neither_advances_nor_replaces_a_series_of_others() {
    let mut project = Script::after(hooks(&["check"]), "add one");
    let id = project.start_series(series(9)).unwrap();
    project.run("release T1\nsession a task=T1");
    let run = Some(run_id("a.1"));
    let advance = Command::AdvanceSeries { task: TASK, series: id };
    let refusal = project.give(Authority::Person, run.clone(), &advance).unwrap_err().to_string();
    assert_eq!(refusal, format!("{id} advances with the loop that works on T1: end your turn, and it is judged"));
    let start = Command::StartSeries { task: TASK, new: series(50) };
    project.give(Authority::Person, run, &start).unwrap_err();
    project.ask(&advance).unwrap();
}

#[test]
fn series_of_blocked_task_does_not_advance() {
    let mut project = one_task();
    let id = project.start_series(series(5)).unwrap();
    project.run("block T1");
    let refusal = project.ask(&Command::AdvanceSeries { task: TASK, series: id }).unwrap_err().to_string();
    assert_eq!(refusal, format!("{id} waits for a person: T1 is blocked"));
}

#[test]
fn what_is_decided_at_a_gate_is_recorded_with_its_session() {
    let mut project = in_a_session();
    let id = project.register(hook(StopHook::Default)).unwrap();
    let ruling = StopRuling {
        checkpoint_data: Some(json!({"executionPhase": "midpoint"})),
        ..StopRuling::new(RuleAction::Continue, "not yet")
    };
    let judging = EvaluationFindings { decision: Some(HookDecision { hook: Some(id), ruling }), ..at_gate(1, true) };
    let records = project.ask(&Command::RecordRuling { task: TASK, judging: Box::new(judging) }).unwrap();
    assert_eq!(kinds(&records), [EventType::HookEvaluated, EventType::CheckpointCreated]);
    let place = (records[0].envelope.session.as_ref().map(|name| name.as_str()), records[0].envelope.iteration);
    assert_eq!(place, (Some("a"), Some(1)));
}

/// An agent that works by hand is in no session, and neither is another one.
#[test]
fn series_is_refused_on_task_held_by_other_worker() {
    let mut project = Script::after(default_rules(), "add one\nclaim T1 by=w9 for=60s");
    assert!(matches!(project.start_series(series(3)), Err(Refusal::Held { .. })));
    let own = Command::StartSeries { task: TASK, new: series(3) };
    project.give(Authority::Holder(Epoch(1)), None, &own).unwrap();
}

/// Returns the findings at a gate in an iteration of the series: one rule, which passes or fails.
pub(super) fn at_gate(iteration: u32, passed: bool) -> EvaluationFindings {
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
