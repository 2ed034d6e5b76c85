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
use windlass_engine::{TaskId, Usage};
use windlass_process::overlay;

use crate::journal::PromptSource;
use crate::{EffectRunner, RunError};

/// A conversation with a consulted agent.
pub(crate) struct Consultation<'a> {
    driver: Box<dyn AgentDriver + 'a>,
    request: PromptRequest,
    budget: TurnBudget,
}

impl Consultation<'_> {
    /// Closes the agent.
    pub fn end(mut self) {
        self.driver.close();
    }
}

impl<'a> EffectRunner<'a> {
    /// Prepares a conversation with an agent in a directory, with a record file and time limits. Starts nothing yet.
    pub(crate) fn consultation(
        &self,
        agent: &Agent,
        (directory, file): (&Path, PathBuf),
        (time, silence): (Duration, Option<Duration>),
        task: Option<TaskId>,
    ) -> Consultation<'a> {
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
        let request = PromptRequest {
            directory: directory.to_owned(),
            environment: overlay(&agent.environment(&self.settings.environment), told),
            tools: None,
            conversation: None,
            used: Usage::default(),
            nonce: 0,
            record: file,
        };
        Consultation {
            driver: agent.driver(self.settings.launcher.as_ref(), self.roster),
            request,
            budget: TurnBudget::new(Some(time), silence, self.control.clone()),
        }
    }

    /// Prompts the agent, and waits for the end of its answer. `word` writes the question: for an agent that remembers the
    /// conversation so far, or for one that does not.
    pub(crate) fn consult(
        &mut self,
        with: &mut Consultation<'_>,
        word: &mut dyn FnMut(bool) -> String,
    ) -> Result<TurnOutcome, RunError> {
        let Consultation { driver, request, budget } = with;
        request.nonce = (self.outside.random)().map_err(RunError::Random)?;
        let mut conversation = None;
        let source = PromptSource::Question { word, conversation: &mut conversation };
        let outcome = self.prompt_agent(&mut **driver, request, budget, source)?;
        request.conversation = conversation.or(request.conversation.take());
        request.used = request.used.plus(outcome.usage);
        Ok(outcome)
    }
}
