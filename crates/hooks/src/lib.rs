//! Hooks: the input of a command, and the report that its end becomes; webhooks, and what their responses mean.
//!
//! ```text
//! RunnableHook + HookInput ─ input ─► process::Spec ─ run elsewhere ─► Finished ─ build_report ─► HookReport: outcome, message, feedback
//! http::WebhookRequest ─ send_request ─► WebhookResponse or WebhookError ─ classify_response ─► WebhookOutcome
//! ```
//!
//! Invariants:
//! - Text from outside never becomes shell text: it travels in the payload and in variables (`script`).
//! - The output of a hook is cleaned and cut before it leaves this crate.
//!
//! Not here: which hooks are pending when (`engine`), starting programs (`process`), the log.
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests read files that they have written"))]

mod excerpt;
pub mod http;
mod input;
mod input_files;
#[cfg(any(test, fuzzing))]
pub mod laws;
mod line_score;
pub mod mask;
pub mod notice;
mod report;
pub mod response;
mod retry;
pub mod rule_report;
mod script;
mod secret_encodings;
mod shell_command;
mod spill_excerpt;
mod text;
mod verdict;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};
use windlass_engine::workflow::check_context_entry;
use windlass_engine::{DecisionRule, HookOutcome};
use windlass_expr::{EvaluationBudget, TextTemplate, ValuePattern};

pub use input::HookInput;
pub use input_files::{HookInputFiles, TextInput};
pub use mask::{MaskedDisplayStream, SecretMask};
pub use report::{
    LEFTOVER_PROCESSES_NOTE, OutputParts, bound_report, build_command_report, build_report, summarize_output,
    unexplained_block_text,
};
pub use response::{HookResponse, HookResponseError};
pub use retry::RetrySchedule;
pub use script::{
    FilledWord, HookScript, InputChannel, ScriptValues, UnsafeArgument, UnsafeTemplate, WordOrigin, check_argv,
    check_filled_words,
};
pub use shell_command::ShellCommand;
pub use spill_excerpt::excerpt_run;
pub use text::{clean_output, excerpt_text};

/// A hook that can run at a point.
#[derive(Debug, Clone)]
pub struct RunnableHook {
    pub name: String,
    pub kind: RunnableKind,
    pub timeout: Duration,
    /// When the output reaches the agent, if the configuration says so.
    pub pipes: Option<PipeOutput>,
    /// Bytes of output that are kept for the agent.
    pub max_output: usize,
    /// How often a failed run is repeated.
    pub retry: Option<RetrySchedule>,
    /// The template of the agent's text.
    pub feedback: Option<TextTemplate>,
}

/// When the output of a hook reaches the agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PipeOutput {
    #[default]
    Never,
    Always,
    /// Only when the hook does not pass: a linter that finds nothing costs no turn.
    OnFailure,
}

impl PipeOutput {
    pub fn from_flag(pipes: bool) -> Self {
        if pipes { Self::Always } else { Self::Never }
    }
}

impl RunnableHook {
    /// Returns whether the output of a run with this outcome reaches the agent. Without a setting it does not.
    pub fn pipes_output_after(&self, outcome: HookOutcome) -> bool {
        match self.pipes.unwrap_or_default() {
            PipeOutput::Never => false,
            PipeOutput::Always => true,
            PipeOutput::OnFailure => !matches!(outcome, HookOutcome::Success | HookOutcome::Skip),
        }
    }
}

/// The kind of a hook, with its content.
#[derive(Debug, Clone)]
pub enum RunnableKind {
    Command(HookScript),
    Http(WebhookTemplate),
    Rules(Vec<DecisionRule>),
    /// The text for the agent.
    Prompt(TextTemplate),
    /// A notification on the desktop.
    Desktop,
    /// A built-in step of the delivery pipeline.
    Step(DeliveryStep),
    Workflow(WorkflowRequest),
}

