//! Agents that stay from turn to turn: opening a conversation, and speaking in it.
//!
//! Invariants:
//! - A conversation is in the log before anything is said in it.
//! - A conversation is about one task. The next one gets another, and a process of its own.
//! - Whether an agent remembers is known before it is prompted: one that does not is told what was before.
//!
//! Not here: the protocol (`agents`), when the agent has the word (`turn`).

use windlass_agents::{TurnEnd, acp};
use windlass_engine::{Command, Limits, Session, Turn};
use windlass_hooks::{clean, cut};
use windlass_process::Stream;

use crate::turn::Patience;
use crate::{RunError, Runner, Told};

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
        let control = self.dispatch.control_for(patience.resolve);
        let conversation = session.conversation.as_deref();
        if self.connection.as_ref().is_some_and(|connection| conversation != Some(connection.conversation())) {
            // Another task: the agent begins anew, in an environment that says so.
            self.part();
        }
        if self.connection.as_mut().is_some_and(|connection| connection.is_ready(&control)) {
            return Ok(Ok(true));
        }
        self.connection = None;
        let launcher = self.dispatch.settings.launcher.as_ref().expect("a loop has a supervisor");
        let mut environment = self.variables(session, turn);
        // It is the same process in the next one.
        environment.retain(|(name, _)| name != "WINDLASS_ITERATION");
        let spec = acp::spec(self.agent.invocation(&launcher.program), &self.dispatch.settings.directory, environment);
        let start = acp::Start {
            launcher,
            roster: self.dispatch.roster,
            spec: &spec,
            permission: acp::Permission::default(),
            before: session.conversation.as_deref(),
        };
        let acp::Opened { connection, anew } = match acp::Connection::open(&start, &control, &mut patience.until) {
            Ok(opened) => opened,
            Err(end) => return Ok(Err(self.agent.understood(end))),
        };
        let remembers = session.conversation.is_some() && anew.is_none();
        let mask = &self.dispatch.settings.mask;
        let anew = anew.map(|why| cut(&mask.text(&clean(&why)), Limits::REASON));
        let (run, conversation) = (turn.run.clone(), connection.conversation().to_owned());
        self.connection = Some(connection);
        self.give(&Command::OpenConversation { run, conversation, anew })?;
        Ok(Ok(remembers))
    }

    /// Has an agent that is ready answer a prompt.
    pub(crate) fn converse(&mut self, prompt: &str, patience: &mut Patience) -> TurnEnd {
        let control = self.dispatch.control_for(patience.resolve);
        let connection = self.connection.take().expect("it is ready");
        let (tell, shown) = (&mut self.dispatch.outside.tell, self.dispatch.outside.shows_output);
        let mut masked = self.dispatch.settings.mask.stream();
        let mut observe = |text: &str| {
            if shown {
                tell(Told::Output(Stream::Stdout, &masked.push(text.as_bytes())));
            }
        };
        let attention = acp::Attention { control: &control, until: &mut patience.until, tell: &mut observe };
        let (end, connection) = connection.prompt(prompt, attention);
        if shown {
            tell(Told::Output(Stream::Stdout, &masked.finish()));
        }
        self.connection = connection;
        self.agent.understood(end)
    }

    /// Lets the agent go.
    pub fn part(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.close();
        }
    }
}
