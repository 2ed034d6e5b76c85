//! Answers of a person: to a task that waits for one, and to a session that asks at its gate (`on_retry_limit: ask`).

use std::time::Duration;

use windlass_engine::{
    Authority, ChangeRef, Command, Event, EventRecord, EventType, GateAnswer, NextAction, Session, SessionName,
    SessionPhase, StateView, TaskId, TaskResolution, TaskState,
};
use windlass_process::RunControl;
use windlass_runner::{RunError, Runner};
use windlass_store::{EventFilter, ExecuteError};
use windlass_text as text;

use crate::caller::CallerContext;
use crate::context::OpenedProject;
use crate::event_text::{describe_gate_answer, summarize_event};
use crate::next_step::find_change_step;
use crate::person::ConcernedSessions;
use crate::resume_command::ResumeCommand;
use crate::{Failure, FailureCode, Notice, environment, execution, hints};

/// The time between two looks into the log for an answer from elsewhere, while a question is open.
const ANSWER_POLL_INTERVAL: Duration = Duration::from_millis(500);
/// The newest answers that are searched for the one that ended a question.
const MAX_SEARCHED_ANSWERS: usize = 100;

/// An answer to a task or to a session.
#[derive(Debug)]
pub struct AnswerRequest {
    /// A task, or the session that asks at its gate or has left the task to a person.
    pub subject: String,
    pub answer: TaskResolution,
    pub text: Option<String>,
}

/// An answer that is recorded in the log.
#[derive(Debug)]
pub enum AnswerReport {
    Task(TaskId, Vec<EventRecord>),
    /// The process of the session acts on the answer as soon as it reads the log.
    Session(Box<Session>, TaskResolution),
}

impl AnswerReport {
    /// Describes what happens now, with the next command. The answer is in the log already, so a failure to read the state is no
    /// failure of the answer.
    pub fn describe_outcome(&self, opened: &OpenedProject) -> String {
        self.describe_effect(opened).unwrap_or_else(|_| "the answer is recorded".to_owned())
    }

    fn describe_effect(&self, opened: &OpenedProject) -> Result<String, Failure> {
        let effect = match self {
            Self::Task(id, _) => format!("{id} is now {}", opened.require_task(*id)?.state.name().replace('_', " ")),
            Self::Session(session, answer) => describe_session_effect(session, *answer),
        };
        Ok(match self.describe_next_step(opened)? {
            Some(next) => format!("{effect}; {next}"),
            None => effect,
        })
    }

    /// Describes the next command, unless a process goes on by itself or nothing is left to do.
    pub fn describe_next_step(&self, opened: &OpenedProject) -> Result<Option<String>, Failure> {
        match self {
            Self::Task(id, _) => describe_task_step(opened, *id),
            Self::Session(session, _) if opened.is_session_running(session) => Ok(None),
            Self::Session(session, _) => {
                let again = ResumeCommand::for_session(opened, session).describe_in_sentence("runs it");
                Ok(Some(format!("once {again}")))
            }
        }
    }
}

fn describe_task_step(opened: &OpenedProject, id: TaskId) -> Result<Option<String>, Failure> {
    let task = opened.require_task(id)?;
    Ok(match task.state {
        TaskState::Completed => {
            find_change_step(opened, &task)?.map(|next| format!("its work is on its branch: {next}"))
        }
        TaskState::Ready | TaskState::NeedsContinuation => {
            Some(ResumeCommand::for_task(opened, id)?.describe_in_sentence("resumes it"))
        }
        _ => None,
    })
}

/// Describes what an answer does to a session at its gate.
pub fn describe_session_effect(session: &Session, answer: TaskResolution) -> String {
    let effect = if answer == TaskResolution::Reject { "ends" } else { "continues" };
    format!("session {} {effect} with this answer", session.name)
}

/// Describes the last answer to a task or a session, with the person who gave it.
pub fn describe_last_answer(opened: &OpenedProject, subject: &str) -> Result<Option<String>, Failure> {
    let newest = read_answers_back(opened, subject, 1)?;
    let describe = |record: &EventRecord| {
        format!("the last answer is from {}: {}", record.envelope.metadata.triggered_by, summarize_event(record))
    };
    Ok(newest.first().map(describe))
}

/// Describes the first answer to a task or a session since a time, in milliseconds: the person who gave it and the choice, but not
/// the text.
pub fn describe_answer_since(opened: &OpenedProject, subject: &str, since: i64) -> Result<Option<String>, Failure> {
    let answers = read_answers_back(opened, subject, MAX_SEARCHED_ANSWERS)?;
    let first = answers.iter().take_while(|record| record.envelope.timestamp.millis() >= since).last();
    let describe = |record: &EventRecord| {
        let choice = match &record.envelope.event {
            Event::TaskAnswered(answered) => answered.answer.name(),
            Event::GateAnswered(answered) => describe_gate_answer(answered.answer),
            _ => return None,
        };
        Some(format!("the answer is from {}: {choice}", record.envelope.metadata.triggered_by))
    };
    Ok(first.and_then(describe))
}

