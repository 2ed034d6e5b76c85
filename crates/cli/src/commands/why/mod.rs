//! `windlass why TASK|SESSION|HOOK|SERIES|CONVERSATION`: how something came to be as it is, and what speaks for it. Everything
//! is read from the log; nothing is run, and nothing written.

mod conversation;
mod delivery;
mod judged;
mod session;
mod story;
mod task;

use std::fmt::Display;
use std::path::Path;

use windlass_engine::{Caller, Event, EventType, HookId, Record, Seq, SeriesId, SessionName, TaskId, View};

use self::judged::Focus;
use super::hooks::runs::{Cause, Run, Took};
use crate::context::{Context, Opened};
use crate::failure::{Code, Failure};
use crate::output::{Done, Output, Tone};
use crate::{callers, remedy, show, text};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass why T3                              why it is ready, blocked, waiting, …
  windlass why fix-the-login-3757e17e          each iteration: who decided what, on which evidence
  windlass why IT-12                           how each iteration of a series was judged
  windlass why HOOK-9                          what a registered stop hook decided, and why
  windlass why 0b7c2f6e-43d1                   what the bridge did in a conversation, call by call
  windlass why --conversation                  the same of the one that called last
  windlass why T3 --json | jq '.causes[].event.type'

A task goes before a session of the same name, a session before a stop hook or a series of iterations, and all of them before a \
conversation. Of a conversation's id the first six letters do, or as many as it takes; `claude:ID` means that of one agent.")]
pub struct Args {
    /// A task, such as T3, a session's name, a stop hook, such as HOOK-9, a series of iterations, such as IT-12, or a
    /// conversation, by the id that its agent has for it
    #[arg(value_name = "TASK|SESSION|HOOK|SERIES|CONVERSATION", required_unless_present = "conversation")]
    subject: Option<String>,
    /// The conversation whose agent was the last to call
    #[arg(long, conflicts_with = "subject")]
    conversation: bool,
}

/// What somebody repeats of a name that there is not.
const SHOWN: usize = 60;
/// The longest line in a pipe.
const LINE: usize = 200;
/// So many lines of feedback are shown.
const FEEDBACK: usize = 3;

/// What a question is about.
enum Subject {
    Task(TaskId),
    Session(SessionName),
    Judged(TaskId, Focus),
    Conversation(Caller),
}

pub fn run(context: &Context, args: &Args, out: &mut Output) -> Done {
    let opened = context.open_to_read()?;
    let subject = match &args.subject {
        Some(name) => subject(&opened, name)?,
        None => Subject::Conversation(callers::newest(&opened)?.ok_or_else(|| {
            let failure = Failure::new(Code::NotFound, "no agent has called yet");
            failure.hint("`windlass hook` is what agents' own hook systems call")
        })?),
    };
    match subject {
        Subject::Task(id) => task::run(&opened, id, out),
        Subject::Session(name) => session::run(&opened, &name, out),
        Subject::Judged(task, focus) => task::run_judged(&opened, task, focus, out),
        Subject::Conversation(caller) => conversation::run(&opened, caller, out),
    }
}

fn subject(opened: &Opened, name: &str) -> Result<Subject, Failure> {
    let snapshot = opened.store.snapshot().map_err(remedy::store)?;
    let id = name.parse::<TaskId>().ok();
    if let Some(id) = id
        && snapshot.task(id).map_err(remedy::view)?.is_some()
    {
        return Ok(Subject::Task(id));
    }
    if let Ok(session) = name.parse::<SessionName>()
        && snapshot.session(&session).map_err(remedy::view)?.is_some()
    {
        return Ok(Subject::Session(session));
    }
    if let Some(id) = id {
        return Err(remedy::refusal(&windlass_engine::Refusal::UnknownTask(id)));
    }
    if let Ok(hook) = name.parse::<HookId>() {
        return Ok(Subject::Judged(task_of_hook(opened, hook)?, Focus::Hook(hook)));
    }
    if let Ok(series) = name.parse::<SeriesId>() {
        let kind = EventType::SeriesStarted;
        let found = task_of(opened, Seq(series.0), kind)?.map(|task| Subject::Judged(task, Focus::Series(series)));
        return found.ok_or_else(|| unknown("series of iterations", &series, kind));
    }
    if let Some(caller) = callers::find(opened, name)? {
        return Ok(Subject::Conversation(caller));
    }
    let sessions = snapshot.sessions().map_err(remedy::store)?;
    let shown = text::fit(name, SHOWN);
    let hint = match remedy::sessions(name, &sessions) {
        near if near.ends_with('?') => near,
        known => format!("{known}; tasks are named like T12; {}", callers::HOW_TO_FIND),
    };
    let message = format!("`{shown}` is no task, session, conversation, stop hook or series of iterations");
    Err(Failure::new(Code::NotFound, message).hint(hint))
}

/// The task that a stop hook is or was registered for.
fn task_of_hook(opened: &Opened, hook: HookId) -> Result<TaskId, Failure> {
    let kind = EventType::HookRegistered;
    task_of(opened, Seq(hook.0), kind)?.ok_or_else(|| unknown("stop hook", &hook, kind))
}

/// The task of the event at a position, if it is of that type.
fn task_of(opened: &Opened, at: Seq, kind: EventType) -> Result<Option<TaskId>, Failure> {
    let record = opened.store.event(at).map_err(remedy::store)?.filter(|record| record.kind() == kind);
    Ok(record.and_then(|record| record.envelope.node.task()))
}

