//! What every command starts from: where it is run, the project, its store and its rules.

use std::path::PathBuf;

use windlass_engine::{
    Authority, Command, EventType, Origin, Record, Registry, Rules, RunId, Session, SessionName, Task, TaskId, View,
};
use windlass_store::{Lifetime, Sqlite, Store};

use crate::config::Config;
use crate::environment;
use crate::failure::{Code, Failure};
use crate::output::Messages;
use crate::project::{self, Project};
use crate::remedy;

/// Where and for which project a command is run.
#[derive(Debug, Clone)]
pub struct Context {
    /// `--project`
    pub project: Option<PathBuf>,
    /// The working directory.
    pub directory: PathBuf,
}

impl Context {
    pub fn project(&self) -> Result<Project, Failure> {
        project::find(self.project.as_deref(), environment::project(), &self.directory)
    }

    /// Opens the project's store.
    pub fn open(&self) -> Result<Opened, Failure> {
        let project = self.project()?;
        let store = Sqlite::open(&project.store_file(), Lifetime::Command).map_err(remedy::store)?;
        Ok(Opened { project, store })
    }
}

/// Makes the store of a project, or finds the one that is there.
pub fn create_store(project: &Project) -> Result<(), Failure> {
    Sqlite::create(&project.store_file(), Lifetime::Command).map(drop).map_err(remedy::store)
}

/// A project with its store open.
pub struct Opened {
    pub project: Project,
    pub store: Sqlite,
}

impl Opened {
    /// Has the engine decide a command, and returns when its events are durable.
    pub fn execute(&mut self, command: &Command, authority: Authority) -> Result<Vec<Record>, Failure> {
        let config = Config::load(&self.project)?;
        let rules = rules(&config)?;
        let run = environment::run().map(|run| run.parse::<RunId>()).transpose().map_err(|error| {
            Failure::from_error(Code::Usage, &error).hint("WINDLASS_RUN is set by Windlass for the programs it starts")
        })?;
        let origin = Origin { by: environment::user(), at: environment::now(), authority, run };
        let nonce = environment::random()
            .map_err(|error| Failure::new(Code::System, "cannot get random bytes").caused_by(error))?;
        let records = self.store.execute(&rules, &origin, command, nonce).map_err(remedy::execute)?;
        warn_of_silent_hooks(&config, &records);
        Ok(records)
    }

    pub fn task(&self, id: TaskId) -> Result<Task, Failure> {
        let snapshot = self.store.snapshot().map_err(remedy::store)?;
        let task = snapshot.task(id).map_err(remedy::view)?;
        task.ok_or_else(|| remedy::refusal(&windlass_engine::Refusal::UnknownTask(id)))
    }

    pub fn session(&self, name: &SessionName) -> Result<Session, Failure> {
        let snapshot = self.store.snapshot().map_err(remedy::store)?;
        match snapshot.session(name).map_err(remedy::view)? {
            Some(session) => Ok(session),
            None => {
                let failure = Failure::new(Code::NotFound, format!("there is no session `{name}`"));
                Err(failure.hint(remedy::sessions(name.as_str(), &snapshot.sessions().map_err(remedy::store)?)))
            }
        }
    }
}

/// A hook that somebody wrote and that does not run must not be silent about it.
fn warn_of_silent_hooks(config: &Config, records: &[Record]) {
    let happened = |name: &str| {
        records.iter().any(|record| {
            let completed = name == "on_task_complete" && record.kind() == EventType::TaskCompleted;
            completed || record.kind().name() == name
        })
    };
    let silent = config.hooks.iter().filter(|hook| hook.enabled() && hook.effect().is_some());
    let silent: Vec<&str> = silent
        .filter(|hook| hook.points().any(|point| happened(point.name())))
        .map(|hook| hook.name.as_str())
        .collect();
    if !silent.is_empty() {
        Messages::new().warning(&format!("this command runs no hooks yet; not run: {}", silent.join(", ")));
    }
}

/// What the configuration means to the engine.
pub fn rules(config: &Config) -> Result<Rules, Failure> {
    let mut registry = Registry::with_builtins();
    for setting in config.builtin_settings() {
        registry
            .configure(setting.name, setting.enabled, setting.priority)
            .map_err(|error| Failure::from_error(Code::Config, &error))?;
    }
    Ok(Rules { registry, effects: None })
}
