//! `windlass answer`: says how a task goes on that waits for a person.

use clap::builder::TypedValueParser;
use windlass_engine::{Authority, Command, Resolution, SessionName, State, TaskId};

use super::task::present;
use crate::context::{Context, Opened};
use crate::dispatch::{self, Inside};
use crate::failure::{Code, Failure};
use crate::output::{Done, Output, Tone};
use crate::{remedy, text, usage};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass answer T3 continue \"Use the staging key\"      go on; the agent hears it first
  windlass answer T3 retry                              go on, with every count started again
  windlass answer T3 approve \"looked at by hand\"         it is completed, whatever the gates say
  windlass answer T3 reject \"we do not want it\"          it has failed
  windlass answer T3 ignore-hook                        go on; the hook that blocked does not count once

A session stands for its task. `windlass status` shows what waits for an answer.")]
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
    usage::one_of(Resolution::ALL.map(Resolution::name))
}

pub fn run(context: &Context, args: Args, out: &mut Output) -> Done {
    let mut opened = context.open()?;
    let id = subject(&opened, &args.subject)?;
    let text = match args.text {
        Some(text) if text == "-" => Some(super::say::standard_input()?),
        text => text,
    };
    let ignores = match args.answer {
        Resolution::IgnoreHook => blockers(&opened, id)?,
        _ => Vec::new(),
    };
    let inside = Inside::look_above(&opened)?;
    // Whoever approves goes over the heads of the gates, and the log says so.
    let authority = if args.answer == Resolution::Approve { Authority::Forced } else { Authority::Person };
    let command = Command::AnswerTask { id, answer: args.answer, text, ignores };
    let records = dispatch::execute_inside(&mut opened, inside, &command, authority)?;
    present::of(&opened, id, &records, out)?;
    let task = opened.task(id)?;
    if !out.is_json() && matches!(task.state, State::Ready | State::NeedsContinuation) {
        out.line(out.paint(Tone::Faint, format_args!("`windlass run --task {id}` goes on with it")))?;
    }
    Ok(())
}

/// The task of that name, or of the session of that name.
fn subject(opened: &Opened, name: &str) -> Result<TaskId, Failure> {
    let snapshot = opened.store.snapshot().map_err(remedy::store)?;
    if let Ok(id) = name.parse::<TaskId>() {
        return Ok(opened.task(id)?.id);
    }
    let session = match name.parse::<SessionName>() {
        Ok(name) => opened.session(&name)?,
        Err(_) => {
            let failure =
                Failure::new(Code::NotFound, format!("`{}` is neither a task nor a session", text::fit(name, 60)));
            return Err(failure.hint(remedy::sessions(name, &snapshot.sessions().map_err(remedy::store)?)));
        }
    };
    session.task.ok_or_else(|| {
        Failure::new(Code::Refused, format!("session `{}` works on no task", session.name))
            .hint("`windlass say` speaks to its agent while it runs")
    })
}

/// The stop hooks that did not let go in the session that left the task to a person.
fn blockers(opened: &Opened, id: TaskId) -> Result<Vec<String>, Failure> {
    let hooks = opened.task(id)?.blocked.map(|blocked| blocked.hooks).unwrap_or_default();
    match hooks.is_empty() {
        false => Ok(hooks),
        true => Err(Failure::new(Code::Refused, format!("no hook has blocked {id}"))
            .hint(format!("`windlass why {id}` shows what did; `continue` goes on"))),
    }
}
