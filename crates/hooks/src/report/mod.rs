//! Turns the end of a hook into a report.
//!
//! | end | at the stop gate | in a pipeline | elsewhere |
//! | --- | --- | --- | --- |
//! | exit 0, no JSON object on stdout | success | success | success |
//! | exit 0, a JSON response | see `verdict` | see `verdict` | see `verdict` |
//! | exit 0, a bad response | failure | failure | failure |
//! | exit 2 | block | block | failure |
//! | exit 126 or 127, or a missing script (`shell_command`) | failure | failure | failure |
//! | any other exit, a signal, not started, lost | failure | failure | failure |
//! | out of time | timed out | timed out | timed out |
//! | cancelled | cancelled | cancelled | cancelled |
//!
//! The agent gets:
//!
//! | outcome | at a gate | elsewhere |
//! | --- | --- | --- |
//! | success, skip | its output, if it is always piped | its output, if it is always piped |
//! | block, by the exit code | stderr, a blank line, stdout, or the texts of a JSON response there | |
//! | block, continue, escalate, by a response | the reason, a blank line, the additional context | its output, if it is piped |
//! | failure, timed out | its output | its output, if it is piped |
//! | cancelled | nothing | nothing |
//!
//! Output is stdout (the texts of the JSON response, if there is one), then stderr, then a line that names the failure.
//!
//! Invariants:
//! - A run that cannot be interpreted is never a success.
//! - A blocking exit code is stronger than a response that allows.
//! - Actions are taken only from a response with exit 0.
//! - Every text of a report is clean and within the engine's bounds.

use serde_json::{Value, json};
use windlass_engine::{
    AgentUsage, ChangeFact, ChangeRef, EngineLimits, HookOutcome, HookPoint, HookReport, OutputFingerprint,
    duration_in_words,
};
use windlass_expr::TextTemplate;
use windlass_process::{CapturedOutput, ProgramExit, ProgramOutcome, ProgramStartError};

use crate::excerpt::most_relevant_line;
use crate::response::{self, HookResponse, HookResponseError};
use crate::shell_command::ShellCommand;
use crate::text::{clean_output, excerpt_text, join_nonempty};
use crate::verdict::{self, ResponseVerdict};
use crate::{HookRole, RunnableHook};

/// Note about a program that ended and left processes behind. Windlass cannot end processes of another user, nor those that
/// only hold its output.
pub const LEFTOVER_PROCESSES_NOTE: &str = "it left processes behind; Windlass ended those that it could";

/// Length of the line that stands for a whole output, in letters.
const MAX_SUMMARY_LETTERS: usize = 160;
/// The most unknown fields that a note names, and the bytes that it shows of each name.
const MAX_NAMED_FIELDS: usize = 8;
const MAX_FIELD_NAME_BYTES: usize = 60;

/// The texts of a run, part by part. Clean, not yet cut.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OutputParts {
    /// The reason, in the words of the response.
    pub reason: String,
    /// The additional context of the response.
    pub context: String,
    /// The part of standard output that is piped: all of it, or the texts of the response.
    pub output: String,
    pub stdout: String,
    pub stderr: String,
    /// How the run ended: `exit 2`, `timed out after 30 s`.
    pub exit: String,
    /// The failure of the hook itself.
    pub failure: Option<String>,
}

/// The interpretation of a run.
struct HookReading {
    outcome: HookOutcome,
    parts: OutputParts,
    said: Option<HookResponse>,
    /// For people, beside the outcome.
    notes: Vec<String>,
    /// Whether the response decides the outcome, and not the exit code.
    spoken: bool,
}

/// Builds the report of a run. `values` describe what the hook ran for; its feedback template may name them.
pub fn build_report(
    hook: &RunnableHook,
    role: HookRole,
    ran: &Result<ProgramOutcome, ProgramStartError>,
    values: &Value,
) -> HookReport {
    assemble_report(hook, role, ran, values, None)
}

/// Builds the report of a shell command. The command is broken if its program or script is missing.
pub fn build_command_report(
    hook: &RunnableHook,
    role: HookRole,
    ran: &Result<ProgramOutcome, ProgramStartError>,
    values: &Value,
    command: ShellCommand<'_>,
) -> HookReport {
    let broken = ran.as_ref().ok().and_then(|finished| command.broken_command_cause(finished.exit));
    let broken = broken.map(|cause| format!("the hook is broken: {cause}"));
    assemble_report(hook, role, ran, values, broken)
}

