//! What a run is asked to work on: a goal, a task, or whatever is ready; and why a task cannot be worked on.

use windlass_engine::{Lease, Limits, Session, SessionName, State, Task, TaskId, View, Wanted, Work, awaited};
use windlass_process::is_alive;

use super::Args;
use super::again::Again;
use crate::commands::next_step::next_step;
use crate::context::Opened;
use crate::dispatch::Inside;
use crate::failure::{Code, Failure};
use crate::{environment, remedy, show};

/// What is to be worked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish<'a> {
    Goal(&'a str),
    Task(TaskId),
    /// The ready tasks, one after another.
    Graph,
}

impl<'a> Wish<'a> {
    pub fn of(args: &'a Args) -> Result<Self, Failure> {
        let goal = match (&args.goal, args.task.or(args.resolve)) {
            (Some(goal), _) => goal,
            (None, Some(id)) => return Ok(Self::Task(id)),
            (None, None) => return Ok(Self::Graph),
        };
        if goal.trim().is_empty() {
            return Err(Failure::new(Code::Usage, "the goal is empty")
                .hint("say what is to be done, or nothing at all to work on the tasks that are ready"));
        }
        if goal.len() > Limits::GOAL {
            let most = Limits::GOAL / 1024;
            return Err(Failure::new(Code::Usage, format!("the goal is longer than {most} KiB"))
                .hint("put the rest into a file, and name the file in the goal"));
        }
        Ok(Self::Goal(goal))
    }

    pub fn work(self) -> Work {
        match self {
            Self::Goal(_) | Self::Task(_) => Work::Given,
            Self::Graph => Work::Graph,
        }
    }

    /// Whether a session works on this.
    pub fn is_of(self, session: &Session) -> bool {
        match self {
            Self::Goal(goal) => session.goal.as_deref() == Some(goal),
            Self::Task(id) => session.task == Some(id) && session.work == Work::Given,
            Self::Graph => session.work == Work::Graph,
        }
    }
}

/// Says why a task cannot be worked on now, and what to do, if it cannot.
pub fn check_task(opened: &Opened, id: TaskId) -> Result<(), Failure> {
    let snapshot = opened.store.snapshot().map_err(remedy::store)?;
    let Some(task) = snapshot.task(id).map_err(remedy::view)? else {
        return Err(Failure::new(Code::NotFound, format!("there is no task {id}"))
            .hint("`windlass task list --all` shows every task"));
    };
    let refused = |why: String| Failure::new(Code::Refused, format!("cannot work on {id}: {why}"));
    let now = environment::now();
    if let Some(lease) = &task.lease {
        if lease.until.is_some_and(|until| until < now) {
            return Ok(());
        }
        let failure = refused(format!("it is held by {}", show::holder(lease, now)));
        return Err(failure.hint(held(opened, id, lease)?));
    }
    Err(match task.state {
        State::Ready | State::NeedsContinuation => return Ok(()),
        State::Created if task.open_dependencies == 0 => return Ok(()),
        State::Created => {
            let open = waits_for(&snapshot, &task)?;
            let failure = refused(format!("it waits for {}", list(&open)));
            let Some(first) = open.first() else { return Err(failure) };
            let undepend = format!("`windlass task undepend {id} {first}` lets it go on without {first}");
            failure.hint(match next_step(opened, *first)? {
                Some(step) => format!("`{}` leads on with {first}; {undepend}", step.command),
                None => undepend,
            })
        }
        State::Blocked => {
            let why = task.blocked.as_ref().map(|blocked| format!(": {}", blocked.reason)).unwrap_or_default();
            let failure = refused(format!("it is blocked{why}"));
            match next_step(opened, id)? {
                Some(step) => failure.hint(format!("when that is settled, `{}` lets it go on", step.command)),
                None => failure,
            }
        }
        State::Active | State::Submitted => refused(format!("it is {}, and nobody holds it under a lease", task.state))
            .hint(format!("whoever works on it completes it; `windlass task release {id}` gives it back")),
        State::Completed => {
            refused("it is completed".to_owned()).hint(format!("`windlass task reopen {id} --force` takes it up again"))
        }
        State::Failed => {
            let why = task.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            refused(format!("it has failed{why}")).hint(format!("`windlass task reopen {id}` takes it up again"))
        }
        State::Deleted => {
            refused("it is deleted".to_owned()).hint(format!("`windlass task reopen {id} --force` brings it back"))
        }
    })
}

