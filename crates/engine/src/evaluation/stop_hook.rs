//! Stop hooks that are registered for a task: their kinds, and how they decide.
//!
//! | kind | decides |
//! | --- | --- |
//! | `default` | promises first (COMPLETE, ESCALATE, BLOCKED), then the validation results |
//! | `validation` | the validation results alone |
//! | `promise` | the promises alone |
//! | `rules` | the first rule that holds |
//! | `command`, `closure` | code outside the engine |
//!
//! Not here: running commands (`tools`).

use std::fmt::{self, Display};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::checkpoint::NewCheckpoint;
use super::context::AgentContext;
use super::rules::RuleListSource;
use crate::command::limits::{EngineLimits, check_json_value, check_nonblank_text};
use crate::command::refusal::Refusal;
use crate::evaluation::decision_rule::{RuleAction, UndefinedPolicy, evaluate_rules};
use crate::evaluation::validation::RuleResult;
use crate::log::id::HookId;
use crate::session::promise::Promise;

/// The kind of a stop hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "hookType", deny_unknown_fields)]
pub enum StopHook {
    Default,
    Validation,
    Promise,
    /// A program that gets the context on its standard input.
    Command {
        command: String,
    },
    Rules {
        rules: RuleListSource,
    },
    /// Code of a program that uses the library, known to it by this name.
    Closure {
        name: String,
    },
}

impl StopHook {
    pub fn name(&self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Validation => "validation",
            Self::Promise => "promise",
            Self::Command { .. } => "command",
            Self::Rules { .. } => "rules",
            Self::Closure { .. } => "closure",
        }
    }

    /// Returns the hook's decision; `None` if code outside the engine has to decide.
    fn decide_without_program(&self, context: &AgentContext) -> Option<Result<StopRuling, String>> {
        Some(match self {
            Self::Default => {
                Ok(ruling_by_promises(context).or_else(|| ruling_by_validation(context)).unwrap_or_else(|| {
                    StopRuling::new(RuleAction::Continue, "no promise was made, and there are no validation rules")
                }))
            }
            Self::Validation => Ok(ruling_by_validation(context)
                .unwrap_or_else(|| StopRuling::new(RuleAction::Continue, "there are no validation rules"))),
            Self::Promise => Ok(ruling_by_promises(context)
                .unwrap_or_else(|| StopRuling::new(RuleAction::Continue, "the agent has made no promise"))),
            Self::Rules { rules } => ruling_by_rules(rules, context),
            Self::Command { .. } | Self::Closure { .. } => return None,
        })
    }
}

impl Display for StopHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Returns the ruling by the promises.
fn ruling_by_promises(context: &AgentContext) -> Option<StopRuling> {
    let order = [
        (Promise::Complete, RuleAction::Complete, "the agent says that the work is complete"),
        (Promise::Escalate, RuleAction::Escalate, "the agent asks for a person"),
        (Promise::Blocked, RuleAction::Escalate, "the agent says that it is blocked"),
    ];
    let (promise, action, reason) = order.into_iter().find(|(promise, ..)| context.has_promise(*promise))?;
    Some(StopRuling::new(action, format!("{reason}: {}", promise.tag())))
}

/// Returns the ruling by the validation results.
fn ruling_by_validation(context: &AgentContext) -> Option<StopRuling> {
    let results = &context.validation_results;
    let failed: Vec<&RuleResult> = results.iter().filter(|result| !result.passed).collect();
    match (results.len(), failed.as_slice()) {
        (0, _) => None,
        (1, []) => Some(StopRuling::new(RuleAction::Complete, "the validation rule passes")),
        (all, []) => Some(StopRuling::new(RuleAction::Complete, format!("all {all} validation rules pass"))),
        (all, failed) => {
            let names: Vec<&str> = failed.iter().map(|result| result.rule_name.as_str()).collect();
            let lines: Vec<String> = failed.iter().map(|it| format!("- {}: {}", it.rule_name, it.message)).collect();
            let reason = format!("{} of {all} validation rules failed: {}", failed.len(), names.join(", "));
            Some(StopRuling {
                next_prompt: Some(format!("Fix what the validation rules found:\n{}", lines.join("\n"))),
                ..StopRuling::new(RuleAction::Continue, reason)
            })
        }
    }
}

