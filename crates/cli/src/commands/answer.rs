//! `windlass answer`: answers a task or a session that waits for a person.

use std::path::Path;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use windlass_app::answers::{AnswerReport, AnswerRequest, describe_session_effect, submit_answer};
use windlass_app::context::CommandContext;
use windlass_engine::TaskResolution;

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
    let report = submit_answer(&mut opened, request)?;
    match &report {
        AnswerReport::Task(id, records) => details::show_task_result(&opened, *id, records, out)?,
        AnswerReport::Session(session, answer) if out.is_json() => {
            out.print_json(&serde_json::json!({"session": session.name, "answer": answer.name()}))?;
        }
        AnswerReport::Session(session, answer) => out.print_line(describe_session_effect(session, *answer))?,
    }
    let next = if out.is_json() { None } else { report.describe_next_step(&opened)? };
    next.map_or(Ok(()), |next| out.print_line(out.paint(TextTone::Faint, next)))
}