fn assemble_report(
    hook: &RunnableHook,
    role: HookRole,
    ran: &Result<ProgramOutcome, ProgramStartError>,
    values: &Value,
    broken: Option<String>,
) -> HookReport {
    let unstarted = broken.is_some() || ran.is_err();
    let mut read = match ran {
        Ok(finished) => interpret_exit(hook, role, finished, broken),
        Err(error) => {
            let exit = clean_output(&error.to_string());
            let parts = OutputParts { failure: Some(exit.clone()), exit, ..OutputParts::default() };
            HookReading { parts, ..HookReading::with_outcome(HookOutcome::Failure) }
        }
    };
    let point = values["point"].as_str().and_then(|name| name.parse().ok());
    let own = build_feedback(hook, role, &read, point.as_ref());
    let feedback = match &hook.feedback {
        Some(template) if !own.is_empty() => {
            render_feedback_template(hook, template, values, &mut read).unwrap_or_else(|| own.clone())
        }
        _ => own.clone(),
    };
    let feedback = excerpt_text(&feedback, hook.max_output.min(EngineLimits::FEEDBACK_BYTES));
    let own = (feedback != own).then(|| Box::new(fingerprint_output(&read)));
    let message = excerpt_text(&build_message(hook, &read), EngineLimits::REASON_BYTES);
    HookReport {
        outcome: read.outcome,
        message: Some(message).filter(|message| !message.trim().is_empty()),
        feedback: Some(feedback).filter(|feedback| !feedback.trim().is_empty()),
        own,
        took: ran.as_ref().ok().map(|finished| finished.took),
        record: None,
        context: read.said.as_ref().map(|said| said.context.clone()).unwrap_or_default(),
        change: read.said.as_ref().filter(|_| role == HookRole::Pipeline).and_then(find_opened_change),
        checkpoint: read
            .said
            .as_ref()
            .map(|said| said.checkpoint_data.clone())
            .filter(|data| !data.is_empty())
            .map(Value::Object),
        actions: read.said.map(|said| said.actions).unwrap_or_default(),
        event: None,
        approved: None,
        used: AgentUsage::default(),
        head: None,
        unstarted,
        results: Vec::new(),
    }
}

/// Returns a fingerprint of everything that the hook wrote.
fn fingerprint_output(read: &HookReading) -> OutputFingerprint {
    let OutputParts { reason, context, stdout, stderr, exit, .. } = &read.parts;
    OutputFingerprint::from_text(&[reason, context, stdout, stderr, exit].map(String::as_str).join("\0"))
}

/// Returns the change that the hook opened, if its response names the URL.
fn find_opened_change(said: &HookResponse) -> Option<ChangeFact> {
    let url = ["pr_url", "prUrl"].iter().find_map(|name| said.context.get(*name)?.as_str())?;
    let url = clean_output(url).trim().to_owned();
    let change = ChangeRef { branch: None, base: None, url: Some(url.clone()), number: None };
    (!url.is_empty()).then_some(ChangeFact::Opened(change))
}

fn interpret_exit(
    hook: &RunnableHook,
    role: HookRole,
    finished: &ProgramOutcome,
    broken: Option<String>,
) -> HookReading {
    let stdout = finished.stdout.to_text_lossy();
    let mut read = match (finished.exit, broken) {
        (_, Some(broken)) => HookReading::from_failure(broken),
        (ProgramExit::Code(0), None) => interpret_success_output(&stdout, role),
        (ProgramExit::Code(2), None) if role.is_gate() => interpret_block_output(&stdout),
        (exit, None) => interpret_other_exit(hook, exit),
    };
    read.parts.exit = describe_exit(hook, finished.exit);
    read.parts.stdout = clean_output(&stdout).trim_end().to_owned();
    read.parts.stderr = clean_output(&finished.stderr.to_text_lossy()).trim_end().to_owned();
    if read.said.is_none() && read.parts.output.is_empty() {
        read.parts.output.clone_from(&read.parts.stdout);
    }
    if read.outcome == HookOutcome::Block && !read.spoken && read.parts.reason.is_empty() {
        read.parts.reason = join_nonempty(&[&read.parts.stderr, &read.parts.output], "\n\n");
    }
    if finished.leaky {
        read.notes.push(LEFTOVER_PROCESSES_NOTE.to_owned());
    }
    read
}

