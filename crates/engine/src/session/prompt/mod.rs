//! The prompt of a turn: the task, the feedback of hooks, and the instructions to end.
//!
//! Invariants:
//! - Text of hooks and agents is data: it stands in a fence that it cannot close, and contains nothing that its echo could turn
//!   into a claim. The same holds in a template of the user's.
//! - Pending feedback is in the prompt even if a template omits it: the log says that it was delivered.
//! - The same session gives the same prompt.
//! - In a turn to work, feedback comes first, in the order in which it was queued; then the goal, the last output, and the
//!   instructions to end. In other turns it comes after the subject of the turn.

use std::fmt::Write as _;

use serde_json::{Value, json};
use windlass_expr::{EvaluationError, TextTemplate};

use crate::effects::event_context::task_values;
use crate::log::id::TaskId;
use crate::session::TurnPurpose;
use crate::session::message_author::MessageAuthor;
use crate::session::promise::neutralize_claims;
use crate::task::Task;
use crate::task::note::NoteKind;

/// The inputs of a prompt.
#[derive(Debug, Clone)]
pub struct PromptInputs<'a> {
    /// The task: sessions of older versions have none.
    pub task: Option<&'a Task>,
    /// The content of the task, else the goal.
    pub goal: &'a str,
    pub session: &'a str,
    pub iteration: u32,
    pub max_iterations: u32,
    pub purpose: &'a TurnPurpose,
    /// The agent's last output, if the agent does not remember it.
    pub last_output: Option<&'a str>,
    /// The texts of earlier iterations, oldest first.
    pub history: Vec<EarlierIteration<'a>>,
    /// The notes about the task, newest first.
    pub notes: Vec<PromptNote<'a>>,
    /// The error of the last turn, in a recovery turn.
    pub error: Option<&'a str>,
    pub feedback: Vec<FeedbackItem<'a>>,
    /// Set when the task ends with a report instead of a change.
    pub report: Option<ReportBrief<'a>>,
    /// Whether the agent has to claim that it is done.
    pub asks_for_promise: bool,
    /// The user's template for the work prompt, in place of the default.
    pub template: Option<&'a TextTemplate>,
}

/// The instructions for a report.
#[derive(Debug, Clone, Default)]
pub struct ReportBrief<'a> {
    /// The task whose work the report is about.
    pub reviewed: Option<&'a Task>,
    /// The base of that work, such as `origin/main`; `None` without a checkout of the work.
    pub base: Option<&'a str>,
}

impl ReportBrief<'_> {
    fn render_brief(&self) -> String {
        let mut parts = vec![REPORT_INSTRUCTIONS.to_owned()];
        let Some(task) = self.reviewed else { return join_sections(&parts) };
        parts.push(prepend_title(
            &format!("You review the work on {}. Its goal:", task.id),
            &fence_text(&task.goal_and_body()),
        ));
        let change = task.change.as_ref();
        let merged = change.and_then(|change| change.merged.as_deref());
        let branch = task.workspace.as_ref().filter(|_| change.is_some()).map(|workspace| workspace.branch.as_str());
        parts.push(match (merged, branch, self.base) {
            (Some(commit), ..) => {
                format!("Its change is merged: `git show -m --first-parent {}` shows it.", collapse_to_line(commit))
            }
            (None, Some(branch), Some(base)) => format!(
                "Its change is the branch `{}`, which is checked out in this directory: `git diff {}...HEAD` shows it.",
                collapse_to_line(branch),
                collapse_to_line(base)
            ),
            (None, Some(branch), None) => format!("Its change is the branch `{}`.", collapse_to_line(branch)),
            (None, None, _) => "It has no change of its own.".to_owned(),
        });
        let result = task.result.as_deref().map(fence_text).unwrap_or_default();
        parts.push(prepend_title("Its result:", &result));
        join_sections(&parts)
    }
}

