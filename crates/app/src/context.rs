//! The context of a command: its directory, the project and the store.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;

use windlass_engine::{Session, SessionName, StateView, Task, TaskId, TaskState};
use windlass_store::{Lifetime, SqliteStore, TaskFilter};

use crate::fleet::{self, OwnerLiveness};
use crate::project::{self, Project};
use crate::views::UsageCounter;
use crate::{Failure, FailureCode, FrontEnd, Notice, environment, hints, store_records};

/// The directory and the options of a command.
#[derive(Debug, Clone)]
pub struct CommandContext {
    /// `--project`
    pub project: Option<PathBuf>,
    /// The working directory.
    pub directory: PathBuf,
    /// `--trust`: the configuration may run its programs, and the store counts, for this command alone.
    pub trust: bool,
    pub front_end: Arc<dyn FrontEnd>,
}

impl CommandContext {
    /// Returns the context of a program that works in this directory.
    pub fn new(directory: PathBuf, front_end: Arc<dyn FrontEnd>) -> Self {
        Self { project: None, directory, trust: false, front_end }
    }

    pub fn find_project(&self) -> Result<Project, Failure> {
        project::find_project(self.project.as_deref(), environment::project_variable(), &self.directory)
    }

    /// Opens the project's store, if this machine made it.
    pub fn open_project(&self) -> Result<OpenedProject, Failure> {
        self.open_project_for(Lifetime::Command)
    }

    /// Opens the project's store for a command that only reads and starts nothing. A foreign store is opened, too.
    pub fn open_project_to_read(&self) -> Result<OpenedProject, Failure> {
        let project = self.find_project()?;
        let (store, foreign) = store_records::open_store_to_read(&project, Lifetime::Command, self.trust)?;
        if let Some(why) = foreign {
            let note = format!("{}; it is only read: `windlass trust` shows what it holds", why.message);
            self.front_end.show_notice(Notice::Note(&note));
        }
        let opened = self.with_open_store(project, store);
        fleet::refresh_copy(&opened)?;
        Ok(opened)
    }

    /// Opens the project's store for a lifetime, if this machine made it. A command sees what other machines of a fleet have done
    /// until now; a service follows them.
    pub fn open_project_for(&self, lifetime: Lifetime) -> Result<OpenedProject, Failure> {
        let project = self.find_project()?;
        let store = store_records::open_store(&project, lifetime, self.trust)?;
        let opened = self.with_open_store(project, store);
        if lifetime == Lifetime::Command {
            fleet::refresh_copy(&opened)?;
        }
        Ok(opened)
    }

    /// Opens the project's store, or creates it.
    pub fn open_or_create_project(&self, lifetime: Lifetime) -> Result<OpenedProject, Failure> {
        let project = self.find_project()?;
        let store = store_records::open_or_create_store(&project, lifetime, self.trust)?;
        Ok(self.with_open_store(project, store))
    }

    /// Combines a project with its open store.
    pub fn with_open_store(&self, project: Project, store: SqliteStore) -> OpenedProject {
        let mut opened = OpenedProject::new(project, store, self.trust, self.front_end.clone());
        fleet::wait_for_log_shortly(&mut opened);
        opened
    }
}

/// A project with its open store.
pub struct OpenedProject {
    pub project: Project,
    pub store: SqliteStore,
    pub trust: bool,
    pub front_end: Arc<dyn FrontEnd>,
    /// The name of the person who gives commands; without it, the user of this process.
    pub person: Option<String>,
    /// The usage of this day, as counted last.
    pub usage_counter: RefCell<UsageCounter>,
}

impl OpenedProject {
    pub fn new(project: Project, store: SqliteStore, trust: bool, front_end: Arc<dyn FrontEnd>) -> Self {
        Self { project, store, trust, front_end, person: None, usage_counter: RefCell::default() }
    }

    /// Returns whether a living process runs a session. A session of another machine counts as running: only that machine knows.
    pub fn is_session_running(&self, session: &Session) -> bool {
        !self.project.is_owner_dead(session.owner.as_str())
    }

    /// Returns whether a living process of this machine runs a session.
    pub fn is_session_running_here(&self, session: &Session) -> bool {
        self.project.owner_liveness(session.owner.as_str()) == OwnerLiveness::Alive
    }

    pub fn require_task(&self, id: TaskId) -> Result<Task, Failure> {
        let snapshot = self.store.begin_snapshot().map_err(hints::store_failure)?;
        let task = snapshot.find_task(id).map_err(hints::view_failure)?;
        task.ok_or_else(|| hints::refusal_failure(&windlass_engine::Refusal::UnknownTask(id)))
    }

    pub fn require_session(&self, name: &SessionName) -> Result<Session, Failure> {
        let snapshot = self.store.begin_snapshot().map_err(hints::store_failure)?;
        match snapshot.find_session(name).map_err(hints::view_failure)? {
            Some(session) => Ok(session),
            None => {
                let failure = Failure::new(FailureCode::NotFound, format!("there is no session `{name}`"));
                Err(failure.with_hint(hints::suggest_session(
                    name.as_str(),
                    &snapshot.all_sessions().map_err(hints::store_failure)?,
                )))
            }
        }
    }
}

/// Returns the tasks in these states, oldest first. Use it only for states that few tasks have at a time.
pub fn list_tasks_in_states(store: &SqliteStore, states: &[TaskState]) -> Result<Vec<Task>, Failure> {
    let mut found = Vec::new();
    visit_tasks_in_states(store, states, |task| {
        found.push(task);
        true
    })?;
    Ok(found)
}

/// Visits the tasks in these states, oldest first, until `visit` returns false.
pub fn visit_tasks_in_states(
    store: &SqliteStore,
    states: &[TaskState],
    visit: impl FnMut(Task) -> bool,
) -> Result<(), Failure> {
    let filter = TaskFilter { states: states.to_vec(), ..TaskFilter::default() };
    store.begin_snapshot().and_then(|snapshot| snapshot.visit_tasks(&filter, visit)).map_err(hints::store_failure)
}