/// Interprets exit 0.
fn interpret_success_output(stdout: &str, role: HookRole) -> HookReading {
    let said = match response::parse_response(stdout) {
        Err(bad) => return HookReading::from_failure(describe_bad_response(&bad)),
        Ok(None) => {
            let missed =
                response::explain_near_miss(stdout).map(|why| format!("its output looks like JSON but is not: {why}"));
            if let (Some(missed), true) = (&missed, role.is_gate()) {
                // The output may have been meant as a block.
                return HookReading::from_failure(missed.clone());
            }
            return HookReading {
                notes: missed.into_iter().collect(),
                ..HookReading::with_outcome(HookOutcome::Success)
            };
        }
        Ok(Some(said)) => said,
    };
    let outcome = ResponseVerdict::from_response(&said).to_outcome(role);
    let parts = OutputParts {
        reason: verdict::verdict_reason(&said),
        context: verdict::agent_context_text(&said),
        output: verdict::piped_output(&said),
        ..OutputParts::default()
    };
    let mut notes: Vec<String> = verdict::message_for_people(&said, outcome).into_iter().collect();
    notes.extend(collect_side_notes(&said));
    HookReading { outcome, parts, said: Some(said), notes, spoken: true }
}

/// Interprets exit 2 at a gate.
fn interpret_block_output(stdout: &str) -> HookReading {
    let mut read = HookReading::with_outcome(HookOutcome::Block);
    match response::parse_response(stdout) {
        Err(bad) => read.notes.push(describe_bad_response(&bad)),
        Ok(None) => {}
        Ok(Some(said)) => {
            let stance = ResponseVerdict::from_response(&said);
            read.notes.extend(verdict::message_for_people(&said, HookOutcome::Block));
            read.notes.extend(collect_side_notes(&said));
            if matches!(stance, ResponseVerdict::Pass | ResponseVerdict::Skip | ResponseVerdict::Escalate) {
                read.notes.push(format!("exit 2 blocks, although its answer says {}", stance.name()));
            }
            read.parts.reason = verdict::verdict_reason(&said);
            if let Some(words) = verdict::stdout_replacement(&said) {
                read.parts.output = words;
                // Actions count with exit 0 only.
                read.said = Some(HookResponse { actions: Vec::new(), ..said });
            }
        }
    }
    read
}

/// Interprets every end without a response.
fn interpret_other_exit(hook: &RunnableHook, exit: ProgramExit) -> HookReading {
    match exit {
        ProgramExit::Cancelled => HookReading::with_outcome(HookOutcome::Cancelled),
        ProgramExit::TimedOut | ProgramExit::OutputIdle => {
            HookReading { outcome: HookOutcome::TimedOut, ..HookReading::from_failure(describe_exit(hook, exit)) }
        }
        ProgramExit::Code(_) | ProgramExit::Signal(_) | ProgramExit::Lost => {
            HookReading::from_failure(describe_exit(hook, exit))
        }
    }
}

impl HookReading {
    fn with_outcome(outcome: HookOutcome) -> Self {
        Self { outcome, parts: OutputParts::default(), said: None, notes: Vec::new(), spoken: false }
    }

    fn from_failure(why: String) -> Self {
        Self {
            parts: OutputParts { failure: Some(why), ..OutputParts::default() },
            ..Self::with_outcome(HookOutcome::Failure)
        }
    }
}

fn describe_exit(hook: &RunnableHook, exit: ProgramExit) -> String {
    match exit {
        ProgramExit::Code(code) => format!("exit {code}"),
        ProgramExit::Signal(signal) => format!("ended by signal {signal}"),
        ProgramExit::TimedOut | ProgramExit::OutputIdle => {
            format!("timed out after {}", duration_in_words(hook.timeout))
        }
        ProgramExit::Cancelled => "cancelled".to_owned(),
        ProgramExit::Lost => "it was lost with its supervisor".to_owned(),
    }
}

fn describe_bad_response(bad: &HookResponseError) -> String {
    clean_output(&format!("bad answer: {bad}"))
}

/// Returns the notes that people get beside the verdict.
fn collect_side_notes(said: &HookResponse) -> impl Iterator<Item = String> {
    let system = said.system_message.as_deref().map(verdict::clean_and_trim).filter(|text| !text.is_empty());
    let fields = said.unknown_fields();
    let named: Vec<String> = fields
        .iter()
        .take(MAX_NAMED_FIELDS)
        .map(|field| format!("`{}`", excerpt_text(&clean_output(field), MAX_FIELD_NAME_BYTES)))
        .collect();
    let more = fields.len().checked_sub(MAX_NAMED_FIELDS + 1).map(|more| format!(" and {} more", more + 1));
    let unknown = format!("its answer has unknown fields: {}{}", named.join(", "), more.unwrap_or_default());
    [system, Some(unknown).filter(|_| !named.is_empty())].into_iter().flatten()
}

/// Builds the message for people.
fn build_message(hook: &RunnableHook, read: &HookReading) -> String {
    let mut parts: Vec<&str> = read.parts.failure.iter().map(String::as_str).collect();
    let silent = format!("`{}` asks for a person without a reason", hook.name);
    if read.outcome == HookOutcome::Escalate && read.parts.reason.is_empty() {
        parts.push(&silent);
    }
    for note in &read.notes {
        if !parts.contains(&note.as_str()) {
            parts.push(note);
        }
    }
    parts.join("; ")
}