/// An excerpt of an earlier iteration's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EarlierIteration<'a> {
    pub iteration: u32,
    pub text: &'a str,
}

/// A note about the task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptNote<'a> {
    pub kind: NoteKind,
    pub text: &'a str,
}

/// One item of feedback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedbackItem<'a> {
    pub source: &'a str,
    /// The task that it is about, if it is another one.
    pub about: Option<TaskId>,
    /// A short reason why the hook blocks.
    pub reason: Option<&'a str>,
    pub text: &'a str,
    pub voice: MessageAuthor,
    pub possibly_seen: bool,
}

impl FeedbackItem<'_> {
    /// Renders the marker, the author, the reason and the text. Text of hooks and agents is fenced as data; a person's
    /// text is not.
    fn render_feedback(&self) -> String {
        let seen = if self.possibly_seen { " (you may have seen this before)" } else { "" };
        let about = self.about.map(|task| format!(" (about {task})")).unwrap_or_default();
        let source = collapse_to_line(self.source) + &about;
        let reason =
            self.reason.map(|reason| format!(": {}", collapse_to_line(&neutralize_claims(reason)))).unwrap_or_default();
        match self.voice {
            MessageAuthor::Hook => format!("[Hook feedback]: {source}{reason}{seen}\n{}", fence_text(self.text)),
            MessageAuthor::Agent => format!("[Message, not from a person] {source}{seen}:\n{}", fence_text(self.text)),
            MessageAuthor::Person => format!("[Message from {source}]{seen}:\n{}", neutralize_claims(self.text)),
            MessageAuthor::Windlass => format!("[Windlass]{about}{seen}: {}", neutralize_claims(self.text)),
        }
    }
}

const HOW_TO_END: &str = "\
When the goal is reached and you have checked it, end your final message with this tag, on a line of its own:
`<promise>COMPLETE</promise>`
It counts only at the end of the last line.
If you cannot continue without a person, say why and end with `<promise>BLOCKED</promise>` instead.
";

const REPORT_INSTRUCTIONS: &str = "\
This task asks for a report, not for a change: your final message is its result, so write the full report there. \
Changes in files are discarded.";

