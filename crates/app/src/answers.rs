//! Answers of a person: to a task that waits for one, and to a session that asks at its gate (`on_retry_limit: ask`).

use std::time::Duration;

use windlass_engine::{
    Authority, ChangeRef, Command, GateAnswer, Phase, Record, Resolution, Session, SessionName, TaskId, View, Wanted,
};
use windlass_process::Control;
use windlass_runner::Runner;
use windlass_text as text;

use crate::caller::Inside;
use crate::context::Opened;
use crate::person::ConcernedSessions;
use crate::{Code, Failure, Notice, environment, execution, hints};

/// The time between two looks into the log for an answer from elsewhere, while a question is open.
const ANSWER_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// An answer to a task or to a session.
#[derive(Debug)]
pub struct AnswerRequest {
    /// A task, or the session that asks at its gate or has left the task to a person.
    pub subject: String,
    pub answer: Resolution,
    pub text: Option<String>,
}

/// An answer that is recorded in the log.
#[derive(Debug)]
pub enum AnswerReport {
    Task(TaskId, Vec<Record>),
    /// The session goes on as soon as its process reads the log.
    Session(Box<Session>),
}

/// Answers a task or a session, as a person.
pub fn answer(opened: &mut Opened, request: AnswerRequest) -> Result<AnswerReport, Failure> {
    let AnswerRequest { subject, answer, text } = request;
    let id = match find_subject(opened, &subject)? {
        // A rejection is about the task, which then fails.
        AnswerSubject::Session(session) => match session.task.filter(|_| answer == Resolution::Reject) {
            Some(id) => id,
            None => {
                answer_session(opened, &session, answer, text)?;
                return Ok(AnswerReport::Session(session));
            }
        },
        AnswerSubject::Task(id) => id,
    };
    let ignores = match answer {
        Resolution::IgnoreHook => find_blocking_hooks(opened, id)?,
        _ => Vec::new(),
    };
    let inside = Inside::look_for_person(opened, ConcernedSessions::Every(Some(id)))?;
    // An approval overrules the gates; the log records this as forced.
    let (authority, work) = match answer {
        Resolution::Approve => (Authority::Forced, commit_unseen_work(opened, id)?),
        _ => (Authority::Person, None),
    };
    let command = Command::AnswerTask { id, answer, text, ignores, work };
    Ok(AnswerReport::Task(id, execution::execute_inside(opened, inside, &command, authority)?))
}

/// Commits the files in a task's worktree, and returns the change of its branch if the log has none yet: the answer approves it
/// together with the task.
fn commit_unseen_work(opened: &mut Opened, id: TaskId) -> Result<Option<ChangeRef>, Failure> {
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
            opened.front_end.show(Notice::Warning(&format!("its work stays as it is in its worktree: {error}")));
            None
        }
    })
}

/// The subject of an answer.
enum AnswerSubject {
    /// A session that asks, with or without a task.
    Session(Box<Session>),
    Task(TaskId),
}

/// Finds the task or session with a name. A session that asks stands for its task, and a task for the session that asks.
fn find_subject(opened: &Opened, name: &str) -> Result<AnswerSubject, Failure> {
    let snapshot = opened.store.snapshot().map_err(hints::store)?;
    if let Ok(id) = name.parse::<TaskId>() {
        return find_task_subject(opened, id);
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
        return Ok(AnswerSubject::Session(Box::new(session)));
    }
    let id = session.task.ok_or_else(|| {
        Failure::new(Code::Refused, format!("session `{}` works on no task", session.name))
            .hint("`windlass say` speaks to its agent while it runs")
    })?;
    find_task_subject(opened, id)
}

fn find_task_subject(opened: &Opened, id: TaskId) -> Result<AnswerSubject, Failure> {
    Ok(match find_asking_session(opened, id)? {
        Some(session) => AnswerSubject::Session(Box::new(session)),
        None => AnswerSubject::Task(id),
    })
}

/// Returns the session that works on a task and asks at its gate.
fn find_asking_session(opened: &Opened, id: TaskId) -> Result<Option<Session>, Failure> {
    let Some(name) = opened.task(id)?.lease.and_then(|lease| lease.session) else { return Ok(None) };
    let session = opened.store.snapshot().map_err(hints::store)?.session(&name).map_err(hints::view)?;
    Ok(session.filter(|session| session.wanted() == Wanted::Answer))
}

