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
mod files;
mod pattern;
mod permission;
mod program;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::Value;
use windlass_engine::validation::{RuleKind, RuleResult, ValidationRule};
use windlass_hooks::Mask;
use windlass_process::{Control, Environment, Launcher, Roster};

pub use permission::{AgentCommands, NotAllowed, Permission, Standing};
pub use program::{NotRun, Order};

/// Maximum number of rules that are checked at the same time.
pub const AT_A_TIME: usize = 5;

/// Environment and permission for programs of rules and of agents' hooks.
pub struct Workshop<'a> {
    /// Directory of the project, which has every path of a rule.
    pub directory: PathBuf,
    /// Environment of programs, before Windlass adds its variables. It still names the run that this is part of.
    pub environment: Environment,
    pub mask: Mask,
    pub permission: Permission,
    /// Launcher of supervisors, if no program may outlive this process.
    pub launcher: Option<Launcher>,
    /// This process, as the owner of the programs.
    pub roster: &'a Roster,
}

impl Workshop<'_> {
    /// Returns the environment for rules of the configuration, which do not come from an agent.
    pub fn of_configuration(&self) -> Self {
        Self {
            directory: self.directory.clone(),
            environment: self.environment.clone(),
            mask: self.mask.clone(),
            permission: self.permission.of_configuration(),
            launcher: self.launcher.clone(),
            roster: self.roster,
        }
    }
}

/// Input of a validation.
#[derive(Clone, Copy)]
pub struct Matter<'a> {
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
pub struct Cancelled;

/// Result of a check.
struct Finding {
    passed: bool,
    message: String,
    /// Whether the check failed because its program is missing or could not start.
    broken: bool,
}

impl Finding {
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
pub fn validate(
    rules: &[ValidationRule],
    matter: Matter<'_>,
    workshop: &Workshop<'_>,
    control: &Control,
) -> Result<Vec<RuleResult>, Cancelled> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(vec![None; rules.len()]);
    let work = || {
        while let Some((at, rule)) = {
            let at = next.fetch_add(1, Ordering::Relaxed);
            rules.get(at).map(|rule| (at, rule)).filter(|_| !control.is_cancelled())
        } {
            let result = look(rule, matter, workshop, control);
            results.lock().expect("nothing panics while it holds the results")[at] = Some(result);
        }
    };
    thread::scope(|scope| {
        for number in 1..rules.len().min(AT_A_TIME) {
            // Without a further thread, this one does the work alone.
            let _ = thread::Builder::new().name(format!("rule-{number}")).spawn_scoped(scope, work);
        }
        work();
    });
    let results = results.into_inner().expect("nothing panics while it holds the results");
    let all: Option<Vec<RuleResult>> = results.into_iter().collect();
    all.filter(|_| !control.is_cancelled()).ok_or(Cancelled)
}

fn look(rule: &ValidationRule, matter: Matter<'_>, workshop: &Workshop<'_>, control: &Control) -> RuleResult {
    let finding = match &rule.kind {
        RuleKind::Command(_) | RuleKind::Custom(_) => program::look(rule, matter, workshop, control),
        RuleKind::ContentPattern(pattern) => pattern::look(pattern, matter, &workshop.mask),
        RuleKind::Coverage(coverage) => coverage::look(coverage, &workshop.directory),
        RuleKind::FileExistence(files) => files::look(files, &workshop.directory),
    };
    let message = workshop.mask.text(&finding.message).into_owned();
    RuleResult { rule_name: rule.name.clone(), passed: finding.passed, message, broken: finding.broken }
}

/// Quotes a text of a rule for a message: one short line.
fn quoted(text: &str) -> String {
    const MOST: usize = 200;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let cut = line.floor_char_boundary(MOST);
    let more = if cut < line.len() { "…" } else { "" };
    let letter = |letter: char| if letter.is_control() { '\u{fffd}' } else { letter };
    format!("`{}{more}`", line[..cut].chars().map(letter).collect::<String>())
}
