//! `windlass answer`: says how a task goes on that waits for a person.

use std::path::Path;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use windlass_app::caller::Inside;
use windlass_app::context::{Context, Opened};
use windlass_app::person::ConcernedSessions;
use windlass_app::resume_command::ResumeCommand;
use windlass_app::{Code, Failure, execution, hints, next_step};
use windlass_engine::{
    Authority, ChangeRef, Command, GateAnswer, Phase, Resolution, Session, SessionName, State, TaskId, View, Wanted,
};
use windlass_text as text;

use super::input::read_text;
use super::task::present;
use crate::output::{Done, Messages, Output, Tone};

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
        let others = OTHERS.iter().filter(move |(_, meant)| *meant == answer).map(|(word, _)| *word);
        PossibleValue::new(answer.name()).aliases(others)
    };
    PossibleValuesParser::new(Resolution::ALL.map(value)).map(|word| read(&word).expect("each value is an answer"))
}

/// Other words for the same.
const OTHERS: [(&str, Resolution); 1] = [("ignore", Resolution::IgnoreHook)];

/// What somebody means by a word.
pub fn read(word: &str) -> Option<Resolution> {
    let other = || OTHERS.iter().find(|(other, _)| *other == word).map(|(_, answer)| *answer);
    word.parse().ok().or_else(other)
}

/// What it means to a session that asks at its gate, if it answers that.
pub fn to_gate(answer: Resolution) -> Option<GateAnswer> {
    match answer {
        Resolution::Continue | Resolution::Retry => Some(GateAnswer::Continue),
        Resolution::IgnoreHook => Some(GateAnswer::Ignore),
        Resolution::Reject => Some(GateAnswer::Abort),
        Resolution::Approve => None,
    }
}

pub fn run(context: &Context, args: Args, out: &mut Output) -> Done {
    let mut opened = context.open()?;
    let subject = subject(&opened, &args.subject)?;
    let text = match args.text {
        Some(text) if text == "-" => Some(read_text(Path::new("-"))?),
        text => text,
    };
    let id = match subject {
        // Who rejects the work speaks of the task, which has failed then.
        Subject::Asking(session) => match session.task.filter(|_| args.answer == Resolution::Reject) {
            Some(id) => id,
            None => return answer_gate(&mut opened, &session, args.answer, text, out),
        },
        Subject::Task(id) => id,
    };
    let ignores = match args.answer {
        Resolution::IgnoreHook => blockers(&opened, id)?,
        _ => Vec::new(),
    };
    let inside = Inside::look_for_person(&opened, ConcernedSessions::Every(Some(id)))?;
    // Whoever approves goes over the heads of the gates, and the log says so.
    let authority = if args.answer == Resolution::Approve { Authority::Forced } else { Authority::Person };
    let work = match args.answer {
        Resolution::Approve => unseen_work(&mut opened, id)?,
        _ => None,
    };
    let command = Command::AnswerTask { id, answer: args.answer, text, ignores, work };
    let records = execution::execute_inside(&mut opened, inside, &command, authority)?;
    present::of(&opened, id, &records, out)?;
    let task = opened.task(id)?;
    if !out.is_json()
        && task.state == State::Completed
        && let Some(next) = next_step::for_change(&opened, &task)?
    {
        out.line(out.paint(Tone::Faint, format_args!("its work is on its branch: {next}")))?;
    }
    if !out.is_json() && matches!(task.state, State::Ready | State::NeedsContinuation) {
        out.line(out.paint(Tone::Faint, ResumeCommand::for_task(&opened, id)?.in_sentence("goes on with it")))?;
    }
    Ok(())
}