/// Builds the agent's text where no feedback template is configured.
fn build_feedback(hook: &RunnableHook, role: HookRole, read: &HookReading, point: Option<&HookPoint>) -> String {
    let (outcome, parts) = (read.outcome, &read.parts);
    let piped = || {
        let failure = parts.failure.as_ref().map(|failure| format!("[{failure}]")).unwrap_or_default();
        join_nonempty(&[&parts.output, &parts.stderr, &failure], "\n")
    };
    let text = match outcome {
        HookOutcome::Cancelled => return String::new(),
        HookOutcome::Block | HookOutcome::Continue | HookOutcome::Escalate if role.is_gate() && read.spoken => {
            join_nonempty(&[&parts.reason, &parts.context], "\n\n")
        }
        HookOutcome::Block => join_nonempty(&[&parts.stderr, &parts.output], "\n\n"),
        HookOutcome::Failure | HookOutcome::TimedOut if role.is_gate() => piped(),
        outcome if hook.pipes_output_after(outcome) => piped(),
        _ => return String::new(),
    };
    match outcome {
        HookOutcome::Block | HookOutcome::Continue if text.trim().is_empty() => {
            unexplained_block_text(&hook.name, point)
        }
        HookOutcome::Escalate if role.is_gate() && text.trim().is_empty() => {
            format!("`{}` asks for a person without a reason.", hook.name)
        }
        _ => text,
    }
}

/// Returns the agent's text for a hook that blocks at a point without a reason.
pub fn unexplained_block_text(hook: &str, point: Option<&HookPoint>) -> String {
    match point {
        Some(HookPoint::PreToolUse | HookPoint::PostToolUse | HookPoint::UserPromptSubmit) => {
            format!("`{hook}` blocks without a reason.")
        }
        _ => format!("`{hook}` says without a reason that the work is not done."),
    }
}

/// Makes the report of any kind of hook fit the engine's rules: clean, not blank, and within bounds.
pub fn bound_report(mut report: HookReport, hook: &RunnableHook) -> HookReport {
    let fit = |text: String, most: usize| {
        Some(excerpt_text(&clean_output(&text), most)).filter(|text| !text.trim().is_empty())
    };
    let most = hook.max_output.min(EngineLimits::FEEDBACK_BYTES);
    let is_cut = report.feedback.as_ref().filter(|feedback| feedback.len() > most);
    report.own = report.own.or(is_cut.map(|feedback| Box::new(OutputFingerprint::from_text(feedback))));
    report.message = report.message.and_then(|message| fit(message, EngineLimits::REASON_BYTES));
    report.feedback = report.feedback.and_then(|feedback| fit(feedback, most));
    report
}

/// Returns the line of a run's output that best explains its end, shortened. The last line that the run wrote for people
/// wins, unless other lines score higher.
pub fn summarize_output(ran: &ProgramOutcome) -> Option<String> {
    let line =
        |captured: &CapturedOutput| most_relevant_line(&clean_output(&captured.to_text_lossy())).map(str::to_owned);
    let spoke = || line(&ran.stdout).filter(|line| ran.exit != ProgramExit::Code(0) && !line.starts_with('{'));
    let line = line(&ran.stderr).or_else(spoke)?;
    Some(line.chars().take(MAX_SUMMARY_LETTERS).collect())
}

/// Renders the agent's text with the hook's own template. Returns `None` if the template fails.
fn render_feedback_template(
    hook: &RunnableHook,
    template: &TextTemplate,
    values: &Value,
    read: &mut HookReading,
) -> Option<String> {
    let OutputParts { reason, output, stdout, stderr, exit, .. } = &read.parts;
    let retries = values["hook_retries"].as_u64().unwrap_or_default();
    let most = hook.retry.as_ref().map_or_else(|| values["max_retries"].clone(), |retry| json!(retry.max));
    let more = json!({
        "reason": reason, "output": output, "stdout": stdout, "stderr": stderr, "exit": exit,
        "retry": retries + 1, "max_retries": most,
    });
    let mut values = values.clone();
    if let (Value::Object(values), Value::Object(more)) = (&mut values, more) {
        values.extend(more);
    }
    match template.render(&values) {
        Ok(text) => Some(clean_output(&text)),
        Err(fault) => {
            read.notes.push(format!("its feedback template does not work: {fault}"));
            None
        }
    }
}

#[cfg(test)]
mod tests;
