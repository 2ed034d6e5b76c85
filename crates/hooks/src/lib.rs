//! Hooks: what a command is given, how it is run, and what its end means; webhooks, and what their answers mean.
//!
//! ```text
//! RunnableHook + HookInput ─ input ─► process::Spec ─ run elsewhere ─► Finished ─ answer ─► HookReport: outcome, message, feedback
//! http::Request ─ send ─► Response or Unsent ─ meaning ─► Ended: fine, worth another try, or not
//! ```
//!
//! Invariants:
//! - Text from outside never becomes shell text: it travels in the payload and in variables (`script`).
//! - What a hook wrote is cleaned and cut before anybody else sees it.
//!
//! Not here: which hooks are owed when (`engine`), starting programs (`process`), the log.
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests read files that they have written"))]

mod answer;
mod forms;
pub mod http;
mod input;
#[cfg(any(test, fuzzing))]
pub mod laws;
pub mod mask;
mod meaning;
pub mod notice;
mod papers;
pub mod response;
mod retry;
pub mod ruling;
mod script;
mod shell_command;
mod sift;
mod signs;
mod telling;
mod text;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};
use windlass_engine::workflow::check_given;
use windlass_engine::{HookOutcome, Rule};
use windlass_expr::{Allowance, Pattern, Template};

pub use answer::{LEFT_BEHIND, OutputParts, answer, answer_of_command, fitting, gist, silent_no};
pub use input::HookInput;
pub use mask::{Mask, Shown};
pub use papers::{Carried, Papers};
pub use response::{HookResponse, HookResponseError};
pub use retry::Retry;
pub use script::{
    Carrier, FilledWord, Script, UnsafeArgument, UnsafeTemplate, Values, WordOrigin, check_argv, check_filled,
};
pub use shell_command::ShellCommand;
pub use sift::sifted;
pub use text::{clean, cut};

/// Something that runs at a point.
#[derive(Debug, Clone)]
pub struct RunnableHook {
    pub name: String,
    pub kind: RunnableKind,
    pub timeout: Duration,
    /// When its output reaches the agent, if it says so.
    pub pipes: Option<PipeOutput>,
    /// Bytes of output that are kept for the agent.
    pub max_output: usize,
    /// How often it is tried again.
    pub retry: Option<Retry>,
    /// What the agent is told.
    pub feedback: Option<Template>,
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
    pub fn when(pipes: bool) -> Self {
        if pipes { Self::Always } else { Self::Never }
    }
}

impl RunnableHook {
    /// Whether the output of a run that ended so reaches the agent. Without a setting it does not.
    pub fn pipes_after(&self, outcome: HookOutcome) -> bool {
        match self.pipes.unwrap_or_default() {
            PipeOutput::Never => false,
            PipeOutput::Always => true,
            PipeOutput::OnFailure => !matches!(outcome, HookOutcome::Success | HookOutcome::Skip),
        }
    }
}

/// What runs.
#[derive(Debug, Clone)]
pub enum RunnableKind {
    Command(Script),
    Http(WebhookAddress),
    Rules(Vec<Rule>),
    /// What the agent is told.
    Prompt(Template),
    /// A notice on the desktop.
    Desktop,
    /// One of ours, on the way from done to accepted.
    Step(DeliveryStep),
    Workflow(WorkflowRequest),
}

impl RunnableKind {
    /// Whether it runs programs of the project's.
    pub fn runs_programs(&self) -> bool {
        matches!(self, Self::Command(_) | Self::Workflow(_) | Self::Step(DeliveryStep::RunTests))
    }
}

/// A workflow, as a hook has it run.
#[derive(Debug, Clone)]
pub struct WorkflowRequest {
    pub id: String,
    /// What it is given, by name.
    pub context: Vec<(String, Pattern)>,
    /// Whether every program of it may run again after a crash.
    pub idempotent: bool,
}

impl WorkflowRequest {
    /// What it is given where the hook knows this, or why it cannot be. All of it together is worth one evaluation.
    pub fn given(&self, values: &Value) -> Result<Map<String, Value>, String> {
        let mut left = Allowance::default();
        let fill = |(name, pattern): &(String, Pattern)| {
            let value = pattern.fill_within(values, &mut left);
            let value = value.map_err(|fault| format!("`context.{name}`: {fault}"))?;
            check_given(name, &value).map_err(|why| format!("`context` {why}"))?;
            Ok((name.clone(), value))
        };
        self.context.iter().map(fill).collect()
    }
}

/// What work goes through on its way from done to accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryStep {
    RebaseOnMain,
    RunTests,
    CreatePr,
    MergePr,
    /// The names of the briefs by which it is judged.
    Review(Vec<String>),
}

/// Where a webhook goes, as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookAddress {
    pub url: String,
    pub method: http::Method,
    pub headers: BTreeMap<String, String>,
}

impl WebhookAddress {
    /// Returns the request for a run. The environment's values are filled in only now.
    pub fn request(
        &self,
        input: &HookInput<'_>,
        timeout: Duration,
        key: String,
    ) -> Result<http::Request, http::ExpandError> {
        let headers =
            self.headers.iter().map(|(name, value)| Ok((name.clone(), http::expand(value, input.environment)?)));
        Ok(http::Request {
            url: http::expand(&self.url, input.environment)?,
            method: self.method,
            headers: headers.collect::<Result<_, _>>()?,
            body: input.payload().to_string().into_bytes(),
            timeout,
            key,
        })
    }
}

/// What a place makes of a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookRole {
    /// The stop gate: the agent can be sent back.
    Stop,
    /// `before_submit` and `before_merge`: only success and skip pass.
    Pipeline,
    /// Everything else: nothing can be blocked.
    Observer,
}

impl HookRole {
    /// Whether what happens next depends on the verdict.
    pub fn is_gate(self) -> bool {
        self != Self::Observer
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_workflow_is_given_is_filled_in_and_looked_at() {
        let given = |context: Value, values: Value| {
            let parse = |(name, value): (&String, &Value)| (name.clone(), Pattern::parse(value).expect("a pattern"));
            let context = context.as_object().expect("names").iter().map(parse).collect();
            WorkflowRequest { id: "w".to_owned(), context, idempotent: false }.given(&values).map(Value::Object)
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
        // Many values come to no more than one.
        let (much, many) = ("x".repeat(1 << 19), json!({"a": "${goal}", "b": "${goal}", "c": "${goal}"}));
        assert!(given(many, json!({"goal": much})).unwrap_err().contains("more than"));
    }
}
