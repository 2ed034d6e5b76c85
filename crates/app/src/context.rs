//! The context of a command: its directory, the project and the store.

use std::path::PathBuf;
use std::sync::Arc;

use windlass_engine::{Session, SessionName, State, Task, TaskId, View};
use windlass_store::{Lifetime, Sqlite, TaskFilter};

use crate::project::{self, Project};
use crate::{Code, Failure, FrontEnd, Notice, environment, hints, store_records};

/// The directory and the options of a command.
#[derive(Debug, Clone)]
pub struct Context {
    /// `--project`
    pub project: Option<PathBuf>,
    /// The working directory.
    pub directory: PathBuf,
    /// `--trust`: the configuration may run its programs, and the store counts, for this command alone.
    pub trust: bool,
    pub front_end: Arc<dyn FrontEnd>,
}

impl Context {
    /// Returns the context of a program that works in this directory.
    pub fn new(directory: PathBuf, front_end: Arc<dyn FrontEnd>) -> Self {
        Self { project: None, directory, trust: false, front_end }
    }

    pub fn project(&self) -> Result<Project, Failure> {
        project::find(self.project.as_deref(), environment::project(), &self.directory)
    }

    /// Opens the project's store, if this machine made it.
    pub fn open(&self) -> Result<Opened, Failure> {
        self.open_for(Lifetime::Command)
    }

    /// Opens the project's store for a command that only reads and starts nothing. A foreign store is opened, too.
    pub fn open_to_read(&self) -> Result<Opened, Failure> {
        let project = self.project()?;
        let (store, foreign) = store_records::open_quietly(&project, Lifetime::Command, self.trust)?;
        if let Some(why) = foreign {
            let note = format!("{}; it is only read: `windlass trust` shows what it holds", why.message);
            self.front_end.show(Notice::Note(&note));
        }
        Ok(self.opened(project, store))
    }

    /// Opens the project's store for a lifetime, if this machine made it.
    pub fn open_for(&self, lifetime: Lifetime) -> Result<Opened, Failure> {
        let project = self.project()?;
        let store = store_records::open(&project, lifetime, self.trust)?;
        Ok(self.opened(project, store))
    }

    /// Opens the project's store, or creates it.
    pub fn create(&self, lifetime: Lifetime) -> Result<Opened, Failure> {
        let project = self.project()?;
        let store = store_records::create(&project, lifetime, self.trust)?;
        Ok(self.opened(project, store))
    }

    /// Combines a project with its open store.
    pub fn opened(&self, project: Project, store: Sqlite) -> Opened {
        Opened { project, store, trust: self.trust, front_end: self.front_end.clone() }
    }
}

/// A project with its open store.
pub struct Opened {
    pub project: Project,
    pub store: Sqlite,
    pub trust: bool,
    pub front_end: Arc<dyn FrontEnd>,
}

impl Opened {
    /// Returns whether a living process runs a session.
    pub fn is_running(&self, session: &Session) -> bool {
        windlass_process::is_alive(&self.project.owners(), session.owner.as_str())
    }

    pub fn task(&self, id: TaskId) -> Result<Task, Failure> {
        let snapshot = self.store.snapshot().map_err(hints::store)?;
        let task = snapshot.task(id).map_err(hints::view)?;
        task.ok_or_else(|| hints::refusal(&windlass_engine::Refusal::UnknownTask(id)))
    }

    pub fn session(&self, name: &SessionName) -> Result<Session, Failure> {
        let snapshot = self.store.snapshot().map_err(hints::store)?;
        match snapshot.session(name).map_err(hints::view)? {
            Some(session) => Ok(session),
            None => {
                let failure = Failure::new(Code::NotFound, format!("there is no session `{name}`"));
                Err(failure.hint(hints::sessions(name.as_str(), &snapshot.sessions().map_err(hints::store)?)))
            }
        }
    }
}

/// Returns the tasks in these states, oldest first. Use it only for states that few tasks have at a time.
pub fn tasks_in(store: &Sqlite, states: &[State]) -> Result<Vec<Task>, Failure> {
    let mut found = Vec::new();
    visit_tasks(store, states, |task| {
        found.push(task);
        true
    })?;
    Ok(found)
}

/// Visits the tasks in these states, oldest first, until `visit` returns false.
pub fn visit_tasks(store: &Sqlite, states: &[State], visit: impl FnMut(Task) -> bool) -> Result<(), Failure> {
    let filter = TaskFilter { states: states.to_vec(), ..TaskFilter::default() };
    store.snapshot().and_then(|snapshot| snapshot.tasks(&filter, visit)).map_err(hints::store)
}