impl PromptInputs<'_> {
    pub fn render_prompt(&self) -> Result<String, EvaluationError> {
        match (self.purpose, self.template) {
            (TurnPurpose::Work, Some(template)) => self.render_from_template(template),
            _ => Ok(self.render_default_prompt()),
        }
    }

    /// Renders the user's template.
    fn render_from_template(&self, template: &TextTemplate) -> Result<String, EvaluationError> {
        let mut parts = Vec::new();
        if !template.uses_name("feedback") {
            parts.push(self.render_all_feedback());
        }
        parts.push(template.render(&self.template_values())?);
        parts.push(self.render_report_brief());
        Ok(join_sections(&parts))
    }

    fn render_default_prompt(&self) -> String {
        let mut parts = Vec::new();
        // The news since the last turn comes before the work.
        let first = *self.purpose == TurnPurpose::Work;
        if first {
            parts.push(self.render_all_feedback());
        }
        match self.purpose {
            TurnPurpose::Work => parts.push(self.goal.to_owned()),
            TurnPurpose::SendBack => {
                parts.push(
                    "Your work was checked and is not done. Fix what the checks found, then end your turn again."
                        .into(),
                );
                parts.push(format!("The goal:\n{}", self.goal));
            }
            TurnPurpose::Recovery => {
                parts.push("Your last turn failed. If you can, fix the problem that the feedback below shows.".into());
                let error = self.error.filter(|error| !error.trim().is_empty());
                parts.push(prepend_title("It ended with:", &error.map(fence_text).unwrap_or_default()));
                parts.push(format!("The goal:\n{}", self.goal));
            }
            TurnPurpose::Delivery | TurnPurpose::UnjudgedDelivery(_) => {
                parts.push(
                    "The session is about to end. This feedback arrived after your last turn: fix what it shows, if needed. \
                     Your work is checked again when you end this turn."
                        .into(),
                );
                if self.asks_for_promise {
                    parts.push("Your claim from an earlier turn no longer counts: make it again.".into());
                }
                parts.push(format!("The goal:\n{}", self.goal));
            }
        }
        if *self.purpose == TurnPurpose::Work {
            parts.push(self.render_report_brief());
            parts.push(prepend_title("Deliverables:", &self.list_deliverables()));
            parts.push(prepend_title("Notes about this task, newest first:", &self.render_notes()));
            parts.push(prepend_title("Results of earlier iterations:", &self.render_history()));
        }
        if !first && self.report.is_some() {
            parts.push("Your final message is the result of this task: write the full report in it again.".into());
        }
        parts.push(prepend_title("The end of your last message:", &self.render_last_output()));
        if !first {
            parts.push(self.render_all_feedback());
        }
        parts.push(self.completion_instructions().to_owned());
        join_sections(&parts)
    }

    /// Returns the variables of a template.
    fn template_values(&self) -> Value {
        json!({
            "task": task_values(self.task),
            "goal": self.goal,
            "session": self.session,
            "iteration": self.iteration,
            "max_iterations": self.max_iterations,
            "notes": self.render_notes(),
            "history": self.render_history(),
            "last_output": self.render_last_output(),
            "feedback": self.render_all_feedback(),
            "signal": self.completion_instructions(),
        })
    }

    fn render_report_brief(&self) -> String {
        self.report.as_ref().map(ReportBrief::render_brief).unwrap_or_default()
    }

    fn list_deliverables(&self) -> String {
        let deliverables = self.task.map(|task| task.deliverables.as_slice()).unwrap_or_default();
        deliverables.iter().map(|deliverable| format!("- {}\n", collapse_to_line(deliverable))).collect()
    }

    fn render_notes(&self) -> String {
        let notes: Vec<String> =
            self.notes.iter().map(|note| format!("{}: {}", note.kind, note.text.trim_end())).collect();
        fence_text_lines(&notes)
    }

    fn render_history(&self) -> String {
        let history: Vec<String> =
            self.history.iter().map(|said| format!("{}: {}", said.iteration, said.text.trim_end())).collect();
        fence_text_lines(&history)
    }

    fn render_last_output(&self) -> String {
        let output = self.last_output.filter(|output| !output.trim().is_empty());
        output.map(fence_text).unwrap_or_default()
    }

    fn render_all_feedback(&self) -> String {
        self.feedback.iter().map(FeedbackItem::render_feedback).collect::<Vec<_>>().join("\n\n")
    }

    fn completion_instructions(&self) -> &'static str {
        if self.asks_for_promise && self.purpose.is_judged_by_hooks() { HOW_TO_END } else { "" }
    }
}

/// Returns a section under a title line, or nothing.
pub(crate) fn prepend_title(title: &str, part: &str) -> String {
    if part.is_empty() { String::new() } else { format!("{title}\n{part}") }
}

/// Joins the sections that are not empty, with a blank line between them.
pub(crate) fn join_sections(parts: &[String]) -> String {
    let parts: Vec<&str> = parts.iter().map(|part| part.trim_end()).filter(|part| !part.is_empty()).collect();
    let mut text = parts.join("\n\n");
    text.push('\n');
    text
}

fn fence_text_lines(lines: &[String]) -> String {
    if lines.is_empty() { String::new() } else { fence_text(&lines.join("\n")) }
}

/// Puts a text into a fence that it cannot close.
pub(crate) fn fence_text(text: &str) -> String {
    let text = neutralize_claims(text);
    let longest = text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let mut block = String::with_capacity(text.len() + 16);
    let newline = if text.ends_with('\n') { "" } else { "\n" };
    let _ = write!(block, "{fence}text\n{text}{newline}{fence}");
    block
}

pub(crate) fn collapse_to_line(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

#[cfg(test)]
mod tests;
