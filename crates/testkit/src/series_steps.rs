//! Commands of self-driving agents in random histories: stop hooks, series of iterations, checkpoints.

use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Map, Value, json};
use windlass_engine::validation::RuleResult;
use windlass_engine::{
    CheckpointTrigger, Command, EvaluationFindings, EvaluationPurpose, HookDecision, HookId, NewCheckpoint,
    NewIterationSeries, NewStopHook, Promise, RuleAction, SeriesId, StateView, StopHook, StopRuling, TaskId,
    ViewResult,
};

/// A command about a task's series, mostly the current one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SeriesStep {
    Register {
        enabled: bool,
    },
    Clear,
    /// Switches the first stop hook of the task.
    Switch {
        enabled: bool,
    },
    Start(NewIterationSeries),
    Judge(SeriesFinding),
    Advance,
    Complete(Promise),
    Checkpoint(CheckpointTrigger),
}

/// The result of an evaluated iteration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesFinding {
    asked: EvaluationPurpose,
    promises: Vec<Promise>,
    passed: bool,
    /// The ruling of the first enabled hook, if there is one.
    action: RuleAction,
    checkpoint_data: Option<Value>,
}

impl SeriesStep {
    pub fn to_command(&self, view: &dyn StateView, task: TaskId) -> ViewResult<Command> {
        let evaluation = view.find_task(task)?.map(|task| task.evaluation).unwrap_or_default();
        let (series, iteration) =
            evaluation.series.as_ref().map_or((SeriesId(1), 1), |series| (series.id, series.iteration));
        Ok(match self {
            Self::Register { enabled } => {
                let new = NewStopHook { hook: StopHook::Default, enabled: *enabled, metadata: Map::new() };
                Command::RegisterHook { task, new }
            }
            Self::Clear => Command::ClearHooks { task, hook: None },
            Self::Switch { enabled } => {
                let hook = evaluation.hooks.first().map_or(HookId(1), |hook| hook.id);
                Command::SwitchHook { task, hook, enabled: *enabled }
            }
            Self::Start(new) => Command::StartSeries { task, new: new.clone() },
            Self::Judge(finding) => {
                let hooks = evaluation.hooks.iter().map(|hook| hook.id).collect();
                let first = evaluation.hooks.iter().find(|hook| hook.enabled).map(|hook| hook.id);
                let ruling = StopRuling {
                    checkpoint_data: finding.checkpoint_data.clone(),
                    ..StopRuling::new(finding.action, "looked")
                };
                let judging = EvaluationFindings {
                    asked: finding.asked,
                    iteration,
                    hooks,
                    results: vec![RuleResult {
                        rule_name: "tests".to_owned(),
                        passed: finding.passed,
                        message: "ran".to_owned(),
                        broken: false,
                    }],
                    promises: finding.promises.clone(),
                    decision: first.map(|hook| HookDecision { hook: Some(hook), ruling }),
                    agent_output: None,
                    files_modified: vec![],
                };
                Command::JudgeSeries { task, series, judging: Box::new(judging) }
            }
            Self::Advance => Command::AdvanceSeries { task, series },
            Self::Complete(promise) => Command::CompleteSeries { task, series, promise: *promise },
            Self::Checkpoint(trigger) => Command::CreateCheckpoint { task, new: NewCheckpoint::with_trigger(*trigger) },
        })
    }
}

pub fn arbitrary_series_step() -> impl Strategy<Value = SeriesStep> {
    let promises = || subsequence(Promise::ALL.to_vec(), 0..=3);
    let series = (prop_oneof![5 => 1..4_u32, 1 => Just(0)], promises(), 1..4_u32, any::<bool>()).prop_map(
        |(max_iterations, promises, breaker, strict)| NewIterationSeries {
            max_iterations,
            promises,
            rules: vec![],
            breaker,
            strict,
        },
    );
    let action = select(vec![RuleAction::Complete, RuleAction::Continue, RuleAction::Continue, RuleAction::Escalate]);
    let data = option::weighted(0.3, Just(json!({"executionPhase": "midpoint"})));
    let asked = select(vec![EvaluationPurpose::Validation, EvaluationPurpose::Hooks]);
    let finding = (asked, promises(), any::<bool>(), action, data).prop_map(
        |(asked, promises, passed, action, checkpoint_data)| SeriesFinding {
            asked,
            promises,
            passed,
            action,
            checkpoint_data,
        },
    );
    prop_oneof![
        2 => any::<bool>().prop_map(|enabled| SeriesStep::Register { enabled }),
        1 => Just(SeriesStep::Clear),
        1 => any::<bool>().prop_map(|enabled| SeriesStep::Switch { enabled }),
        4 => series.prop_map(SeriesStep::Start),
        4 => finding.prop_map(SeriesStep::Judge),
        3 => Just(SeriesStep::Advance),
        3 => select(Promise::ALL.to_vec()).prop_map(SeriesStep::Complete),
        1 => select(vec![CheckpointTrigger::Manual, CheckpointTrigger::Error]).prop_map(SeriesStep::Checkpoint),
    ]
}
