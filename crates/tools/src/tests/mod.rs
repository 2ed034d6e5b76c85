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
    Authority, Command, NewSession, Origin, Record, Rules, RunId, Session, Terms, Timestamp, Types, View, Work,
};
use windlass_hooks::Mask;
use windlass_process::{Control, Roster};
use windlass_store::{Lifetime, Sqlite, Store};

use crate::error::ToolError;
use crate::host::ToolHost;
use crate::router::ToolRouter;
use crate::validation::{AgentCommands, Permission, Standing, Workshop};

/// A project that permits every program.
pub(crate) struct Shop {
    directory: TempDir,
    store: Sqlite,
    nonce: u128,
    run: Option<RunId>,
    permission: Permission,
    roster: Option<Roster>,
    mask: Mask,
    now: i64,
    pub(crate) types: Types,
}

fn secrets() -> Mask {
    Mask::new([("TOKEN", "s3cr3t-value")])
}

impl Shop {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = Sqlite::create(&directory.path().join("windlass.db"), Lifetime::Service).unwrap();
        let permission = Permission {
            standing: Standing::Trusted,
            agent_commands: AgentCommands::Allow,
            validators: BTreeMap::new(),
        };
        let (mask, now) = (secrets(), 1_000_000);
        Self { directory, store, nonce: 0, run: None, permission, roster: None, mask, now, types: Types::default() }
    }
}

impl ToolHost for Shop {
    fn store(&self) -> &Sqlite {
        &self.store
    }

    fn execute(&mut self, command: &Command, _: &Control) -> Result<Vec<Record>, ToolError> {
        self.nonce += 1;
        let (by, at, run) = ("ada".to_owned(), self.now(), self.run.clone());
        let origin = Origin { by, at, authority: Authority::Person, run, via: None };
        let rules = Rules {
            registry: windlass_engine::Registry::with_builtins(),
            types: self.types.clone(),
            ..Rules::default()
        };
        Ok(self.store.execute(&rules, &origin, command, self.nonce)?)
    }

    fn types(&mut self) -> Result<Types, ToolError> {
        Ok(self.types.clone())
    }

    fn run(&self) -> Result<Option<RunId>, ToolError> {
        Ok(self.run.clone())
    }

    fn mask(&mut self) -> Result<&Mask, ToolError> {
        Ok(&self.mask)
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.now)
    }

    fn directory(&self) -> &Path {
        self.directory.path()
    }

    fn workshop(&mut self) -> Result<Workshop<'_>, ToolError> {
        let place = self.directory.path();
        let roster = self.roster.get_or_insert_with(|| Roster::enlist(&place.join("owners"), 1).unwrap());
        Ok(Workshop {
            directory: place.to_owned(),
            environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
            mask: secrets(),
            permission: self.permission.clone(),
            launcher: None,
            roster,
        })
    }
}

pub(crate) fn desk() -> ToolRouter<Shop> {
    ToolRouter::new(Shop::new())
}

impl ToolRouter<Shop> {
    pub(crate) fn ok(&mut self, tool: &str, arguments: Value) -> Value {
        self.call(tool, arguments, &Control::new()).unwrap_or_else(|error| panic!("{tool}: {error}"))
    }

    /// Returns the error as a caller reads it.
    pub(crate) fn fails(&mut self, tool: &str, arguments: Value) -> String {
        let before = self.ground.store.head().unwrap();
        let error = self.call(tool, arguments, &Control::new()).expect_err("it has to fail");
        assert_eq!(self.ground.store.head().unwrap(), before, "a call that failed has changed something");
        let causes = error.causes.iter().map(|cause| format!("\ncaused by: {cause}")).collect::<String>();
        let hint = error.word_hints(ToString::to_string).map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
        format!("[{}] {error}{causes}{hint}", error.code.name())
    }

    /// Starts a session with a goal. All later calls come from inside its turn.
    pub(crate) fn enter(&mut self, goal: &str) -> Session {
        let name = "main".parse().unwrap();
        let start = Command::StartSession(NewSession {
            name,
            task: None,
            goal: Some(goal.to_owned()),
            work: Work::Given,
            grounds: windlass_engine::Grounds::InPlace,
            config: String::new(),
            protected: None,
            agent: "command:true".to_owned(),
            terms: Terms::default(),
            owner: "w1".parse().unwrap(),
            nonce: 7,
            fresh: false,
        });
        self.ground.execute(&start, &Control::new()).unwrap();
        let session = self.ground.store.snapshot().unwrap().session(&"main".parse().unwrap()).unwrap().unwrap();
        self.ground.run = session.turn().map(|turn| turn.run.clone());
        assert!(self.ground.run.is_some(), "{session:?}");
        session
    }
}