/// Reads the newest answers to a task or a session, newest first.
fn read_answers_back(opened: &OpenedProject, subject: &str, most: usize) -> Result<Vec<EventRecord>, Failure> {
    let snapshot = opened.store.begin_snapshot().map_err(hints::store_failure)?;
    let name = subject.parse::<SessionName>().ok();
    let session = name.as_ref().map(|name| snapshot.find_session(name)).transpose().map_err(hints::view_failure)?;
    let task = subject.parse::<TaskId>().ok().or_else(|| session.flatten()?.task);
    if task.is_none() && name.is_none() {
        return Ok(Vec::new());
    }
    let types = vec![EventType::TaskAnswered, EventType::GateAnswered];
    let filter = EventFilter { types, task, session: name.filter(|_| task.is_none()) };
    opened.store.read_events_back(&filter, None, most).map_err(hints::store_failure)
}

/// Answers a task or a session, as a person.
pub fn submit_answer(opened: &mut OpenedProject, request: AnswerRequest) -> Result<AnswerReport, Failure> {
    let AnswerRequest { subject, answer, text } = request;
    let id = match find_subject(opened, &subject)? {
        // A rejection is about the task, which then fails.
        AnswerSubject::Session(session) => match session.task.filter(|_| answer == TaskResolution::Reject) {
            Some(id) => id,
            None => {
                answer_session(opened, &session, answer, text)?;
                return Ok(AnswerReport::Session(session, answer));
            }
        },
        AnswerSubject::Task(id) => id,
    };
    let ignores = match answer {
        TaskResolution::IgnoreHook => find_blocking_hooks(opened, id)?,
        _ => Vec::new(),
    };
    let inside = CallerContext::detect_for_person(opened, ConcernedSessions::Every(Some(id)))?;
    // An approval overrules the gates; the log records this as forced.
    let (authority, work) = match answer {
        TaskResolution::Approve => (Authority::Forced, commit_unseen_work(opened, id)?),
        _ => (Authority::Person, None),
    };
    let command = Command::AnswerTask { id, answer, text, ignores, work };
    Ok(AnswerReport::Task(id, execution::execute_with_caller(opened, inside, &command, authority)?))
}

