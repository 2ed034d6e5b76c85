//! Checks of an agent's work against validation rules.
//!
//! ```text
//! rules ─► five at a time ─► permission to run ─► program, pattern, coverage, files ─► results, in the rules' order
//! ```
//!
//! Invariants:
//! - A rule that cannot be checked has not passed.
//! - Every result has a cause and a remedy, in a text that fits into a prompt and has no secret.
//! - A program and all of its children are ended at its timeout, and at a cancellation of the call.
//! - No rule takes longer than its timeout, or than a few seconds: patterns, reports and texts are bounded.
//!
//! Not here: the syntax of rules (`engine`), the consequences of a result.

mod coverage;
mod file_existence;
mod pattern;
mod permission;
mod rule_program;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::Value;
use windlass_engine::validation::{RuleResult, ValidationRule, ValidationRuleKind};
use windlass_hooks::SecretMask;
use windlass_process::{Environment, OwnerLock, RunControl, SupervisorLauncher};

pub use permission::{AgentCommandPermission, ExecutionTrust, PermissionRefusal, ProgramPermission};
pub use rule_program::{ProgramNotRun, ProgramRequest};

/// Maximum number of rules that are checked at the same time.
pub const MAX_PARALLEL_RULES: usize = 5;

/// Environment and permission for programs of rules and of agents' hooks.
pub struct ValidatorEnv<'a> {
    /// Directory of the project, which has every path of a rule.
    pub directory: PathBuf,
    /// Environment of programs, before Windlass adds its variables. It still names the run that this is part of.
    pub environment: Environment,
    pub mask: SecretMask,
    pub permission: ProgramPermission,
    /// Launcher of supervisors, if no program may outlive this process.
    pub launcher: Option<SupervisorLauncher>,
    /// This process, as the owner of the programs.
    pub owner_lock: &'a OwnerLock,
}

impl ValidatorEnv<'_> {
    /// Returns the environment for rules of the configuration, which do not come from an agent.
    pub fn for_configured_rules(&self) -> Self {
        Self {
            directory: self.directory.clone(),
            environment: self.environment.clone(),
            mask: self.mask.clone(),
            permission: self.permission.for_configured_rules(),
            launcher: self.launcher.clone(),
            owner_lock: self.owner_lock,
        }
    }
}

/// Input of a validation.
#[derive(Clone, Copy)]
pub struct ValidationInput<'a> {
    /// Final message of the agent, if it was given.
    pub agent_output: Option<&'a str>,
    /// Notes of the task, oldest first.
    pub task_notes: &'a [String],
    /// All known values, as a validator of the configuration reads them on its standard input.
    pub context: &'a Value,
}

/// A cancellation before all rules were checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("validation was cancelled")]
pub struct ValidationCancellation;

/// Result of a check.
struct RuleFinding {
    passed: bool,
    message: String,
    /// Whether the check failed because its program is missing or could not start.
    broken: bool,
}

impl RuleFinding {
    fn passed(message: impl Into<String>) -> Self {
        Self { passed: true, message: message.into(), broken: false }
    }

    fn failed(message: impl Into<String>) -> Self {
        Self { passed: false, message: message.into(), broken: false }
    }

    fn broken(message: impl Into<String>) -> Self {
        Self { broken: true, ..Self::failed(message) }
    }
}

/// Checks every rule. The results are in the order of the rules.
pub fn validate_rules(
    rules: &[ValidationRule],
    matter: ValidationInput<'_>,
    workshop: &ValidatorEnv<'_>,
    control: &RunControl,
) -> Result<Vec<RuleResult>, ValidationCancellation> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(vec![None; rules.len()]);
    let work = || {
        while let Some((at, rule)) = {
            let at = next.fetch_add(1, Ordering::Relaxed);
            rules.get(at).map(|rule| (at, rule)).filter(|_| !control.is_cancelled())
        } {
            let result = check_rule(rule, matter, workshop, control);
            results.lock().expect("nothing panics while it holds the results")[at] = Some(result);
        }
    };
    thread::scope(|scope| {
        for number in 1..rules.len().min(MAX_PARALLEL_RULES) {
            // Without a further thread, this one does the work alone.
            let _ = thread::Builder::new().name(format!("rule-{number}")).spawn_scoped(scope, work);
        }
        work();
    });
    let results = results.into_inner().expect("nothing panics while it holds the results");
    let all: Option<Vec<RuleResult>> = results.into_iter().collect();
    all.filter(|_| !control.is_cancelled()).ok_or(ValidationCancellation)
}

fn check_rule(
    rule: &ValidationRule,
    matter: ValidationInput<'_>,
    workshop: &ValidatorEnv<'_>,
    control: &RunControl,
) -> RuleResult {
    let finding = match &rule.kind {
        ValidationRuleKind::Command(_) | ValidationRuleKind::Custom(_) => {
            rule_program::check_program(rule, matter, workshop, control)
        }
        ValidationRuleKind::ContentPattern(pattern) => pattern::check_pattern(pattern, matter, &workshop.mask),
        ValidationRuleKind::Coverage(coverage) => coverage::check_coverage(coverage, &workshop.directory),
        ValidationRuleKind::FileExistence(files) => file_existence::check_files_exist(files, &workshop.directory),
    };
    let message = workshop.mask.mask_text(&finding.message).into_owned();
    RuleResult { rule_name: rule.name.clone(), passed: finding.passed, message, broken: finding.broken }
}

/// Quotes a text of a rule for a message: one short line.
fn quote_excerpt(text: &str) -> String {
    const MAX_EXCERPT_BYTES: usize = 200;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let cut = line.floor_char_boundary(MAX_EXCERPT_BYTES);
    let more = if cut < line.len() { "…" } else { "" };
    let letter = |letter: char| if letter.is_control() { '\u{fffd}' } else { letter };
    format!("`{}{more}`", line[..cut].chars().map(letter).collect::<String>())
}
