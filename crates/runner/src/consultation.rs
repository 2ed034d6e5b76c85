//! Consultations: questions to an agent outside the turns of a session.
//!
//! Invariants:
//! - Each consultation is a fresh conversation. No other agent takes part in it, and the log does not keep it.
//! - Nothing of it outlives the consultation.
//! - The agent takes no part in a turn: it gets none of our tools, and its calls of `windlass` do not count as calls of the
//!   agent whose work it judges.
//!
//! Not here: prompting (`journal`), the question and the meaning of its answer (`hook/pipeline/review`).

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use windlass_agents::{Agent, AgentDriver, PromptRequest, TurnBudget, TurnOutcome};
use windlass_engine::{AgentUsage, TaskId};
use windlass_process::overlay_environment;

use crate::journal::PromptSource;
use crate::{EffectRunner, RunError};

/// A conversation with a consulted agent.
pub(crate) struct AgentConsultation<'a> {
    driver: Box<dyn AgentDriver + 'a>,
    request: PromptRequest,
    budget: TurnBudget,
}

impl AgentConsultation<'_> {
    /// Closes the agent.
    pub fn close_agent(mut self) {
        self.driver.close_agent();
    }
}

impl<'a> EffectRunner<'a> {
    /// Prepares a conversation with an agent in a directory, with a record file and time limits. Starts nothing yet.
    pub(crate) fn prepare_consultation(
        &self,
        agent: &Agent,
        (directory, file): (&Path, PathBuf),
        (time, silence): (Duration, Option<Duration>),
        task: Option<TaskId>,
    ) -> AgentConsultation<'a> {
        let variables: Vec<(&str, OsString)> = vec![
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
        agent.setup.judged_directory = Some(directory.to_owned());
        let request = PromptRequest {
            directory: directory.to_owned(),
            environment: overlay_environment(&agent.build_environment(&self.settings.environment), variables),
            wrapper: Vec::new(),
            tools: None,
            conversation: None,
            used: AgentUsage::default(),
            nonce: 0,
            record: file,
        };
        AgentConsultation {
            driver: agent.create_driver(self.settings.launcher.as_ref(), self.owner_lock),
            request,
            budget: TurnBudget::new(Some(time), silence, self.control.clone()),
        }
    }

    /// Prompts the agent, and waits for the end of its answer. `word` writes the question: for an agent that remembers the
    /// conversation so far, or for one that does not.
    pub(crate) fn prompt_consultant(
        &mut self,
        with: &mut AgentConsultation<'_>,
        word: &mut dyn FnMut(bool) -> String,
    ) -> Result<TurnOutcome, RunError> {
        let AgentConsultation { driver, request, budget } = with;
        request.nonce = (self.env.random)().map_err(RunError::Random)?;
        let mut conversation = None;
        let source = PromptSource::Question { word, conversation: &mut conversation };
        let outcome = self.prompt_agent(&mut **driver, request, budget, source)?;
        request.conversation = conversation.or(request.conversation.take());
        request.used = request.used.saturating_add(outcome.usage);
        Ok(outcome)
    }
}
