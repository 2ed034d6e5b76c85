//! Tests of the tools through the router, on a store of their own.

mod agreement;
mod arguments;
mod checkpoints;
mod hooks;
mod iterations;
mod tasks;

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;
use windlass_engine::{
    Authority, Command, CommandOrigin, EngineRules, EventRecord, NewSession, RunId, Session, StateView, TaskTypes,
    Timestamp,
};
use windlass_hooks::SecretMask;
use windlass_process::{OwnerLock, RunControl};
use windlass_store::{Lifetime, SqliteStore, Store};
use windlass_testkit::sample_session;

use crate::error::ToolError;
use crate::host::ToolHost;
use crate::router::ToolRouter;
use crate::validation::{AgentCommandPermission, ExecutionTrust, ProgramPermission, ValidatorEnv};

/// A project that permits every program.
pub(crate) struct TestToolHost {
    directory: TempDir,
    store: SqliteStore,
    nonce: u128,
    run: Option<RunId>,
    permission: ProgramPermission,
    owner_lock: Option<OwnerLock>,
    mask: SecretMask,
    now: i64,
    pub(crate) types: TaskTypes,
}

fn secret_mask() -> SecretMask {
    SecretMask::new([("TOKEN", "s3cr3t-value")])
}

impl TestToolHost {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = SqliteStore::create(&directory.path().join("windlass.db"), Lifetime::Service).unwrap();
        let permission = ProgramPermission {
            trust: ExecutionTrust::Trusted,
            agent_commands: AgentCommandPermission::Allow,
            validators: BTreeMap::new(),
        };
        let (mask, now) = (secret_mask(), 1_000_000);
        Self {
            directory,
            store,
            nonce: 0,
            run: None,
            permission,
            owner_lock: None,
            mask,
            now,
            types: TaskTypes::default(),
        }
    }
}

impl ToolHost for TestToolHost {
    fn store(&self) -> &SqliteStore {
        &self.store
    }

    fn execute_command(&mut self, command: &Command, _: &RunControl) -> Result<Vec<EventRecord>, ToolError> {
        self.nonce += 1;
        let (by, at, run) = ("ada".to_owned(), self.now(), self.run.clone());
        let origin = CommandOrigin { by, at, authority: Authority::Person, run, via: None };
        let rules = EngineRules {
            registry: windlass_engine::HookRegistry::with_builtins(),
            types: self.types.clone(),
            ..EngineRules::default()
        };
        Ok(self.store.execute_command(&rules, &origin, command, self.nonce)?)
    }

    fn task_types(&mut self) -> Result<TaskTypes, ToolError> {
        Ok(self.types.clone())
    }

    fn calling_run(&self) -> Result<Option<RunId>, ToolError> {
        Ok(self.run.clone())
    }

    fn secret_mask(&mut self) -> Result<&SecretMask, ToolError> {
        Ok(&self.mask)
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.now)
    }

    fn project_directory(&self) -> &Path {
        self.directory.path()
    }

    fn validator_env(&mut self) -> Result<ValidatorEnv<'_>, ToolError> {
        let place = self.directory.path();
        let owner_lock = self.owner_lock.get_or_insert_with(|| OwnerLock::acquire(&place.join("owners"), 1).unwrap());
        Ok(ValidatorEnv {
            directory: place.to_owned(),
            environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
            mask: secret_mask(),
            permission: self.permission.clone(),
            launcher: None,
            owner_lock,
        })
    }
}

pub(crate) fn test_router() -> ToolRouter<TestToolHost> {
    ToolRouter::new(TestToolHost::new())
}

impl ToolRouter<TestToolHost> {
    pub(crate) fn call_ok(&mut self, tool: &str, arguments: Value) -> Value {
        self.call_tool(tool, arguments, &RunControl::new()).unwrap_or_else(|error| panic!("{tool}: {error}"))
    }

    /// Returns the error as a caller reads it.
    pub(crate) fn call_error(&mut self, tool: &str, arguments: Value) -> String {
        let before = self.host.store.head().unwrap();
        let error = self.call_tool(tool, arguments, &RunControl::new()).expect_err("it has to fail");
        assert_eq!(self.host.store.head().unwrap(), before, "a call that failed has changed something");
        let causes = error.causes.iter().map(|cause| format!("\ncaused by: {cause}")).collect::<String>();
        let hint = error.word_hints(ToString::to_string).map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
        format!("[{}] {error}{causes}{hint}", error.code.name())
    }

    /// Starts a session with a goal. All later calls come from inside its turn.
    pub(crate) fn enter_turn(&mut self, goal: &str) -> Session {
        let start = Command::StartSession(NewSession {
            task: None,
            goal: Some(goal.to_owned()),
            config: String::new(),
            ..sample_session()
        });
        self.host.execute_command(&start, &RunControl::new()).unwrap();
        let session =
            self.host.store.begin_snapshot().unwrap().find_session(&"main".parse().unwrap()).unwrap().unwrap();
        self.host.run = session.current_turn().map(|turn| turn.run.clone());
        assert!(self.host.run.is_some(), "{session:?}");
        session
    }
}