/// Commits the files in a task's worktree, and returns the change of its branch if the log has none yet: the answer approves it
/// together with the task.
fn commit_unseen_work(opened: &mut OpenedProject, id: TaskId) -> Result<Option<ChangeRef>, Failure> {
    let task = opened.require_task(id)?;
    let open = task.change.as_ref().is_some_and(|change| change.merged.is_none());
    let Some(branch) = task.workspace.as_ref().map(|workspace| workspace.branch.clone()).filter(|_| !open) else {
        return Ok(None);
    };
    let gathered =
        execution::run_git_work(opened, |dispatch| dispatch.commit_and_measure(&task).map_err(hints::run_failure))?;
    Ok(match gathered {
        Ok(found) => found.filter(|(_, commits)| *commits > 0).map(|(base, _)| ChangeRef {
            branch: Some(branch),
            base: Some(base),
            url: None,
            number: None,
        }),
        Err(error) => {
            opened.front_end.show_notice(Notice::Warning(&format!("its work remains in its worktree: {error}")));
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
fn find_subject(opened: &OpenedProject, name: &str) -> Result<AnswerSubject, Failure> {
    let snapshot = opened.store.begin_snapshot().map_err(hints::store_failure)?;
    if let Ok(id) = name.parse::<TaskId>() {
        return find_task_subject(opened, id);
    }
    let session = match name.parse::<SessionName>() {
        Ok(name) => opened.require_session(&name)?,
        Err(_) => {
            let failure = Failure::new(
                FailureCode::NotFound,
                format!("`{}` is neither a task nor a session", text::fit_to_width(name, 60)),
            );
            return Err(failure
                .with_hint(hints::suggest_session(name, &snapshot.all_sessions().map_err(hints::store_failure)?)));
        }
    };
    if matches!(session.phase, SessionPhase::Asking(_, _, None)) {
        return Ok(AnswerSubject::Session(Box::new(session)));
    }
    let id = session.task.ok_or_else(|| {
        Failure::new(FailureCode::Refused, format!("session `{}` works on no task", session.name))
            .with_hint("`windlass say` speaks to its agent while it runs")
    })?;
    find_task_subject(opened, id)
}

fn find_task_subject(opened: &OpenedProject, id: TaskId) -> Result<AnswerSubject, Failure> {
    Ok(match find_asking_session(opened, id)? {
        Some(session) => AnswerSubject::Session(Box::new(session)),
        None => AnswerSubject::Task(id),
    })
}

/// Returns the session that works on a task and asks at its gate.
fn find_asking_session(opened: &OpenedProject, id: TaskId) -> Result<Option<Session>, Failure> {
    let Some(name) = opened.require_task(id)?.lease.and_then(|lease| lease.session) else { return Ok(None) };
    let session = opened
        .store
        .begin_snapshot()
        .map_err(hints::store_failure)?
        .find_session(&name)
        .map_err(hints::view_failure)?;
    Ok(session.filter(|session| session.next_action() == NextAction::Answer))
}

/// Answers a session that asks at its gate.
fn answer_session(
    opened: &mut OpenedProject,
    session: &Session,
    answer: TaskResolution,
    text: Option<String>,
) -> Result<(), Failure> {
    let name = session.name.clone();
    let gate = to_gate_answer(answer).ok_or_else(|| {
        Failure::new(FailureCode::Refused, format!("session `{name}` has not ended"))
            .with_hint("`ignore-hook` lets its work pass this time")
    })?;
    let command = Command::AnswerGate { session: name, answer: gate, text };
    let inside = CallerContext::detect_for_person(opened, ConcernedSessions::Named(&session.name))?;
    execution::execute_with_caller(opened, inside, &command, Authority::Person).map(drop)
}

/// Returns the stop hooks that blocked the session which left the task to a person.
fn find_blocking_hooks(opened: &OpenedProject, id: TaskId) -> Result<Vec<String>, Failure> {
    let hooks = opened.require_task(id)?.blocked.map(|blocked| blocked.hooks).unwrap_or_default();
    match hooks.is_empty() {
        false => Ok(hooks),
        true => Err(Failure::new(FailureCode::Refused, format!("no hook has blocked {id}"))
            .with_hint(format!("`windlass why {id}` shows what did; `continue` resumes it"))),
    }
}

/// Returns the gate answer for a resolution, if a session at its gate can take it.
pub fn to_gate_answer(answer: TaskResolution) -> Option<GateAnswer> {
    match answer {
        TaskResolution::Continue | TaskResolution::Retry => Some(GateAnswer::Continue),
        TaskResolution::IgnoreHook => Some(GateAnswer::Ignore),
        TaskResolution::Reject => Some(GateAnswer::Abort),
        TaskResolution::Approve => None,
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
    fn to_command(self, session: &Session, text: Option<String>) -> Command {
        let answer = match (self, session.task) {
            (Self::RejectTask, Some(id)) => {
                return Command::AnswerTask { id, answer: TaskResolution::Reject, text, ignores: vec![], work: None };
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
    fn open_prompt(&self, session: &Session);

    /// Waits for input, at most for `timeout`.
    fn wait_for_input(&self, timeout: Duration) -> Result<PromptInput, Failure>;

    fn close_prompt(&self);
}

/// Asks a person about a session at its gate, until the log has an answer from anywhere or the run is cancelled. Returns false if
/// this front end gives no answer; the session then stays at its gate.
pub(crate) fn ask_person(
    runner: &mut Runner<'_>,
    session: &Session,
    control: &RunControl,
    prompt: &dyn GatePrompt,
) -> Result<bool, Failure> {
    prompt.open_prompt(session);
    let answered = wait_for_answer(runner, session, control, prompt);
    prompt.close_prompt();
    answered
}

fn wait_for_answer(
    runner: &mut Runner<'_>,
    session: &Session,
    control: &RunControl,
    prompt: &dyn GatePrompt,
) -> Result<bool, Failure> {
    let name = &session.name;
    while !control.is_cancelled()
        && runner.load_session(name).map_err(hints::run_failure)?.next_action() == NextAction::Answer
    {
        match prompt.wait_for_input(ANSWER_POLL_INTERVAL)? {
            PromptInput::Pending => {}
            PromptInput::Closed => return Ok(false),
            PromptInput::Reply(reply, text) => {
                let origin = execution::person_origin(Authority::Person, environment::steady_timestamp());
                match runner.commit_and_report(&origin, &reply.to_command(session, text)) {
                    // Another answer came first; the loop then ends.
                    Ok(()) | Err(RunError::Execute(ExecuteError::Refused(_))) => {}
                    Err(error) => return Err(hints::run_failure(error)),
                }
            }
        }
    }
    Ok(true)
}
