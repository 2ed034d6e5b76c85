//! Looks whether an agent's work keeps to the rules that were given for it.
//!
//! ```text
//! rules ─► five at a time ─► permission: may it be run? ─► program, pattern, coverage, files ─► results, in the rules' order
//! ```
//!
//! Invariants:
//! - What cannot be looked at has not passed.
//! - Every result says what is wrong and what to do about it, in words that fit into a prompt; no secret is in them.
//! - A program is ended at its timeout with all that it has started, and when the call is called off.
//! - Nothing here takes longer than its timeout, or than a few seconds: patterns, reports and texts are bounded.
//!
//! Not here: what a rule may say (`engine`), what its result leads to.

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

/// How many rules are looked at side by side.
pub const AT_A_TIME: usize = 5;

/// What programs for rules and for hooks of agents are run with, and which may be.
pub struct Workshop<'a> {
    /// The project's, below which every path of a rule lies.
    pub directory: PathBuf,
    /// What programs find in their environment; what is ours is added. The run that this is part of is still named there.
    pub environment: Environment,
    pub mask: Mask,
    pub permission: Permission,
    /// How supervisors are started, where nothing may outlive whoever runs this.
    pub launcher: Option<Launcher>,
    /// Whoever starts programs.
    pub roster: &'a Roster,
}

impl Workshop<'_> {
    /// Returns the same for rules of the configuration, which are no agent's.
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

/// What is judged.
#[derive(Clone, Copy)]
pub struct Matter<'a> {
    /// What the agent has said, if it was given.
    pub agent_output: Option<&'a str>,
    /// What was left with the task, the oldest first.
    pub task_notes: &'a [String],
    /// All that is known, as a validator of the configuration reads it on its standard input.
    pub context: &'a Value,
}

/// Somebody asked for the end before all rules were looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("validation was cancelled")]
pub struct Cancelled;

/// Whether a rule is kept, and why.
struct Finding {
    passed: bool,
    message: String,
    /// The rule could not be looked at because its program is missing or could not be started.
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

/// Looks at every rule. The results stand in the order of the rules.
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
            // Where there can be no further thread, this one does the work alone.
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

/// A text of a rule as a message shows it: one line, short.
fn quoted(text: &str) -> String {
    const MOST: usize = 200;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let cut = line.floor_char_boundary(MOST);
    let more = if cut < line.len() { "…" } else { "" };
    let letter = |letter: char| if letter.is_control() { '\u{fffd}' } else { letter };
    format!("`{}{more}`", line[..cut].chars().map(letter).collect::<String>())
}
