//! `windlass answer`: answers a task or a session that waits for a person.

use std::path::Path;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use windlass_app::answers::{AnswerReport, AnswerRequest, answer};
use windlass_app::context::{Context, Opened};
use windlass_app::next_step;
use windlass_app::resume_command::ResumeCommand;
use windlass_engine::{Record, Resolution, Session, State, TaskId};

use super::input::read_text;
use super::task::present;
use crate::output::{Done, Output, Tone};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass answer T3 continue \"Use the staging key\"      go on; the agent hears it first
  windlass answer T3 retry                              go on, with every count started again
  windlass answer T3 approve \"looked at by hand\"         it is completed, whatever the gates say; its branch stays
  windlass answer T3 reject \"we do not want it\"          it has failed
  windlass answer T3 ignore-hook                        go on; the hook that blocked does not count this time

A session stands for its task. One that asks at the limit of its stop hooks (`on_retry_limit: ask`) takes `continue` and
`ignore-hook`, and goes on at once; `reject` ends it. `windlass status` shows what waits for an answer.")]
pub struct Args {
    /// A task, such as T3, or the session that has left it
    #[arg(value_name = "TASK|SESSION")]
    subject: String,
    /// What is to happen
    #[arg(value_name = "ANSWER", value_parser = resolution())]
    answer: Resolution,
    /// What to say about it; `-` reads standard input
    #[arg(value_name = "TEXT", allow_hyphen_values = true)]
    text: Option<String>,
}

fn resolution() -> impl TypedValueParser<Value = Resolution> {
    let value = |answer: Resolution| {
        let others = SYNONYMS.iter().filter(move |(_, meant)| *meant == answer).map(|(word, _)| *word);
        PossibleValue::new(answer.name()).aliases(others)
    };
    PossibleValuesParser::new(Resolution::ALL.map(value))
        .map(|word| parse_answer(&word).expect("each value is an answer"))
}

/// Synonyms of answers.
const SYNONYMS: [(&str, Resolution); 1] = [("ignore", Resolution::IgnoreHook)];

/// Parses a word for an answer.
pub fn parse_answer(word: &str) -> Option<Resolution> {
    let other = || SYNONYMS.iter().find(|(other, _)| *other == word).map(|(_, answer)| *answer);
    word.parse().ok().or_else(other)
}

pub fn run(context: &Context, args: Args, out: &mut Output) -> Done {
    let mut opened = context.open()?;
    let text = match args.text {
        Some(text) if text == "-" => Some(read_text(Path::new("-"))?),
        text => text,
    };
    let request = AnswerRequest { subject: args.subject, answer: args.answer, text };
    match answer(&mut opened, request)? {
        AnswerReport::Task(id, records) => show_task(&opened, id, &records, out),
        AnswerReport::Session(session) => show_session(&opened, &session, args.answer, out),
    }
}

fn show_task(opened: &Opened, id: TaskId, records: &[Record], out: &mut Output) -> Done {
    present::of(opened, id, records, out)?;
    let task = opened.task(id)?;
    if out.is_json() {
        return Ok(());
    }
    if task.state == State::Completed
        && let Some(next) = next_step::for_change(opened, &task)?
    {
        out.line(out.paint(Tone::Faint, format_args!("its work is on its branch: {next}")))?;
    }
    if matches!(task.state, State::Ready | State::NeedsContinuation) {
        out.line(out.paint(Tone::Faint, ResumeCommand::for_task(opened, id)?.in_sentence("goes on with it")))?;
    }
    Ok(())
}

fn show_session(opened: &Opened, session: &Session, answer: Resolution, out: &mut Output) -> Done {
    let name = &session.name;
    if out.is_json() {
        return out.object(&serde_json::json!({"session": name, "answer": answer.name()}));
    }
    out.line(format_args!("session {name} goes on so"))?;
    match opened.is_running(session) {
        true => Ok(()),
        false => {
            let again = ResumeCommand::for_session(opened, session).in_sentence("runs it");
            out.line(out.paint(Tone::Faint, format_args!("once {again}")))
        }
    }
}
