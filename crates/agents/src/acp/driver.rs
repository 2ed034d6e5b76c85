//! The driver of agents that stay: one process and one conversation for many prompts.
//!
//! Invariants:
//! - A connection belongs to one conversation. A request for another conversation starts another process.
//! - If the agent or one of its servers has exited, the driver opens a new connection, and loads the previous conversation
//!   if the agent can.

use windlass_process::{Launcher, Roster};

use super::line::Attention;
use super::opening::OpenOutcome;
use super::start::Start;
use super::{Connection, spec};
use crate::{Agent, AgentDriver, PromptRequest, TurnBudget, TurnEnd, TurnHost, TurnOutcome, TurnOutput};

/// The driver of agents that speak the Agent Client Protocol.
pub(crate) struct AcpDriver<'a> {
    agent: Agent,
    launcher: Option<Launcher>,
    roster: &'a Roster,
    connection: Option<Connection>,
}

impl AgentDriver for AcpDriver<'_> {
    fn prompt(&mut self, request: &PromptRequest, budget: &mut TurnBudget, host: &mut dyn TurnHost) -> TurnOutcome {
        let prompt = self.connect(request, budget, host).and_then(|remembers| host.word_prompt(remembers));
        let prompt = match prompt {
            Ok(prompt) => prompt,
            Err(end) => return TurnOutcome::ended(end),
        };
        let connection = self.connection.take().expect("it was connected above");
        let attention =
            Attention { roster: self.roster, budget, tell: &mut |text| host.write(TurnOutput::Transcript(text)) };
        let (outcome, mut connection) = connection.prompt(&prompt, attention);
        let aside = connection.as_mut().and_then(Connection::take_aside);
        self.connection = connection;
        TurnOutcome { end: self.understood(outcome.end, aside), ..outcome }
    }

    fn close(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.close();
        }
    }
}

impl<'a> AcpDriver<'a> {
    pub fn new(agent: Agent, launcher: Option<Launcher>, roster: &'a Roster) -> Self {
        Self { agent, launcher, roster, connection: None }
    }

    /// Ensures a connection to the requested conversation, or to a new one. Returns whether the agent remembers the earlier
    /// prompts.
    fn connect(
        &mut self,
        request: &PromptRequest,
        budget: &mut TurnBudget,
        host: &mut dyn TurnHost,
    ) -> Result<bool, TurnEnd> {
        let before = request.conversation.as_deref();
        if self.connection.as_ref().is_some_and(|connection| before != Some(connection.conversation())) {
            // For another task the agent starts again, because its environment names the task.
            self.close();
        }
        if self.connection.as_mut().is_some_and(|connection| connection.is_ready(&budget.control, self.roster)) {
            return Ok(true);
        }
        self.close();
        let Some(launcher) = &self.launcher else {
            return Err(TurnEnd::Broken("only `windlass run` can speak with it".to_owned()));
        };
        let invocation = self.agent.invocation(&launcher.program);
        let setup = &self.agent.setup;
        let servers: Vec<_> = setup.servers.iter().chain(&request.tools).cloned().collect();
        let start = Start {
            launcher,
            roster: self.roster,
            spec: &spec(invocation, &request.directory, request.environment.clone()),
            permissions: &setup.permissions,
            servers: &servers,
            model: setup.model.as_deref(),
            before,
            cost: request.used.cost.unwrap_or_default(),
        };
        let opened = Connection::open(&start, budget);
        let OpenOutcome { connection, anew, notices } = opened.map_err(|end| self.agent.understood(end))?;
        for notice in &notices {
            host.write(TurnOutput::Notice(notice));
        }
        let conversation = connection.conversation().to_owned();
        self.connection = Some(connection);
        host.open_conversation(&conversation, anew.as_deref())?;
        Ok(before.is_some() && anew.is_none())
    }

    /// Returns what the end of a turn means. Some agents report a failure in a separate message after the model's.
    fn understood(&self, end: TurnEnd, aside: Option<String>) -> TurnEnd {
        let aside = aside.filter(|_| matches!(end, TurnEnd::Said(_)));
        match aside.map(|aside| self.agent.understood(TurnEnd::Said(aside))) {
            None | Some(TurnEnd::Said(_)) => self.agent.understood(end),
            Some(trouble) => trouble,
        }
    }
}