fn unknown(what: &str, id: &dyn Display, kind: EventType) -> Failure {
    let all = format!("`windlass why TASK` names those of a task, `windlass events --type {kind}` all of them");
    Failure::new(Code::NotFound, format!("there is no {what} {id}")).hint(all)
}

/// A line below another, broken where the terminal ends.
fn detail(indent: usize, tone: Tone, what: &str, out: &mut Output) -> Done {
    for (number, row) in rows(what, indent, indent + 2, out).into_iter().enumerate() {
        let indent = if number == 0 { indent } else { indent + 2 };
        out.line(format_args!("{}{}", " ".repeat(indent), out.paint(tone, row)))?;
    }
    Ok(())
}

/// A labelled line, as `task show` has them.
fn labelled(label: &str, what: &str, out: &mut Output) -> Done {
    for (number, row) in rows(what, 16, 16, out).into_iter().enumerate() {
        let label = if number == 0 { label } else { "" };
        out.line(format_args!("  {}  {row}", out.paint(Tone::Faint, text::pad(label, 12))))?;
    }
    Ok(())
}

/// A text as rows that have so much before them, in a pipe as one.
fn rows(what: &str, first: usize, others: usize, out: &Output) -> Vec<String> {
    match out.columns() {
        None => vec![text::fit(what, LINE)],
        Some(columns) => {
            let room = |before: usize| columns.saturating_sub(before).max(20);
            text::wrap(&text::fit(what, show::LONG), room(first), room(others))
        }
    }
}

/// What a run of a hook speaks for: its outcome, what it said, what it asks for, and where the rest of it is.
struct Evidence<'e> {
    run: &'e Run,
    cause: Option<&'e Cause>,
    /// What became of its feedback.
    fate: Option<String>,
    records: &'e Path,
}

impl Evidence<'_> {
    fn show(&self, indent: usize, out: &mut Output) -> Done {
        let run = self.run;
        let (tone, word) = run.outcome.words();
        let point = self.cause.and_then(|cause| cause.point(run));
        // A hook without a name of its own is called after its point.
        let title = run.title();
        let place = point.filter(|point| !title.starts_with(point.as_str())).map(|point| format!(" at {point}"));
        let attempt = if run.attempt > 1 { format!(" in attempt {}", run.attempt) } else { String::new() };
        let said = match run.message.as_deref() {
            Some(why) if why.starts_with(word) => format!("{why}{attempt}"),
            Some(why) => format!("{word}{attempt}: {why}"),
            None => format!("{word}{attempt}"),
        };
        let took = run.took.map(|took: Took| format!(" ({})", took.words())).unwrap_or_default();
        let line = format!("{title}{} {said}{took}", place.unwrap_or_default());
        detail(indent, tone, &line, out)?;
        self.feedback(indent + 2, out)?;
        for action in &run.actions {
            detail(indent + 2, Tone::Plain, &format!("asks for {}: {}", action.kind, action.payload), out)?;
        }
        if let Some((file, there)) = run.output(self.records) {
            let gone = if there { "" } else { " (gone)" };
            detail(indent + 2, Tone::Faint, &format!("all of its output: {file}{gone}"), out)?;
        }
        Ok(())
    }

    fn feedback(&self, indent: usize, out: &mut Output) -> Done {
        let Some((seq, said)) = &self.run.feedback else { return Ok(()) };
        let mut lines = said.lines().filter(|line| !line.trim().is_empty());
        for line in lines.by_ref().take(FEEDBACK) {
            detail(indent, Tone::Plain, &format!("| {line}"), out)?;
        }
        let more = match lines.count() {
            0 => String::new(),
            1 => "one more line, ".to_owned(),
            more => format!("{more} more lines, "),
        };
        let fate = self.fate.as_ref().map(|fate| format!(", {fate}")).unwrap_or_default();
        detail(indent, Tone::Faint, &format!("{more}feedback {seq}{fate}"), out)
    }
}

/// Who made an event happen, and how. `cause` is the event that led to it, where that is known.
fn agency(record: &Record, cause: Option<&Record>) -> String {
    let metadata = &record.envelope.metadata;
    let forced = if metadata.forced { ", by force" } else { "" };
    // Whoever runs a session has a name that says nothing to a person, and the session is named anyway.
    let by = Some(&metadata.triggered_by).filter(|by| !(by.starts_with("run-") && record.envelope.session.is_some()));
    let for_whom = by.map(|by| format!(", for {by}")).unwrap_or_default();
    let place = match (&record.envelope.session, record.envelope.iteration) {
        (Some(session), Some(iteration)) => format!(", in iteration {iteration} of {session}"),
        (Some(session), None) => format!(", in {session}"),
        (None, _) => String::new(),
    };
    let asked = cause.and_then(|cause| match &cause.envelope.event {
        Event::HookFinished(finished) => Some(finished.hook.as_str()),
        _ => None,
    });
    match (record.cause(), metadata.depth) {
        (Some(_), depth @ 1..) if asked.is_some() => {
            format!("what the hook `{}` asked for, at depth {depth}{place}", asked.unwrap_or_default())
        }
        (None, 0) => format!("a command of {}{forced}{place}", by.map_or("its runner", String::as_str)),
        (None, depth) => format!("a hook, at depth {depth}{for_whom}{place}"),
        (Some(cause), 0) => format!("follows from {cause}{for_whom}{forced}{place}"),
        (Some(cause), depth) => format!("a hook of {cause}, at depth {depth}{for_whom}{place}"),
    }
}
