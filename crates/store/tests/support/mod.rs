//! Shared parts of the store tests: origins, commands, and temporary stores.

#![allow(dead_code, reason = "each test file uses a part of it")]

pub mod outcomes;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use tempfile::TempDir;
use windlass_engine::{
    Authority, Command, CommandOrigin, EngineRules, EventRecord, HookRegistry, NewSession, NewTask, OwnerName, RunId,
    Seq, TaskId, TaskPatch, Timestamp, TurnAnswer,
};
use windlass_store::{EventFilter, Lifetime, SqliteStore, Store};
use windlass_testkit::sample_session;

pub fn command_origin() -> CommandOrigin {
    CommandOrigin { by: "ada".to_owned(), at: test_time(), authority: Authority::Person, run: None, via: None }
}

pub fn holder_origin(epoch: u64) -> CommandOrigin {
    CommandOrigin { authority: Authority::Holder(windlass_engine::Epoch(epoch)), ..command_origin() }
}

/// 2026-01-17T10:00:00Z.
pub fn test_time() -> Timestamp {
    Timestamp::from_millis(1_768_644_000_000)
}

pub fn engine_rules() -> EngineRules {
    EngineRules { registry: HookRegistry::with_builtins(), ..EngineRules::default() }
}

/// Returns a nonce that is unique among the commits of this process.
pub fn next_nonce() -> u128 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    (u128::from(std::process::id()) << 64) | u128::from(NEXT.fetch_add(1, Ordering::Relaxed))
}

pub fn create_task(goal: &str) -> Command {
    Command::CreateTask(NewTask { goal: goal.to_owned(), ..NewTask::default() })
}

pub fn create_dependent_task(goal: &str, depends_on: &[u64]) -> Command {
    let depends_on = depends_on.iter().copied().map(TaskId).collect();
    Command::CreateTask(NewTask { goal: goal.to_owned(), depends_on, ..NewTask::default() })
}

pub fn rename_task(id: u64, goal: &str) -> Command {
    Command::UpdateTask { id: TaskId(id), patch: TaskPatch { goal: Some(goal.to_owned()), ..TaskPatch::default() } }
}

pub fn claim_task(owner: &str) -> Command {
    Command::ClaimTask { id: None, owner: owner_name(owner), until: test_time().add_millis(60_000), agent: None }
}

pub fn start_task(id: u64) -> Command {
    Command::StartTask { id: TaskId(id), context: serde_json::Value::Null }
}

pub fn complete_task(id: u64) -> Command {
    Command::CompleteTask { id: TaskId(id), result: Some("done".to_owned()), artifacts: vec![] }
}

/// Returns the command that starts the session `main` and its first turn.
pub fn start_session(task: Option<u64>) -> Command {
    Command::StartSession(NewSession { task: task.map(TaskId), ..sample_session() })
}

/// Returns the run of a turn of the session `main`.
pub fn run_id(iteration: u32) -> RunId {
    RunId { session: "main".parse().expect("a session name"), iteration, nonce: 7 }
}

pub fn finish_turn(iteration: u32) -> Command {
    Command::FinishTurn {
        run: run_id(iteration),
        answer: TurnAnswer { output: "said".to_owned(), ..TurnAnswer::default() },
    }
}

pub fn owner_name(name: &str) -> OwnerName {
    name.parse().expect("an owner's name")
}

/// Executes a command that must succeed, and returns its events.
pub fn commit_command(store: &mut impl Store, command: &Command) -> Vec<EventRecord> {
    store.execute_command(&engine_rules(), &command_origin(), command, next_nonce()).expect("the command is legal")
}

pub fn read_log(store: &impl Store) -> Vec<EventRecord> {
    store.read_events(&EventFilter::default(), Seq::START, usize::MAX).expect("the log can be read")
}

/// A temporary directory with the path of a store in it.
pub struct TempStore {
    pub directory: TempDir,
    pub path: PathBuf,
}

impl TempStore {
    pub fn new() -> Self {
        let directory = TempDir::new().expect("a temporary directory");
        let path = directory.path().join("windlass.db");
        Self { directory, path }
    }

    pub fn create(&self) -> SqliteStore {
        SqliteStore::create(&self.path, Lifetime::Service).expect("a store can be made")
    }

    pub fn open(&self) -> SqliteStore {
        SqliteStore::open(&self.path, Lifetime::Service).expect("the store can be opened")
    }

    pub fn wal_path(&self) -> PathBuf {
        with_suffix(&self.path, "-wal")
    }

    /// Opens a plain SQLite connection to the file.
    pub fn open_connection(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(&self.path).expect("the file can be opened")
    }
}

/// Returns a path with a suffix appended to its name.
pub fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Commits tasks, edges and a session one after another. Returns the events of each commit.
pub fn fill_store(store: &mut impl Store, tasks: u64) -> Vec<Vec<EventRecord>> {
    let mut commits = Vec::new();
    for id in 1..=tasks {
        let text = format!("{id}: {}", "mend what is broken ".repeat(10));
        let command = if id % 4 == 0 { create_dependent_task(&text, &[id - 1, id - 2]) } else { create_task(&text) };
        commits.push(commit_command(store, &command));
        if id % 4 == 1 {
            commits.push(commit_command(store, &start_task(id)));
            commits.push(commit_command(store, &complete_task(id)));
        }
    }
    commits.push(commit_command(store, &start_session((tasks > 1).then_some(2))));
    commits
}

/// Returns the position, the digest and the link of the chain of each event.
pub fn read_chain(place: &TempStore) -> Vec<(i64, Vec<u8>, Vec<u8>)> {
    let connection = place.open_connection();
    let mut query = connection.prepare("SELECT seq, digest, chain FROM events ORDER BY seq").expect("a query");
    let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).expect("the log can be read");
    rows.map(|row| row.expect("a row")).collect()
}

/// Returns the scopes of a copy with their versions.
pub fn read_scope_versions(place: &TempStore) -> Vec<(String, i64)> {
    let connection = place.open_connection();
    let mut query = connection.prepare("SELECT scope, version FROM scopes ORDER BY scope").expect("a query");
    let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("the scopes can be read");
    rows.map(|row| row.expect("a row")).collect()
}
