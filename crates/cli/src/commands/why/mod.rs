//! `windlass why TASK|SESSION|HOOK|SERIES|CONVERSATION`: prints each decision with its author and evidence, and the next command. The
//! command reads the log only; it runs nothing and writes nothing.
//!
//! ```text
//! name ─► WhySubject ─► events ─► WhyFact, WhyFact, … ─► WhyReport ─► lines for people, or JSON
//! ```

mod conversation;
mod fact;
mod report;
mod subject;

use std::fmt::Display;

use windlass_app::context::{CommandContext, OpenedProject};
use windlass_app::{Failure, FailureCode, conversations, hints};
use windlass_engine::{EventType, HookId, Seq, SeriesId, SessionName, StateView, TaskId};
use windlass_text as text;

use self::report::ReportLength;
use self::subject::WhySubject;
use crate::output::{CommandResult, Output};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass why T3                              explain the state of a task
  windlass why fix-the-login-3757e17e          explain each iteration
  windlass why IT-12                           explain a series of iterations
  windlass why HOOK-9                          explain a registered stop hook
  windlass why 0b7c2f6e-43d1                   explain calls of the bridge
  windlass why --conversation                  explain the last conversation
  windlass why T3 --full                       show every fact with its evidence
  windlass why T3 --json | jq '.facts[] | {type, what, by}'

A name is looked up as a task first, then as a session, a stop hook or a series of iterations, and last as a \
conversation. For a conversation, the first six letters of the id are enough, or as many as make it unique; \
`claude:ID` names the conversation of one agent.")]
pub struct Args {
    /// A task (T3), a session name, a stop hook (HOOK-9), a series of iterations
    /// (IT-12), or the id of a conversation
    #[arg(value_name = "TASK|SESSION|HOOK|SERIES|CONVERSATION", required_unless_present = "conversation")]
    subject: Option<String>,
    /// Explain the conversation of the agent that called last
    #[arg(long, conflicts_with = "subject")]
    conversation: bool,
    /// Show every fact with all of its evidence
    #[arg(long)]
    full: bool,
}

/// The columns of an unknown name in an error.
const MAX_NAME_COLUMNS: usize = 60;

pub fn run_why(context: &CommandContext, args: &Args, out: &mut Output) -> CommandResult {
    let opened = context.open_project_to_read()?;
    let subject = match &args.subject {
        Some(name) => find_subject(&opened, name)?,
        None => WhySubject::Conversation(conversations::find_newest_conversation(&opened)?.ok_or_else(|| {
            let failure = Failure::new(FailureCode::NotFound, "no agent has called yet");
            failure.with_hint("`windlass hook` is what agents' own hook systems call")
        })?),
    };
    let length = if args.full { ReportLength::Full } else { ReportLength::Summary };
    subject.build_report(&opened)?.print_report(length, out)
}

fn find_subject(opened: &OpenedProject, name: &str) -> Result<WhySubject, Failure> {
    let snapshot = opened.store.begin_snapshot().map_err(hints::store_failure)?;
    let id = name.parse::<TaskId>().ok();
    if let Some(id) = id
        && snapshot.find_task(id).map_err(hints::view_failure)?.is_some()
    {
        return Ok(WhySubject::Task(id));
    }
    if let Ok(session) = name.parse::<SessionName>()
        && snapshot.find_session(&session).map_err(hints::view_failure)?.is_some()
    {
        return Ok(WhySubject::Session(session));
    }
    if let Some(id) = id {
        return Err(hints::refusal_failure(&windlass_engine::Refusal::UnknownTask(id)));
    }
    if let Ok(hook) = name.parse::<HookId>() {
        return Ok(WhySubject::Hook(find_hook_task(opened, hook)?, hook));
    }
    if let Ok(series) = name.parse::<SeriesId>() {
        let kind = EventType::SeriesStarted;
        let found = find_event_task(opened, Seq(series.0), kind)?.map(|task| WhySubject::Series(task, series));
        return found.ok_or_else(|| unknown_name_failure("series of iterations", &series, kind));
    }
    if let Some(caller) = conversations::find_conversation(opened, name)? {
        return Ok(WhySubject::Conversation(caller));
    }
    let sessions = snapshot.all_sessions().map_err(hints::store_failure)?;
    let shown = text::fit_to_width(name, MAX_NAME_COLUMNS);
    let hint = match hints::suggest_session(name, &sessions) {
        near if near.ends_with('?') => near,
        known => format!("{known}; tasks are named like T12; {}", conversations::CONVERSATION_ID_HINT),
    };
    let message = format!("`{shown}` is no task, session, conversation, stop hook or series of iterations");
    Err(Failure::new(FailureCode::NotFound, message).with_hint(hint))
}

/// Returns the task that a stop hook is or was registered for.
fn find_hook_task(opened: &OpenedProject, hook: HookId) -> Result<TaskId, Failure> {
    let kind = EventType::HookRegistered;
    find_event_task(opened, Seq(hook.0), kind)?.ok_or_else(|| unknown_name_failure("stop hook", &hook, kind))
}

/// Returns the task of the event at a position, if the event is of that type.
fn find_event_task(opened: &OpenedProject, at: Seq, kind: EventType) -> Result<Option<TaskId>, Failure> {
    let record = opened.store.read_event(at).map_err(hints::store_failure)?.filter(|record| record.kind() == kind);
    Ok(record.and_then(|record| record.envelope.node.task_id()))
}

fn unknown_name_failure(what: &str, id: &dyn Display, kind: EventType) -> Failure {
    let all = format!("`windlass why TASK` names those of a task, `windlass events --type {kind}` all of them");
    Failure::new(FailureCode::NotFound, format!("there is no {what} {id}")).with_hint(all)
}
