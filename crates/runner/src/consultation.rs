//! Asking an agent something outside the turns of a session, whatever drives it.
//!
//! ```text
//!   consult ─► command: a new process      headless: a new process, in the conversation before     acp: the same process
//! ```
//!
//! Invariants:
//! - It is a fresh conversation, which nobody else takes part in and the log does not keep.
//! - Nothing of it outlives the consultation.
//! - Whoever is asked has no part in a turn: it is handed none of our tools, and what it does through `windlass` is no word of
//!   the agent whose work is looked at.
//!
//! Not here: what is asked, and what the answer means (`hook/pipeline/review`).

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use windlass_agents::headless::{self, Dialect, Ended, Place, Span};
use windlass_agents::{Agent, Driver, TurnEnd, acp};
use windlass_engine::{Cost, TaskId, Usage};
use windlass_process::{Environment, Finished, Spec, overlay};

use crate::conversation::understood;
use crate::headless::Listened;
use crate::record::{TurnRecord, named};
use crate::turn::{Patience, TurnOutcome};
use crate::{Dispatch, RunError};

/// A conversation with an agent that is asked.
pub(crate) struct Consultation {
    agent: Agent,
    directory: PathBuf,
    environment: Environment,
    /// What its records are called, but for the end of the name.
    file: PathBuf,
    patience: Patience,
    silence: Option<Duration>,
    /// An agent that stays.
    connection: Option<acp::Connection>,
    /// The conversation with one that can take it up.
    conversation: Option<String>,
    used: Usage,
}

impl Consultation {
    /// Whether whoever is asked knows what was said before.
    pub fn remembers(&self) -> bool {
        self.connection.is_some() || self.conversation.is_some()
    }

    /// Lets the agent go.
    pub fn end(self) {
        if let Some(connection) = self.connection {
            connection.close();
        }
    }
}

