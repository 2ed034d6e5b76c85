//! `windlass answer`: answers a task or a session that waits for a person.

use std::path::Path;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use windlass_app::answers::{AnswerReport, AnswerRequest, submit_answer};
use windlass_app::context::{CommandContext, OpenedProject};
use windlass_app::next_step;
use windlass_app::resume_command::ResumeCommand;
use windlass_engine::{EventRecord, Session, TaskId, TaskResolution, TaskState};

use super::input::read_text;
use super::task::details;
use crate::output::{CommandResult, Output, TextTone};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass answer T3 continue \"Use the staging key\"    continue with this text
  windlass answer T3 retry                             continue, reset counts
  windlass answer T3 approve \"checked by hand\"         complete it anyway
  windlass answer T3 reject \"we do not want it\"        fail the task
  windlass answer T3 ignore-hook                       ignore that block once

With `continue`, the agent gets the text first. `approve` completes the task whatever the gates say, and its \
branch stays.

A session stands for its task. A session that asks at the limit of its stop hooks (`on_retry_limit: ask`) \
takes `continue` and `ignore-hook`, and continues at once; `reject` ends it. `windlass status` shows what \
waits for an answer.")]
pub struct Args {
    /// The task, such as T3, or its session
    #[arg(value_name = "TASK|SESSION")]
    subject: String,
    /// The decision about the task
    #[arg(value_name = "ANSWER", value_parser = resolution_parser())]
    answer: TaskResolution,
    /// A text for the agent or the log; `-` reads standard input
    #[arg(value_name = "TEXT", allow_hyphen_values = true)]
    text: Option<String>,
}

fn resolution_parser() -> impl TypedValueParser<Value = TaskResolution> {
    let value = |answer: TaskResolution| {
        let others = ANSWER_SYNONYMS.iter().filter(move |(_, meant)| *meant == answer).map(|(word, _)| *word);
        PossibleValue::new(answer.name()).aliases(others)
    };
    PossibleValuesParser::new(TaskResolution::ALL.map(value))
        .map(|word| parse_answer(&word).expect("each value is an answer"))
}

/// Synonyms of answers.
const ANSWER_SYNONYMS: [(&str, TaskResolution); 1] = [("ignore", TaskResolution::IgnoreHook)];

/// Parses a word for an answer.
pub fn parse_answer(word: &str) -> Option<TaskResolution> {
    let other = || ANSWER_SYNONYMS.iter().find(|(other, _)| *other == word).map(|(_, answer)| *answer);
    word.parse().ok().or_else(other)
}

pub fn run_answer(context: &CommandContext, args: Args, out: &mut Output) -> CommandResult {
    let mut opened = context.open_project()?;
    let text = match args.text {
        Some(text) if text == "-" => Some(read_text(Path::new("-"))?),
        text => text,
    };
    let request = AnswerRequest { subject: args.subject, answer: args.answer, text };
    match submit_answer(&mut opened, request)? {
        AnswerReport::Task(id, records) => show_answered_task(&opened, id, &records, out),
        AnswerReport::Session(session) => show_answered_session(&opened, &session, args.answer, out),
    }
}

fn show_answered_task(opened: &OpenedProject, id: TaskId, records: &[EventRecord], out: &mut Output) -> CommandResult {
    details::show_task_result(opened, id, records, out)?;
    let task = opened.require_task(id)?;
    if out.is_json() {
        return Ok(());
    }
    if task.state == TaskState::Completed
        && let Some(next) = next_step::find_change_step(opened, &task)?
    {
        out.print_line(out.paint(TextTone::Faint, format_args!("its work is on its branch: {next}")))?;
    }
    if matches!(task.state, TaskState::Ready | TaskState::NeedsContinuation) {
        out.print_line(
            out.paint(TextTone::Faint, ResumeCommand::for_task(opened, id)?.describe_in_sentence("resumes it")),
        )?;
    }
    Ok(())
}

fn show_answered_session(
    opened: &OpenedProject,
    session: &Session,
    answer: TaskResolution,
    out: &mut Output,
) -> CommandResult {
    let name = &session.name;
    if out.is_json() {
        return out.print_json(&serde_json::json!({"session": name, "answer": answer.name()}));
    }
    let effect = if answer == TaskResolution::Reject { "ends" } else { "continues" };
    out.print_line(format_args!("session {name} {effect} with this answer"))?;
    match opened.is_session_running(session) {
        true => Ok(()),
        false => {
            let again = ResumeCommand::for_session(opened, session).describe_in_sentence("runs it");
            out.print_line(out.paint(TextTone::Faint, format_args!("once {again}")))
        }
    }
}
