//! Agents that stay from turn to turn: opening a conversation, and speaking in it.
//!
//! Invariants:
//! - A conversation is in the log before anything is said in it.
//! - A conversation is about one task. The next one gets another, and a process of its own.
//! - Whether an agent remembers is known before it is prompted: one that does not is told what was before.
//!
//! Not here: the protocol (`agents`), when the agent has the word (`turn`).

use std::path::Path;
use std::time::Duration;

use windlass_agents::{Agent, TurnEnd, acp};
use windlass_engine::{Command, Limits, Session, Turn};
use windlass_hooks::{clean, cut};
use windlass_process::Stream;

use crate::record::{TurnRecord, named};
use crate::turn::{Patience, TurnOutcome};
use crate::{Dispatch, RunError, Runner, Told};

impl Runner<'_> {
    /// Has the agent ready for a turn. Answers whether it remembers what was before, or why it cannot work.
    pub(crate) fn ready(
        &mut self,
        session: &Session,
        turn: &Turn,
        patience: &mut Patience,
    ) -> Result<Result<bool, TurnEnd>, RunError> {
        if !self.agent.stays() {
            return Ok(Ok(false));
        }
        let control = self.dispatch.control.clone();
        let conversation = session.conversation.as_deref();
        if self.connection.as_ref().is_some_and(|connection| conversation != Some(connection.conversation())) {
            // Another task: the agent begins anew, in an environment that says so.
            self.part();
        }
        if self.connection.as_mut().is_some_and(|connection| connection.is_ready(&control, self.dispatch.roster)) {
            return Ok(Ok(true));
        }
        self.part();
        let launcher = self.dispatch.settings.launcher.as_ref().expect("a loop has a supervisor");
        let mut environment = self.variables(session, turn);
        // It is the same process in the next one.
        environment.retain(|(name, _)| name != "WINDLASS_ITERATION");
        let directory = self.dispatch.directory_of(Some(session));
        let spec = acp::spec(self.agent.invocation(&launcher.program), &directory, environment);
        let servers = self.servers(turn);
        let start = acp::Start {
            launcher,
            roster: self.dispatch.roster,
            spec: &spec,
            permissions: &self.agent.setup.permissions,
            servers: &servers,
            model: self.agent.setup.model.as_deref(),
            before: session.conversation.as_deref(),
            cost: session.watch.used_in_conversation.cost.unwrap_or_default(),
        };
        let acp::Opened { connection, anew, notices } =
            match acp::Connection::open(&start, &control, &mut patience.until) {
                Ok(opened) => opened,
                Err(end) => return Ok(Err(self.agent.understood(end))),
            };
        let remembers = session.conversation.is_some() && anew.is_none();
        let mask = &self.dispatch.settings.mask;
        let shown = |why: &str| cut(&mask.text(&clean(why)), Limits::REASON);
        let anew = anew.map(|why| shown(&why));
        for notice in &notices {
            (self.dispatch.outside.tell)(Told::Note(&shown(notice)));
        }
        let (run, conversation) = (turn.run.clone(), connection.conversation().to_owned());
        self.connection = Some(connection);
        self.give(&Command::OpenConversation { run, conversation, anew })?;
        Ok(Ok(remembers))
    }

    /// Has an agent that is ready answer a prompt.
    pub(crate) fn converse(&mut self, turn: &Turn, prompt: &str, patience: &mut Patience) -> TurnOutcome {
        let connection = self.connection.take().expect("it is ready");
        let (silence, file) = (self.allowance.silence, self.dispatch.settings.records.join(turn.effect.to_string()));
        let (turned, record) = self.dispatch.converse(connection, (prompt, silence), &file, patience);
        let acp::Turned { end, usage, aside, connection } = turned;
        self.connection = connection;
        TurnOutcome { end: understood(&self.agent, end, aside), time: patience.time, leaky: false, record, usage }
    }

    /// Lets the agent go.
    pub fn part(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.close();
        }
    }
}

impl Dispatch<'_> {
    /// Has an agent that is ready answer a prompt. The answer has the record of what it said and did, which is called like
    /// `file` but for the end of the name.
    pub(crate) fn converse(
        &mut self,
        connection: acp::Connection,
        (prompt, silence): (&str, Option<Duration>),
        file: &Path,
        patience: &mut Patience,
    ) -> (acp::Turned, Option<String>) {
        let control = self.control.clone();
        let (tell, shown) = (&mut self.outside.tell, self.outside.shows_output);
        let mut record = TurnRecord::new(&self.settings.mask, named(file, "turn"));
        let mut show = |bytes: &[u8]| {
            if shown {
                tell(Told::Output(Stream::Stdout, bytes));
            }
        };
        let attention = acp::Attention {
            control: &control,
            roster: self.roster,
            until: &mut patience.until,
            silence,
            tell: &mut |text| show(&record.push(text.as_bytes())),
        };
        let turned = connection.prompt(prompt, attention);
        let (rest, record) = record.finish();
        show(&rest);
        self.known.forget_changeable();
        (turned, record.and_then(|path| self.record_name(&path)))
    }
}

/// What the end of a turn means. Some agents put what went wrong in a message of its own, behind the model's.
pub(crate) fn understood(agent: &Agent, end: TurnEnd, aside: Option<String>) -> TurnEnd {
    let aside = aside.filter(|_| matches!(end, TurnEnd::Said(_)));
    match aside.map(|aside| agent.understood(TurnEnd::Said(aside))) {
        None | Some(TurnEnd::Said(_)) => agent.understood(end),
        Some(trouble) => trouble,
    }
}