/// Answers a session that asks at its gate.
fn answer_session(
    opened: &mut Opened,
    session: &Session,
    answer: Resolution,
    text: Option<String>,
) -> Result<(), Failure> {
    let name = session.name.clone();
    let gate = gate_answer(answer).ok_or_else(|| {
        Failure::new(Code::Refused, format!("session `{name}` has not ended"))
            .hint("`ignore-hook` lets its work pass this time; `reject` ends it, and then `approve` completes the task")
    })?;
    let command = Command::AnswerGate { session: name, answer: gate, text };
    let inside = Inside::look_for_person(opened, ConcernedSessions::Of(&session.name))?;
    execution::execute_inside(opened, inside, &command, Authority::Person).map(drop)
}

/// Returns the stop hooks that blocked the session which left the task to a person.
fn find_blocking_hooks(opened: &Opened, id: TaskId) -> Result<Vec<String>, Failure> {
    let hooks = opened.task(id)?.blocked.map(|blocked| blocked.hooks).unwrap_or_default();
    match hooks.is_empty() {
        false => Ok(hooks),
        true => Err(Failure::new(Code::Refused, format!("no hook has blocked {id}"))
            .hint(format!("`windlass why {id}` shows what did; `continue` goes on"))),
    }
}

/// Returns the gate answer for a resolution, if a session at its gate can take it.
pub fn gate_answer(answer: Resolution) -> Option<GateAnswer> {
    match answer {
        Resolution::Continue | Resolution::Retry => Some(GateAnswer::Continue),
        Resolution::IgnoreHook => Some(GateAnswer::Ignore),
        Resolution::Reject => Some(GateAnswer::Abort),
        Resolution::Approve => None,
    }
}

/// A person's answer to the question of a session at its gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateReply {
    Session(GateAnswer),
    /// Fails the task, if the session has one; else ends the session.
    RejectTask,
}

impl GateReply {
    fn command(self, session: &Session, text: Option<String>) -> Command {
        let answer = match (self, session.task) {
            (Self::RejectTask, Some(id)) => {
                return Command::AnswerTask { id, answer: Resolution::Reject, text, ignores: vec![], work: None };
            }
            (Self::RejectTask, None) => GateAnswer::Abort,
            (Self::Session(answer), _) => answer,
        };
        Command::AnswerGate { session: session.name.clone(), answer, text }
    }
}

/// Input at an open question.
#[derive(Debug)]
pub enum PromptInput {
    /// No answer yet.
    Pending,
    /// This front end will give no answer.
    Closed,
    Reply(GateReply, Option<String>),
}

/// A prompt through which a front end asks a person about a session at its gate.
pub trait GatePrompt {
    fn open(&self, session: &Session);

    /// Waits for input, at most for `timeout`.
    fn wait_for_input(&self, timeout: Duration) -> Result<PromptInput, Failure>;

    fn close(&self);
}

/// Asks a person about a session at its gate, until the log has an answer from anywhere. Returns false if this front end gives no
/// answer; the session then stays at its gate.
pub(crate) fn ask_person(
    runner: &mut Runner<'_>,
    session: &Session,
    control: &Control,
    prompt: &dyn GatePrompt,
) -> Result<bool, Failure> {
    prompt.open(session);
    let is_answered = wait_for_answer(runner, session, control, prompt);
    prompt.close();
    is_answered
}

fn wait_for_answer(
    runner: &mut Runner<'_>,
    session: &Session,
    control: &Control,
    prompt: &dyn GatePrompt,
) -> Result<bool, Failure> {
    let name = &session.name;
    while !control.is_cancelled() && runner.session(name).map_err(hints::run)?.wanted() == Wanted::Answer {
        match prompt.wait_for_input(ANSWER_POLL_INTERVAL)? {
            PromptInput::Pending => {}
            PromptInput::Closed => return Ok(false),
            PromptInput::Reply(reply, text) => {
                let origin = execution::person_origin(Authority::Person, environment::steady_now());
                // The engine refuses the answer if another one came first; the loop then ends.
                drop(runner.begin(&origin, &reply.command(session, text)));
            }
        }
    }
    Ok(true)
}