impl RunnableKind {
    /// Returns whether the hook runs programs of the project.
    pub fn runs_programs(&self) -> bool {
        matches!(self, Self::Command(_) | Self::Workflow(_) | Self::Step(DeliveryStep::RunTests))
    }
}

/// A workflow that a hook starts.
#[derive(Debug, Clone)]
pub struct WorkflowRequest {
    pub id: String,
    /// The input of the workflow, by name.
    pub context: Vec<(String, ValuePattern)>,
    /// Whether every program of the workflow may run again after a crash.
    pub idempotent: bool,
}

impl WorkflowRequest {
    /// Returns the workflow's input with its values filled in, or the error. All values share one evaluation budget.
    pub fn fill_context(&self, values: &Value) -> Result<Map<String, Value>, String> {
        let mut left = EvaluationBudget::default();
        let fill = |(name, pattern): &(String, ValuePattern)| {
            let value = pattern.fill_within_budget(values, &mut left);
            let value = value.map_err(|fault| format!("`context.{name}`: {fault}"))?;
            check_context_entry(name, &value).map_err(|why| format!("`context` {why}"))?;
            Ok((name.clone(), value))
        };
        self.context.iter().map(fill).collect()
    }
}

/// A built-in step of the delivery pipeline, between a finished and an accepted task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryStep {
    RebaseOnMain,
    RunTests,
    CreatePr,
    MergePr,
    /// The names of the briefs that the reviewers get.
    Review(Vec<String>),
}

/// The target of a webhook, as it is configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookTemplate {
    pub url: String,
    pub method: http::WebhookMethod,
    pub headers: BTreeMap<String, String>,
}

impl WebhookTemplate {
    /// Returns the request for a run. Only this call fills in values from the environment.
    pub fn request(
        &self,
        input: &HookInput<'_>,
        timeout: Duration,
        key: String,
    ) -> Result<http::WebhookRequest, http::ExpandError> {
        let headers = self
            .headers
            .iter()
            .map(|(name, value)| Ok((name.clone(), http::expand_variables(value, input.environment)?)));
        Ok(http::WebhookRequest {
            url: http::expand_variables(&self.url, input.environment)?,
            method: self.method,
            headers: headers.collect::<Result<_, _>>()?,
            body: input.build_payload().to_string().into_bytes(),
            timeout,
            key,
        })
    }
}

/// The meaning of a verdict at a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookRole {
    /// The stop gate, which can send the agent back.
    Stop,
    /// `before_submit` and `before_merge`: only success and skip pass.
    Pipeline,
    /// All other points: a hook cannot block there.
    Observer,
}

impl HookRole {
    /// Returns whether the next action depends on the verdict.
    pub fn is_gate(self) -> bool {
        self != Self::Observer
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn workflow_context_is_filled_in_and_checked() {
        let given = |context: Value, values: Value| {
            let parse =
                |(name, value): (&String, &Value)| (name.clone(), ValuePattern::parse(value).expect("a pattern"));
            let context = context.as_object().expect("names").iter().map(parse).collect();
            WorkflowRequest { id: "w".to_owned(), context, idempotent: false }.fill_context(&values).map(Value::Object)
        };
        assert_eq!(
            given(json!({"who": "${goal}!", "data": {"n": 1}}), json!({"goal": "x"})),
            Ok(json!({"who": "x!", "data": {"n": 1}}))
        );
        assert!(
            given(json!({"data": "${goal}"}), json!({"goal": "x"})).unwrap_err().starts_with("`context` names `data`")
        );
        assert!(
            given(json!({"who": "${context.x}"}), json!({})).unwrap_err().starts_with("`context.who`: cannot evaluate")
        );
        // Many values share the budget of one.
        let (much, many) = ("x".repeat(1 << 19), json!({"a": "${goal}", "b": "${goal}", "c": "${goal}"}));
        assert!(given(many, json!({"goal": much})).unwrap_err().contains("more than"));
    }
}
