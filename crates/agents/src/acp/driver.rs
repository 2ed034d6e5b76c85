//! The driver of agents that stay: one process and one conversation for many prompts.
//!
//! Invariants:
//! - A connection belongs to one conversation. A request for another conversation starts another process.
//! - If the agent or one of its servers has exited, the driver opens a new connection, and loads the previous conversation
//!   if the agent can.

use windlass_process::{OwnerLock, SupervisorLauncher};

use super::channel::TurnContext;
use super::handshake::HandshakeOutcome;
use super::start_request::AgentStartRequest;
use super::{AcpConnection, build_agent_spec};
use crate::{Agent, AgentDriver, PromptRequest, TurnBudget, TurnEnd, TurnHost, TurnOutcome, TurnOutput};

/// The driver of agents that speak the Agent Client Protocol.
pub(crate) struct AcpDriver<'a> {
    agent: Agent,
    launcher: Option<SupervisorLauncher>,
    owner_lock: &'a OwnerLock,
    connection: Option<AcpConnection>,
}

impl AgentDriver for AcpDriver<'_> {
    fn run_turn(&mut self, request: &PromptRequest, budget: &mut TurnBudget, host: &mut dyn TurnHost) -> TurnOutcome {
        let prompt = self.ensure_connection(request, budget, host).and_then(|remembers| host.word_prompt(remembers));
        let prompt = match prompt {
            Ok(prompt) => prompt,
            Err(end) => return TurnOutcome::from_turn_end(end),
        };
        let connection = self.connection.take().expect("it was connected above");
        let context = TurnContext {
            owner_lock: self.owner_lock,
            budget,
            transcript: &mut |text| host.write_output(TurnOutput::Transcript(text)),
        };
        let (outcome, mut connection) = connection.run_turn(&prompt, context);
        let aside = connection.as_mut().and_then(AcpConnection::take_trailing_message);
        self.connection = connection;
        TurnOutcome { end: self.classify_turn_end(outcome.end, aside), ..outcome }
    }

    fn close_agent(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.close_connection();
        }
    }
}

impl<'a> AcpDriver<'a> {
    pub fn new(agent: Agent, launcher: Option<SupervisorLauncher>, owner_lock: &'a OwnerLock) -> Self {
        Self { agent, launcher, owner_lock, connection: None }
    }

    /// Ensures a connection to the requested conversation, or to a new one. Returns whether the agent remembers the earlier
    /// prompts.
    fn ensure_connection(
        &mut self,
        request: &PromptRequest,
        budget: &mut TurnBudget,
        host: &mut dyn TurnHost,
    ) -> Result<bool, TurnEnd> {
        let before = request.conversation.as_deref();
        if self.connection.as_ref().is_some_and(|connection| before != Some(connection.conversation())) {
            // For another task the agent starts again, because its environment names the task.
            self.close_agent();
        }
        if self.connection.as_mut().is_some_and(|connection| connection.is_ready(&budget.control, self.owner_lock)) {
            return Ok(true);
        }
        self.close_agent();
        let Some(launcher) = &self.launcher else {
            return Err(TurnEnd::Broken("only `windlass run` can speak with it".to_owned()));
        };
        let invocation = self.agent.build_invocation(&launcher.program);
        let setup = &self.agent.setup;
        let servers: Vec<_> = setup.servers.iter().chain(&request.tools).cloned().collect();
        let mut spec = build_agent_spec(invocation, &request.directory, request.environment.clone());
        spec.wrapper.clone_from(&request.wrapper);
        let start = AgentStartRequest {
            launcher,
            owner_lock: self.owner_lock,
            spec: &spec,
            permissions: &setup.permissions,
            servers: &servers,
            model: setup.model.as_deref(),
            before,
            cost: request.used.cost.unwrap_or_default(),
        };
        let opened = AcpConnection::open_conversation(&start, budget);
        let HandshakeOutcome { connection, restarted_because: anew, notices } =
            opened.map_err(|end| self.agent.classify_turn_end(end))?;
        for notice in &notices {
            host.write_output(TurnOutput::Notice(notice));
        }
        let conversation = connection.conversation().to_owned();
        self.connection = Some(connection);
        host.open_conversation(&conversation, anew.as_deref())?;
        Ok(before.is_some() && anew.is_none())
    }

    /// Returns what the end of a turn means. Some agents report a failure in a separate message after the model's.
    fn classify_turn_end(&self, end: TurnEnd, aside: Option<String>) -> TurnEnd {
        let aside = aside.filter(|_| matches!(end, TurnEnd::Answered(_)));
        match aside.map(|aside| self.agent.classify_turn_end(TurnEnd::Answered(aside))) {
            None | Some(TurnEnd::Answered(_)) => self.agent.classify_turn_end(end),
            Some(trouble) => trouble,
        }
    }
}