/// What to do about a task that is held.
fn held(opened: &Opened, id: TaskId, lease: &Lease) -> Result<String, Failure> {
    let Some(name) = &lease.session else {
        return Ok(format!("wait for its holder; `windlass task release {id} --force` takes it away, and is recorded"));
    };
    Ok(match SessionHold::of(opened, name)? {
        // An agent may not end sessions.
        SessionHold::Alive if Inside::look(opened)?.run.is_some() => format!("leave it to the session {name}"),
        SessionHold::Alive => format!("wait for that session; `windlass session cancel {name}` ends it"),
        hold => hold.in_words(opened, id)?,
    })
}

/// A session that holds a task, as far as it concerns those who wait for the task.
enum SessionHold {
    /// Its process lives.
    Alive,
    /// It waits for an answer of a person, whether or not its process lives.
    Asks(Box<Session>),
    /// Its process is dead, and it was to be ended.
    Stopping,
    /// Its process is dead.
    Dead(Box<Session>),
}

impl SessionHold {
    fn of(opened: &Opened, name: &SessionName) -> Result<Self, Failure> {
        let session = Box::new(opened.session(name)?);
        Ok(match is_alive(&opened.project.owners(), session.owner.as_str()) {
            _ if session.wanted() == Wanted::Answer => Self::Asks(session),
            true => Self::Alive,
            false if session.stopping.is_some() || session.ended().is_some() => Self::Stopping,
            false => Self::Dead(session),
        })
    }

    /// Why a task is held, and what frees it.
    fn in_words(&self, opened: &Opened, id: TaskId) -> Result<String, Failure> {
        Ok(match self {
            Self::Alive => "it is running".to_owned(),
            Self::Asks(session) => {
                format!("it asks a person; `windlass answer {} continue` answers it", session.name)
            }
            Self::Stopping => {
                "its process is dead before its end; `windlass doctor --settle` ends it and frees the task".to_owned()
            }
            Self::Dead(session) => format!(
                "its process is dead; {}; `windlass task release {id} --force` frees the task",
                Again::with_session(opened, session).said("goes on with it")
            ),
        })
    }
}

/// Whether a task is held by a session whose process is dead, so that only a person leads on with it.
pub fn is_left(opened: &Opened, task: &Task) -> Result<bool, Failure> {
    let Some(name) = task.lease.as_ref().and_then(|lease| lease.session.as_ref()) else { return Ok(false) };
    Ok(!matches!(SessionHold::of(opened, name)?, SessionHold::Alive))
}

/// What holds a task, and what frees it where its holder does not move by itself.
pub fn held_in_words(opened: &Opened, id: TaskId, lease: &Lease) -> Result<String, Failure> {
    let holder = lease.holder();
    let Some(name) = &lease.session else { return Ok(format!("held by {holder}")) };
    Ok(match SessionHold::of(opened, name)? {
        SessionHold::Alive => format!("held by {holder}"),
        hold => format!("held by {holder}: {}", hold.in_words(opened, id)?),
    })
}

/// The tasks that a task waits for and that are not completed.
pub fn waits_for(view: &dyn View, task: &Task) -> Result<Vec<TaskId>, Failure> {
    let mut open = Vec::new();
    for other in awaited(view, task.id).map_err(remedy::view)? {
        let other = view.task(other).map_err(remedy::view)?;
        open.extend(other.filter(|other| other.state != State::Completed).map(|other| other.id));
    }
    Ok(open)
}

/// A few of them by name.
pub fn list(ids: &[TaskId]) -> String {
    const NAMED: usize = 5;
    let mut words: Vec<String> = ids.iter().take(NAMED).map(ToString::to_string).collect();
    if ids.len() > NAMED {
        words.push(format!("{} more", ids.len() - NAMED));
    }
    match words.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => "nothing".to_owned(),
    }
}
