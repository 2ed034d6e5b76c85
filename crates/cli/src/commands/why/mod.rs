//! `windlass why TASK|SESSION|HOOK|SERIES|CONVERSATION`: prints each decision with its author and evidence, and the next command. The
//! command reads the log only; it runs nothing and writes nothing.
//!
//! ```text
//! name ─► WhySubject ─► events ─► WhyFact, WhyFact, … ─► WhyReport ─► lines for people, or JSON
//! ```

mod fact;
mod report;
mod subject;

use std::fmt::Display;

use windlass_app::context::{Context, Opened};
use windlass_app::{Code, Failure, conversations, hints};
use windlass_engine::{EventType, HookId, Seq, SeriesId, SessionName, TaskId, View};
use windlass_text as text;

use self::report::ReportLength;
use self::subject::WhySubject;
use crate::output::{Done, Output};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass why T3                              why it is ready, blocked, waiting, …
  windlass why fix-the-login-3757e17e          each iteration: who decided what, on which evidence
  windlass why IT-12                           how each iteration of a series was judged
  windlass why HOOK-9                          what a registered stop hook decided, and why
  windlass why 0b7c2f6e-43d1                   what the bridge did in a conversation, call by call
  windlass why --conversation                  the same of the one that called last
  windlass why T3 --full                       every fact with all of its evidence
  windlass why T3 --json | jq '.facts[] | {type, what, by}'

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
    /// Show every fact with all of its evidence
    #[arg(long)]
    full: bool,
}

/// The columns of an unknown name in an error.
const MAX_NAME_WIDTH: usize = 60;

pub fn run(context: &Context, args: &Args, out: &mut Output) -> Done {
    let opened = context.open_to_read()?;
    let subject = match &args.subject {
        Some(name) => find_subject(&opened, name)?,
        None => WhySubject::Conversation(conversations::newest(&opened)?.ok_or_else(|| {
            let failure = Failure::new(Code::NotFound, "no agent has called yet");
            failure.hint("`windlass hook` is what agents' own hook systems call")
        })?),
    };
    let length = if args.full { ReportLength::Full } else { ReportLength::Summary };
    subject.report(&opened)?.print(length, out)
}

fn find_subject(opened: &Opened, name: &str) -> Result<WhySubject, Failure> {
    let snapshot = opened.store.snapshot().map_err(hints::store)?;
    let id = name.parse::<TaskId>().ok();
    if let Some(id) = id
        && snapshot.task(id).map_err(hints::view)?.is_some()
    {
        return Ok(WhySubject::Task(id));
    }
    if let Ok(session) = name.parse::<SessionName>()
        && snapshot.session(&session).map_err(hints::view)?.is_some()
    {
        return Ok(WhySubject::Session(session));
    }
    if let Some(id) = id {
        return Err(hints::refusal(&windlass_engine::Refusal::UnknownTask(id)));
    }
    if let Ok(hook) = name.parse::<HookId>() {
        return Ok(WhySubject::Hook(task_of_hook(opened, hook)?, hook));
    }
    if let Ok(series) = name.parse::<SeriesId>() {
        let kind = EventType::SeriesStarted;
        let found = task_of(opened, Seq(series.0), kind)?.map(|task| WhySubject::Series(task, series));
        return found.ok_or_else(|| unknown("series of iterations", &series, kind));
    }
    if let Some(caller) = conversations::find(opened, name)? {
        return Ok(WhySubject::Conversation(caller));
    }
    let sessions = snapshot.sessions().map_err(hints::store)?;
    let shown = text::fit(name, MAX_NAME_WIDTH);
    let hint = match hints::sessions(name, &sessions) {
        near if near.ends_with('?') => near,
        known => format!("{known}; tasks are named like T12; {}", conversations::HOW_TO_FIND),
    };
    let message = format!("`{shown}` is no task, session, conversation, stop hook or series of iterations");
    Err(Failure::new(Code::NotFound, message).hint(hint))
}

/// Returns the task that a stop hook is or was registered for.
fn task_of_hook(opened: &Opened, hook: HookId) -> Result<TaskId, Failure> {
    let kind = EventType::HookRegistered;
    task_of(opened, Seq(hook.0), kind)?.ok_or_else(|| unknown("stop hook", &hook, kind))
}

/// Returns the task of the event at a position, if the event is of that type.
fn task_of(opened: &Opened, at: Seq, kind: EventType) -> Result<Option<TaskId>, Failure> {
    let record = opened.store.event(at).map_err(hints::store)?.filter(|record| record.kind() == kind);
    Ok(record.and_then(|record| record.envelope.node.task()))
}

fn unknown(what: &str, id: &dyn Display, kind: EventType) -> Failure {
    let all = format!("`windlass why TASK` names those of a task, `windlass events --type {kind}` all of them");
    Failure::new(Code::NotFound, format!("there is no {what} {id}")).hint(all)
}