fn ruling_by_rules(rules: &RuleListSource, context: &AgentContext) -> Result<StopRuling, String> {
    let rules = rules.compile_rules().map_err(|refusal| refusal.to_string())?;
    let ruling =
        evaluate_rules(&rules, &context.to_values(), UndefinedPolicy::Fails).map_err(|fault| fault.to_string())?;
    Ok(ruling.map_or_else(
        || StopRuling::new(RuleAction::Continue, "none of its rules matches"),
        |ruling| StopRuling {
            action: ruling.action,
            reason: ruling.reason.unwrap_or_else(|| "a rule matches".to_owned()),
            next_prompt: ruling.next_prompt,
            checkpoint_data: ruling.checkpoint_data,
            metadata: Map::new(),
        },
    ))
}

/// The decision of a stop hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopRuling {
    pub action: RuleAction,
    /// For people.
    pub reason: String,
    /// For the agent.
    pub next_prompt: Option<String>,
    /// The contents of a checkpoint.
    pub checkpoint_data: Option<Value>,
    pub metadata: Map<String, Value>,
}

impl StopRuling {
    pub fn new(action: RuleAction, reason: impl Into<String>) -> Self {
        Self { action, reason: reason.into(), next_prompt: None, checkpoint_data: None, metadata: Map::new() }
    }

    /// Returns the ruling, unless it asks for a checkpoint that cannot be created.
    fn with_checked_checkpoint(self) -> Result<Self, String> {
        match self.checkpoint_data.as_ref().map(|data| NewCheckpoint::from_hook_data(data).check_limits()) {
            Some(Err(refusal)) => Err(format!("checkpointData: {refusal}")),
            _ => Ok(self),
        }
    }
}

/// A stop hook to register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewStopHook {
    pub hook: StopHook,
    pub enabled: bool,
    pub metadata: Map<String, Value>,
}

impl NewStopHook {
    pub(crate) fn check_limits(&self) -> Result<(), Refusal> {
        match &self.hook {
            StopHook::Command { command } => check_nonblank_text("command", command, EngineLimits::COMMAND_BYTES)?,
            StopHook::Closure { name } => {
                check_nonblank_text("the name of the closure", name, EngineLimits::LABEL_BYTES)?
            }
            StopHook::Rules { rules } => drop(rules.compile_rules()?),
            StopHook::Default | StopHook::Validation | StopHook::Promise => {}
        }
        check_json_value("metadata", &Value::Object(self.metadata.clone()))
    }
}

/// A registered stop hook, as the row of its task names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StopHookRef {
    pub id: HookId,
    pub enabled: bool,
    /// It was registered from inside a session, by the agent that it judges.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inside: bool,
}

/// A registered stop hook with all its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisteredStopHook {
    pub id: HookId,
    pub hook: StopHook,
    pub enabled: bool,
    /// By the agent that it judges, from inside a session.
    pub inside: bool,
    pub metadata: Map<String, Value>,
}

/// The combined decision of a task's hooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvaluationOutcome {
    /// The hook that decided; `None` if no hook is registered and enabled.
    pub hook: Option<HookId>,
    pub ruling: StopRuling,
}

/// Asks hooks in the order of registration. The first one that completes or escalates decides; if all continue, the last
/// one decides. A hook that fails escalates.
pub fn evaluate_stop_hooks(
    hooks: &[RegisteredStopHook],
    context: &AgentContext,
    outside: &mut dyn FnMut(&RegisteredStopHook) -> Result<StopRuling, String>,
) -> EvaluationOutcome {
    let mut said = None;
    for registered in hooks.iter().filter(|registered| registered.enabled) {
        let decided = registered.hook.decide_without_program(context).unwrap_or_else(|| outside(registered));
        let decided = decided.and_then(|ruling| ruling.with_checked_checkpoint());
        let ruling = decided.unwrap_or_else(|error| StopRuling {
            metadata: Map::from_iter([("error".to_owned(), json!(error))]),
            ..StopRuling::new(RuleAction::Escalate, format!("the hook failed: {error}"))
        });
        let ends = ruling.action != RuleAction::Continue;
        said = Some(EvaluationOutcome { hook: Some(registered.id), ruling });
        if ends {
            break;
        }
    }
    said.unwrap_or_else(|| {
        let why =
            if hooks.is_empty() { "No hooks registered for this task" } else { "every hook of the task is disabled" };
        EvaluationOutcome { hook: None, ruling: StopRuling::new(RuleAction::Continue, why) }
    })
}
