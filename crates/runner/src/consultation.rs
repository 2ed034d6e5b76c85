//! Asking an agent something outside the turns of a session, whatever drives it.
//!
//! Invariants:
//! - It is a fresh conversation, which nobody else takes part in and the log does not keep.
//! - Nothing of it outlives the consultation.
//! - The agent has no part in a turn: it is handed none of our tools, and what it does through `windlass` is no word of
//!   the agent whose work is looked at.
//!
//! Not here: prompting (`journal`), what is asked, and what the answer means (`hook/pipeline/review`).

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use windlass_agents::{Agent, AgentDriver, PromptRequest, TurnBudget, TurnOutcome};
use windlass_engine::{TaskId, Usage};
use windlass_process::overlay;

use crate::journal::PromptSource;
use crate::{EffectRunner, RunError};

/// A conversation with an agent that is asked.
pub(crate) struct Consultation<'a> {
    driver: Box<dyn AgentDriver + 'a>,
    request: PromptRequest,
    budget: TurnBudget,
}

impl Consultation<'_> {
    /// Lets the agent go.
    pub fn end(mut self) {
        self.driver.close();
    }
}

impl<'a> EffectRunner<'a> {
    /// Prepares to ask an agent in a directory, with records of a name, for so long. Nothing is started yet.
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

    /// Asks an agent, and waits for the end of its answer. `word` writes the question for an agent that remembers what was
    /// said before, or for one that does not.
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
