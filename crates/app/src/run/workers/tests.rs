//! Tests of what workers take, on a store without running processes.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;

use tempfile::TempDir;
use windlass_config::Config;
use windlass_engine::{
    Authority, Command, CommandOrigin, EdgeKind, EngineRules, HookRegistry, NewSession, NewTask, Refusal, StateView,
    Task, TaskId, TaskTypes, Timestamp, WorkspaceMode,
};
use windlass_runner::RunError;
use windlass_store::{ExecuteError, Lifetime, SqliteStore, Store};
use windlass_testkit::sample_session;

use super::super::agent_choice::explain_no_task_for_agent;
use super::super::session_choice::has_ready_task;
use super::assignment::{AgentAssignment, find_left_sessions};
use super::worker::WorkerJob;
use crate::SilentFrontEnd;
use crate::context::OpenedProject;
use crate::project::Project;

/// Returns a moment of a day that is long over.
fn moment(second: i64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + second * 1000)
}

/// A project without a configuration.
struct PoolProject {
    _place: TempDir,
    opened: OpenedProject,
    /// The second of the last command.
    second: u8,
}

impl PoolProject {
    fn new(commands: Vec<Command>) -> Self {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join(".windlass")).unwrap();
        let project = Project::open_at(place.path()).unwrap().unwrap();
        let store = SqliteStore::create(&project.store_file(), Lifetime::Command).unwrap();
        let opened = OpenedProject::new(project, store, false, Arc::new(SilentFrontEnd));
        let mut created = Self { _place: place, opened, second: 0 };
        commands.into_iter().for_each(|command| created.execute(&command).unwrap());
        created
    }

    fn execute(&mut self, command: &Command) -> Result<(), ExecuteError> {
        self.second += 1;
        let at = moment(self.second.into());
        let rules = EngineRules { registry: HookRegistry::with_builtins(), ..EngineRules::default() };
        let origin = CommandOrigin { by: "ada".to_owned(), at, authority: Authority::Person, run: None, via: None };
        self.opened.store.execute_command(&rules, &origin, command, self.second.into()).map(drop)
    }

    fn load_task(&self, id: u64) -> Task {
        self.opened.store.begin_snapshot().unwrap().find_task(TaskId(id)).unwrap().unwrap()
    }

    fn find_next_task(&self, left: &[u64]) -> Option<TaskId> {
        let config = Config::load(&self.opened.project.root).unwrap();
        let assignment = AgentAssignment::new(&config, Some("command:true"), WorkspaceMode::InPlace);
        let left: BTreeSet<TaskId> = left.iter().map(|id| TaskId(*id)).collect();
        let found = assignment.find_next_task(&self.opened.store, &BTreeSet::new(), &left, None).unwrap();
        found.map(|(task, _)| task.id)
    }
}

fn add_task() -> Command {
    Command::CreateTask(NewTask { goal: "One".to_owned(), ..NewTask::default() })
}

fn start_session(name: &str, task: u64) -> Command {
    Command::StartSession(NewSession { name: name.parse().unwrap(), task: Some(TaskId(task)), ..sample_session() })
}

/// Claims a task until a moment that is long over.
fn claim_task(task: u64) -> Command {
    let (owner, until) = ("bob".parse().unwrap(), moment(60));
    Command::ClaimTask { id: Some(TaskId(task)), owner, until, agent: None }
}

#[test]
fn left_sessions_are_in_order_of_their_starts() {
    let resume = Command::ResumeSession {
        name: "zinc".parse().unwrap(),
        dead: "w1".parse().unwrap(),
        owner: "w2".parse().unwrap(),
        max_iterations: None,
    };
    let starts = [start_session("zinc", 1), start_session("amber", 2), start_session("mast", 3), resume];
    let project = PoolProject::new([add_task(), add_task(), add_task()].into_iter().chain(starts).collect());
    let mut sessions = project.opened.store.begin_snapshot().unwrap().open_sessions().unwrap();
    for _ in 0..2 {
        sessions.reverse();
        let left = find_left_sessions(&project.opened, sessions.clone(), WorkspaceMode::InPlace);
        let names: Vec<&str> = left.iter().map(|session| session.name.as_str()).collect();
        assert_eq!(names, ["zinc", "amber", "mast"]);
    }
}

/// The start of its session would be refused until the other task is completed.
#[test]
fn task_with_ended_lease_is_not_taken_while_it_waits() {
    let mut project = PoolProject::new(vec![add_task(), add_task(), claim_task(2)]);
    assert_eq!(project.find_next_task(&[1]), Some(TaskId(2)));
    project.execute(&Command::AddEdge { from: TaskId(2), kind: EdgeKind::DependsOn, to: TaskId(1) }).unwrap();
    assert_eq!(project.find_next_task(&[1]), None);
}

#[test]
fn task_with_ended_lease_is_no_ready_work_while_it_waits() {
    let mut project = PoolProject::new(vec![add_task(), add_task(), claim_task(2), start_session("zinc", 1)]);
    let check_ready_work = |project: &PoolProject, reason: Option<&str>| {
        let store = &project.opened.store;
        assert_eq!(has_ready_task(store).unwrap(), reason.is_none());
        let explain = explain_no_task_for_agent(store, &TaskTypes::default(), "command:true", WorkspaceMode::InPlace);
        assert_eq!(explain.unwrap().as_deref(), reason);
    };
    check_ready_work(&project, None);
    project.execute(&Command::AddEdge { from: TaskId(2), kind: EdgeKind::DependsOn, to: TaskId(1) }).unwrap();
    check_ready_work(&project, Some("nothing is ready"));
}

#[test]
fn refused_start_is_stale_only_after_change_of_task() {
    let mut project = PoolProject::new(vec![add_task(), claim_task(1)]);
    let job = WorkerJob::New(Box::new(project.load_task(1)), "mine".parse().unwrap());
    let refused = RunError::Execute(ExecuteError::Refused(Refusal::NothingReady));
    assert!(!job.is_stale(&project.opened.store, &refused).unwrap(), "the same start would be refused again");
    project.second = 60;
    project.execute(&start_session("theirs", 1)).unwrap();
    assert!(job.is_stale(&project.opened.store, &refused).unwrap(), "another process has the task");
    assert!(!job.is_stale(&project.opened.store, &RunError::Killed).unwrap());
}
