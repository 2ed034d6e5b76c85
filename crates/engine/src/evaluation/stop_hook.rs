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
use super::rules::RulesText;
use crate::command::limits::{Limits, check_text, check_value};
use crate::command::refusal::Refusal;
use crate::evaluation::ruling::{RuleAction, Undefined, judge};
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
        rules: RulesText,
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
    fn decide(&self, context: &AgentContext) -> Option<Result<StopRuling, String>> {
        Some(match self {
            Self::Default => Ok(promised(context).or_else(|| validated(context)).unwrap_or_else(|| {
                StopRuling::new(RuleAction::Continue, "no promise was made, and there are no validation rules")
            })),
            Self::Validation => Ok(validated(context)
                .unwrap_or_else(|| StopRuling::new(RuleAction::Continue, "there are no validation rules"))),
            Self::Promise => Ok(promised(context)
                .unwrap_or_else(|| StopRuling::new(RuleAction::Continue, "the agent has made no promise"))),
            Self::Rules { rules } => ruled(rules, context),
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
fn promised(context: &AgentContext) -> Option<StopRuling> {
    let order = [
        (Promise::Complete, RuleAction::Complete, "the agent says that the work is complete"),
        (Promise::Escalate, RuleAction::Escalate, "the agent asks for a person"),
        (Promise::Blocked, RuleAction::Escalate, "the agent says that it is blocked"),
    ];
    let (promise, action, reason) = order.into_iter().find(|(promise, ..)| context.promises(*promise))?;
    Some(StopRuling::new(action, format!("{reason}: {}", promise.tag())))
}

/// Returns the ruling by the validation results.
fn validated(context: &AgentContext) -> Option<StopRuling> {
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
                next_prompt: Some(format!("Mend what the validation rules found:\n{}", lines.join("\n"))),
                ..StopRuling::new(RuleAction::Continue, reason)
            })
        }
    }
}

fn ruled(rules: &RulesText, context: &AgentContext) -> Result<StopRuling, String> {
    let rules = rules.read().map_err(|refusal| refusal.to_string())?;
    let ruling = judge(&rules, &context.values(), Undefined::Fails).map_err(|fault| fault.to_string())?;
    Ok(ruling.map_or_else(
        || StopRuling::new(RuleAction::Continue, "none of its rules holds"),
        |ruling| StopRuling {
            action: ruling.action,
            reason: ruling.reason.unwrap_or_else(|| "a rule holds".to_owned()),
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
    fn with_a_sound_checkpoint(self) -> Result<Self, String> {
        match self.checkpoint_data.as_ref().map(|data| NewCheckpoint::of_hook(data).check()) {
            Some(Err(refusal)) => Err(format!("checkpointData: {refusal}")),
            _ => Ok(self),
        }
    }
}

/// A stop hook to register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewHook {
    pub hook: StopHook,
    pub enabled: bool,
    pub metadata: Map<String, Value>,
}

impl NewHook {
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        match &self.hook {
            StopHook::Command { command } => check_text("command", command, Limits::COMMAND)?,
            StopHook::Closure { name } => check_text("the name of the closure", name, Limits::LABEL)?,
            StopHook::Rules { rules } => drop(rules.read()?),
            StopHook::Default | StopHook::Validation | StopHook::Promise => {}
        }
        check_value("metadata", &Value::Object(self.metadata.clone()))
    }
}

/// A registered stop hook, as the row of its task names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HookRef {
    pub id: HookId,
    pub enabled: bool,
    /// It was registered from inside a session, by the agent that it judges.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inside: bool,
}

/// A registered stop hook with all its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registered {
    pub id: HookId,
    pub hook: StopHook,
    pub enabled: bool,
    /// By the agent that it judges, from inside a session.
    pub inside: bool,
    pub metadata: Map<String, Value>,
}

/// The combined decision of a task's hooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evaluated {
    /// The hook that decided; `None` if no hook is registered and enabled.
    pub hook: Option<HookId>,
    pub ruling: StopRuling,
}

/// Asks hooks in the order of registration. The first one that completes or escalates decides; if all continue, the last
/// one decides. A hook that fails escalates.
pub fn evaluate(
    hooks: &[Registered],
    context: &AgentContext,
    outside: &mut dyn FnMut(&Registered) -> Result<StopRuling, String>,
) -> Evaluated {
    let mut said = None;
    for registered in hooks.iter().filter(|registered| registered.enabled) {
        let decided = registered.hook.decide(context).unwrap_or_else(|| outside(registered));
        let decided = decided.and_then(|ruling| ruling.with_a_sound_checkpoint());
        let ruling = decided.unwrap_or_else(|error| StopRuling {
            metadata: Map::from_iter([("error".to_owned(), json!(error))]),
            ..StopRuling::new(RuleAction::Escalate, format!("the hook failed: {error}"))
        });
        let ends = ruling.action != RuleAction::Continue;
        said = Some(Evaluated { hook: Some(registered.id), ruling });
        if ends {
            break;
        }
    }
    said.unwrap_or_else(|| {
        let why =
            if hooks.is_empty() { "No hooks registered for this task" } else { "every hook of the task is disabled" };
        Evaluated { hook: None, ruling: StopRuling::new(RuleAction::Continue, why) }
    })
}