impl Dispatch<'_> {
    /// Prepares to ask an agent in a directory, with records of a name, for so long. Nothing is started yet.
    pub(crate) fn consultation(
        &self,
        agent: &Agent,
        (directory, file): (&Path, PathBuf),
        (time, silence): (Duration, Option<Duration>),
        task: Option<TaskId>,
    ) -> Consultation {
        let told: Vec<(&str, OsString)> = vec![
            ("WINDLASS_RUN", OsString::new()),
            ("WINDLASS_DEBT", OsString::new()),
            ("WINDLASS_SESSION", OsString::new()),
            ("WINDLASS_ITERATION", OsString::new()),
            ("WINDLASS_TRUSTED", OsString::new()),
            ("WINDLASS_JUDGING", "1".into()),
            ("WINDLASS_TASK_ID", task.map(|id| id.to_string()).unwrap_or_default().into()),
            ("WINDLASS_PROJECT_DIR", self.settings.project.clone().into()),
        ];
        let mut agent = agent.clone();
        agent.setup.judged = Some(directory.to_owned());
        Consultation {
            environment: overlay(&agent.environment(&self.settings.environment), told),
            agent,
            directory: directory.to_owned(),
            file,
            patience: Patience { time: Some(time), until: Instant::now().checked_add(time) },
            silence,
            connection: None,
            conversation: None,
            used: Usage::default(),
        }
    }

    /// Asks an agent, and waits for the end of its answer.
    pub(crate) fn consult(&mut self, with: &mut Consultation, prompt: &str) -> Result<TurnOutcome, RunError> {
        let asked = match &with.agent.driver {
            Driver::Headless(dialect) => self.consult_headless(with, *dialect, prompt)?,
            Driver::Acp(_) | Driver::Scripted(_) => self.consult_staying(with, prompt),
            Driver::Command(_) => self.consult_program(with, prompt)?,
        };
        Ok(TurnOutcome { time: with.patience.time, ..asked })
    }

    fn consult_program(&mut self, with: &Consultation, prompt: &str) -> Result<TurnOutcome, RunError> {
        let mut spec = with.agent.spec(prompt, &with.directory, with.environment.clone(), &with.file);
        spec.silence = with.silence;
        self.ask_program(&with.agent, spec, &with.patience, &with.file)
    }

    /// Has a program answer a prompt.
    pub(crate) fn ask_program(
        &mut self,
        agent: &Agent,
        mut spec: Spec,
        patience: &Patience,
        file: &Path,
    ) -> Result<TurnOutcome, RunError> {
        spec.timeout = patience.until.map(|until| until.saturating_duration_since(Instant::now()));
        let ran = self.start(&spec)?;
        let (leaky, record) = match &ran {
            Ok(finished) => {
                self.settings.mask.spilled(finished);
                (finished.leaky, self.record(finished))
            }
            Err(_) => (false, None),
        };
        let ran = ran.map(|finished| self.settings.mask.run(finished));
        let end = agent.answer(&ran);
        let record = record.or_else(|| self.kept(file, ran.as_ref().ok()?, &end));
        Ok(TurnOutcome { leaky, record, ..TurnOutcome::ended(end, patience.time) })
    }

    /// What a program has printed that is not its answer, in a file.
    fn kept(&self, file: &Path, finished: &Finished, end: &TurnEnd) -> Option<String> {
        let (stdout, stderr) = (finished.stdout.text(), finished.stderr.text());
        if matches!(end, TurnEnd::Said(said) if *said == stdout) {
            return None;
        }
        let mut record = TurnRecord::new(&self.settings.mask, named(file, "turn"));
        for text in [stdout, stderr] {
            record.push(text.as_bytes());
        }
        self.record_name(&record.finish().1?)
    }

    fn consult_headless(
        &mut self,
        with: &mut Consultation,
        dialect: Dialect,
        prompt: &str,
    ) -> Result<TurnOutcome, RunError> {
        let before = with.conversation.clone();
        let random = (self.outside.random)().map_err(RunError::Random)?;
        let new = dialect.name(random);
        let place = match &before {
            Some(name) => Place::Before(name),
            None => Place::New(new.as_deref()),
        };
        let script = headless::script(&with.agent, dialect, place, None);
        let mut spec = headless::spec(script, prompt, &with.directory, with.environment.clone());
        spec.silence = with.silence;
        spec.timeout = with.patience.until.map(|until| until.saturating_duration_since(Instant::now()));
        let mut heard_of = new.clone().or(before.clone());
        let Listened { heard, leaky, record } = self.listen((dialect, place), &spec, &with.file, &mut |_, name| {
            heard_of = Some(name.to_owned());
            Ok(())
        })?;
        let usage = heard.used(with.used);
        with.used = if heard.span == Span::Conversation { heard.usage } else { with.used.plus(usage) };
        with.conversation = heard_of.filter(|name| headless::is_name(name));
        let end = match heard.ended {
            Ended::Turn(end) => end,
            Ended::Gone(why) => TurnEnd::Broken(why),
        };
        Ok(TurnOutcome { end, time: None, leaky, record, usage })
    }

    fn consult_staying(&mut self, with: &mut Consultation, prompt: &str) -> TurnOutcome {
        let connection = match with.connection.take() {
            Some(connection) => connection,
            None => match self.open_connection(with) {
                Ok(connection) => connection,
                Err(end) => return TurnOutcome::ended(end, None),
            },
        };
        let (turned, record) = self.converse(connection, (prompt, with.silence), &with.file, &mut with.patience);
        let acp::Turned { end, usage, aside, connection, .. } = turned;
        with.connection = connection;
        TurnOutcome { end: understood(&with.agent, end, aside), time: None, leaky: false, record, usage }
    }

    fn open_connection(&self, with: &mut Consultation) -> Result<acp::Connection, TurnEnd> {
        let Some(launcher) = &self.settings.launcher else {
            return Err(TurnEnd::Broken("only `windlass run` can speak with it".to_owned()));
        };
        let invocation = with.agent.invocation(&launcher.program);
        let spec = acp::spec(invocation, &with.directory, with.environment.clone());
        let setup = &with.agent.setup;
        let start = acp::Start {
            launcher,
            roster: self.roster,
            spec: &spec,
            permissions: &setup.permissions,
            servers: &setup.servers,
            model: setup.model.as_deref(),
            before: None,
            cost: Cost::default(),
        };
        let opened = acp::Connection::open(&start, &self.control, &mut with.patience.until);
        opened.map(|opened| opened.connection).map_err(|end| with.agent.understood(end))
    }
}