/// What a task's branch has that nobody has seen as a change yet. Whatever lies in its worktree is committed first: it is what
/// is approved.
fn unseen_work(opened: &mut Opened, id: TaskId) -> Result<Option<ChangeRef>, Failure> {
    let task = opened.task(id)?;
    let open = task.change.as_ref().is_some_and(|change| change.merged.is_none());
    let Some(branch) = task.workspace.as_ref().map(|workspace| workspace.branch.clone()).filter(|_| !open) else {
        return Ok(None);
    };
    let gathered = execution::run_git_work(opened, |dispatch| dispatch.gather(&task).map_err(hints::run))?;
    Ok(match gathered {
        Ok(found) => found.filter(|(_, commits)| *commits > 0).map(|(base, _)| ChangeRef {
            branch: Some(branch),
            base: Some(base),
            url: None,
            number: None,
        }),
        Err(error) => {
            Messages::new().warning(&format!("its work stays as it is in its worktree: {error}"));
            None
        }
    })
}

/// What is answered.
enum Subject {
    /// A session that asks, whether or not it has a task.
    Asking(Box<Session>),
    Task(TaskId),
}

/// The session of that name, if it asks; else its task, or the task of that name, unless a session asks about that.
fn subject(opened: &Opened, name: &str) -> Result<Subject, Failure> {
    let snapshot = opened.store.snapshot().map_err(hints::store)?;
    if let Ok(id) = name.parse::<TaskId>() {
        return of_task(opened, id);
    }
    let session = match name.parse::<SessionName>() {
        Ok(name) => opened.session(&name)?,
        Err(_) => {
            let failure =
                Failure::new(Code::NotFound, format!("`{}` is neither a task nor a session", text::fit(name, 60)));
            return Err(failure.hint(hints::sessions(name, &snapshot.sessions().map_err(hints::store)?)));
        }
    };
    if matches!(session.phase, Phase::Asking(_, _, None)) {
        return Ok(Subject::Asking(Box::new(session)));
    }
    let id = session.task.ok_or_else(|| {
        Failure::new(Code::Refused, format!("session `{}` works on no task", session.name))
            .hint("`windlass say` speaks to its agent while it runs")
    })?;
    of_task(opened, id)
}

fn of_task(opened: &Opened, id: TaskId) -> Result<Subject, Failure> {
    Ok(match asking(opened, id)? {
        Some(session) => Subject::Asking(Box::new(session)),
        None => Subject::Task(id),
    })
}

/// The session that works on a task and asks what is to happen with its stop hooks.
fn asking(opened: &Opened, id: TaskId) -> Result<Option<Session>, Failure> {
    let Some(name) = opened.task(id)?.lease.and_then(|lease| lease.session) else { return Ok(None) };
    let session = opened.store.snapshot().map_err(hints::store)?.session(&name).map_err(hints::view)?;
    Ok(session.filter(|session| session.wanted() == Wanted::Answer))
}

/// Answers a session that has not ended: whoever runs it goes on.
fn answer_gate(
    opened: &mut Opened,
    session: &Session,
    answer: Resolution,
    text: Option<String>,
    out: &mut Output,
) -> Done {
    let name = session.name.clone();
    let gate = to_gate(answer).ok_or_else(|| {
        Failure::new(Code::Refused, format!("session `{name}` has not ended"))
            .hint("`ignore-hook` lets its work pass this time; `reject` ends it, and then `approve` completes the task")
    })?;
    let command = Command::AnswerGate { session: name.clone(), answer: gate, text };
    let inside = Inside::look_for_person(opened, ConcernedSessions::Of(&session.name))?;
    execution::execute_inside(opened, inside, &command, Authority::Person)?;
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

/// The stop hooks that did not let go in the session that left the task to a person.
fn blockers(opened: &Opened, id: TaskId) -> Result<Vec<String>, Failure> {
    let hooks = opened.task(id)?.blocked.map(|blocked| blocked.hooks).unwrap_or_default();
    match hooks.is_empty() {
        false => Ok(hooks),
        true => Err(Failure::new(Code::Refused, format!("no hook has blocked {id}"))
            .hint(format!("`windlass why {id}` shows what did; `continue` goes on"))),
    }
}
