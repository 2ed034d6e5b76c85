//! A turn of the agent: its prompt request, and the meaning of its outcome for the session.
//!
//! Not here: prompting (`journal`), drivers (`agents`).

use std::ffi::OsString;
use std::io;
use std::time::Duration;

use windlass_agents::{PromptRequest, TurnBudget, TurnEnd, TurnOutcome};
use windlass_engine::{
    AgentTurn, AgentUsage, Command, Digest, EffectId, EngineLimits, EventType, Promise, Session, SessionEndKind, Task,
    Timestamp, TurnAnswer, TurnFailure, TurnFailureReport, TurnPurpose, duration_in_words, explain_uncounted_claim,
    find_promise,
};
use windlass_hooks::{RetrySchedule, clean_output, excerpt_text};
use windlass_process::{Environment, ProgramSpec, overlay_environment};
use windlass_tools::validation::ExecutionTrust;

use crate::journal::PromptSource;
use crate::{RunError, Runner, RunnerEvent};

/// Event whose hooks judge a turn.
const JUDGED_EVENT: EventType = EventType::TurnFinished;

impl Runner<'_> {
    /// Runs a turn, unless an earlier owner has died during it.
    pub(crate) fn run_turn(&mut self, session: &Session, effect: EffectId) -> Result<(), RunError> {
        if !self.take_over_effect(session, effect)? {
            return Ok(());
        }
        let Some(turn) = session.current_turn() else { return Err(RunError::Stuck(session.name.clone())) };
        if session.stopping.is_some() {
            return self.commit_command(&interrupt_command(turn, None, AgentUsage::default())).map(drop);
        }
        let pause = match turn.purpose {
            TurnPurpose::SendBack => self.send_back_delay(session),
            _ => Duration::ZERO,
        };
        if !pause.is_zero() {
            if !self.effects.wait_cancellable(pause) {
                // The session was cancelled meanwhile.
                return Ok(());
            }
            (self.effects.env.observe)(RunnerEvent::Prompting);
        }
        self.show_person_messages(turn)?;
        let mut budget =
            TurnBudget::new(self.turn_time_limit(session), self.allowance.idle_timeout, self.effects.control.clone());
        if budget.time == Some(Duration::ZERO) {
            return self.end_session_and_turn(
                session,
                &interrupt_command(turn, None, AgentUsage::default()),
                SessionEndKind::Limit,
                session.describe_wall_time_end(),
            );
        }
        let request = self.prompt_request(session, turn)?;
        let source = PromptSource::Turn { session, turn };
        let outcome = self.effects.prompt_agent(&mut *self.driver, &request, &mut budget, source)?;
        // The commits of an ended turn are on the remote, whatever happens to this machine.
        self.share_work(session);
        self.report_outcome(session, turn, budget.time, outcome)
    }

    /// Builds the request of a turn, without its text.
    fn prompt_request(&self, session: &Session, turn: &AgentTurn) -> Result<PromptRequest, RunError> {
        let mut environment = self.turn_environment(session, turn);
        if self.agent.is_persistent() {
            // The process serves the next iteration, too.
            environment.retain(|(name, _)| name != "WINDLASS_ITERATION");
        }
        Ok(PromptRequest {
            directory: self.effects.session_directory(Some(session)),
            environment,
            wrapper: Vec::new(),
            tools: self.own_tool_server(turn),
            conversation: session.conversation.clone(),
            used: session.watch.used_in_conversation,
            nonce: (self.effects.env.random)().map_err(RunError::Random)?,
            record: self.effects.settings.records.join(turn.effect.to_string()),
        })
    }

    /// Shows messages of people to the observer when the agent gets them.
    fn show_person_messages(&mut self, turn: &AgentTurn) -> Result<(), RunError> {
        for piece in turn.feedback.iter().filter(|piece| piece.person && !piece.possibly_seen) {
            let record = self.effects.load_event(piece.at)?;
            // Messages that this process has queued, such as a waiting answer, were shown then.
            if record.envelope.metadata.triggered_by != self.effects.owner.as_str() {
                self.effects.report_records(&[record]);
            }
        }
        Ok(())
    }

    /// Reports the end of a turn to the engine.
    fn report_outcome(
        &mut self,
        session: &Session,
        turn: &AgentTurn,
        time: Option<Duration>,
        outcome: TurnOutcome,
    ) -> Result<(), RunError> {
        let run = turn.run.clone();
        let mask = self.effects.settings.mask.clone();
        let fit = |error: &str| excerpt_text(&mask.mask_text(&clean_output(error)), EngineLimits::REASON_BYTES);
        let tried_before = session.last_turn.is_some() || session.failures > 0;
        let TurnOutcome { end, leaky, record, usage } = outcome;
        let (fault, error) = match end {
            TurnEnd::Answered(text) => {
                // Text that a terminal would hide is no claim either.
                let text = mask.mask_excerpt(&clean_output(&text)).into_owned();
                let promise = find_promise(&text);
                let uncounted = explain_uncounted_claim(&text);
                let output = excerpt_text(&text, EngineLimits::OUTPUT_BYTES);
                let tree = self.digest_if_compared(session, turn, (&output, promise));
                let answer = TurnAnswer { output, promise, uncounted, leaky, record, usage, tree };
                return self.commit_command(&Command::FinishTurn { run, answer }).map(drop);
            }
            TurnEnd::Broken(error) => {
                return self.end_session_and_turn(
                    session,
                    &interrupt_command(turn, record, usage),
                    SessionEndKind::Error,
                    fit(&error),
                );
            }
            TurnEnd::NoConversation(error) if !tried_before && turn.purpose.is_judged_by_hooks() => {
                return self.end_session_and_turn(
                    session,
                    &interrupt_command(turn, record, usage),
                    SessionEndKind::Error,
                    fit(&error),
                );
            }
            TurnEnd::AccessDenied { said, remedy } => {
                let reason = format!("`{}` has no access: {said}; {remedy}", self.agent);
                return self.end_session_and_turn(
                    session,
                    &interrupt_command(turn, record, usage),
                    SessionEndKind::Error,
                    fit(&reason),
                );
            }
            TurnEnd::TimedOut if self.is_out_of_time(session) => {
                return self.end_session_and_turn(
                    session,
                    &interrupt_command(turn, record, usage),
                    SessionEndKind::Limit,
                    session.describe_wall_time_end(),
                );
            }
            TurnEnd::RateLimited { said, reset } => {
                let now = (self.effects.env.now)();
                let until = reset.map(|reset| Timestamp::from_millis(reset.to_epoch_millis(now.millis())));
                let failing = TurnFailureReport { record, usage, ..TurnFailureReport::from_error(fit(&said)) };
                return self.commit_command(&Command::PostponeTurn { run, failing, until }).map(drop);
            }
            TurnEnd::Cancelled => {
                self.stop_if_cancelled(self.load_session(&session.name)?)?;
                return self.commit_command(&interrupt_command(turn, record, usage)).map(drop);
            }
            TurnEnd::TimedOut => {
                (TurnFailure::TimedOut, format!("timed out after {}", duration_in_words(time.unwrap_or_default())))
            }
            TurnEnd::Failed { fault, why } => (fault, fit(&why)),
            TurnEnd::NoConversation(error) => (TurnFailure::Failed, fit(&error)),
        };
        self.commit_command(&Command::FailTurn {
            run,
            failing: TurnFailureReport { error, fault, record, usage, leaky },
        })
        .map(drop)
    }

    /// Ends the session instead of the turn, because no other turn would succeed.
    fn end_session_and_turn(
        &mut self,
        session: &Session,
        interrupted: &Command,
        ending: SessionEndKind,
        reason: String,
    ) -> Result<(), RunError> {
        self.stop_session(&session.name, ending, Some(reason))?;
        self.commit_command(interrupted).map(drop)
    }

    /// Ends the session because no program can be started here.
    pub(crate) fn end_without_supervisor(&mut self, session: &Session, error: &io::Error) -> Result<(), RunError> {
        let Some(turn) = session.current_turn() else { return Err(RunError::Stuck(session.name.clone())) };
        let reason = excerpt_text(&format!("cannot start the supervisor: {error}"), EngineLimits::REASON_BYTES);
        self.end_session_and_turn(
            session,
            &interrupt_command(turn, None, AgentUsage::default()),
            SessionEndKind::Error,
            reason,
        )
    }

    /// Returns a digest of the work's files if it is needed: for hooks that judge the turn, or for the guard against an agent that
    /// repeats its last answer.
    fn digest_if_compared(
        &mut self,
        session: &Session,
        turn: &AgentTurn,
        (output, promise): (&str, Option<Promise>),
    ) -> Option<Digest> {
        let is_judged = self.has_judges_of_turns(self.load_session_task(session).ok().as_ref());
        let is_guarded = session.terms.thrashing > 0
            && promise != Some(Promise::Complete)
            && session.watch.repeats_last_output(output);
        let is_compared = turn.purpose.is_judged_by_hooks() && (is_judged || is_guarded);
        is_compared.then(|| self.digest_work_files(session)).flatten()
    }

    /// Returns whether hooks or rules judge the turns on a task.
    pub(crate) fn has_judges_of_turns(&self, task: Option<&Task>) -> bool {
        let effects = self.effects.settings.rules.effects.as_ref();
        effects.is_some_and(|effects| {
            effects.hooks.contains_key(&JUDGED_EVENT) || effects.first_judge_name(task).is_some()
        })
    }

    /// Returns a digest of the work's files, as far as git knows of them.
    pub(crate) fn digest_work_files(&mut self, session: &Session) -> Option<Digest> {
        let run = |spec: &ProgramSpec| self.effects.run_query(spec);
        self.digester.digest_changes(
            &self.effects.session_directory(Some(session)),
            &self.effects.settings.environment,
            &run,
        )
    }

    /// Returns the time limit of a turn that begins now.
    fn turn_time_limit(&self, session: &Session) -> Option<Duration> {
        let left = session.remaining_wall_time((self.effects.env.now)());
        left.into_iter().chain(self.allowance.time).min()
    }

    fn is_out_of_time(&self, session: &Session) -> bool {
        session.remaining_wall_time((self.effects.env.now)()).is_some_and(|left| left.is_zero())
    }

    /// Returns the longest wait that the hooks ask for before they send the agent back.
    fn send_back_delay(&self, session: &Session) -> Duration {
        let waits = session.sent_back.iter().filter_map(|(hook, times)| {
            let retry = (self.effects.settings.hooks)(hook)?.retry?;
            RetrySchedule { jitter: false, ..retry }.wait_after_attempts(*times, 0)
        });
        waits.max().unwrap_or_default()
    }

    /// Returns the value of `WINDLASS_TRUSTED`: whether agents may have programs run.
    pub(crate) fn trusted_variable(&self) -> &'static str {
        if self.effects.settings.permission.trust == ExecutionTrust::Trusted { "1" } else { "" }
    }

    fn turn_environment(&self, session: &Session, turn: &AgentTurn) -> Environment {
        let variables: Vec<(&str, OsString)> = vec![
            ("WINDLASS_SESSION", session.name.as_str().into()),
            ("WINDLASS_ITERATION", session.iteration.to_string().into()),
            ("WINDLASS_TASK_ID", session.task.map(|id| id.to_string()).unwrap_or_default().into()),
            ("WINDLASS_RUN", turn.run.to_string().into()),
            ("WINDLASS_PROJECT_DIR", self.effects.settings.project.clone().into()),
            ("WINDLASS_TRUSTED", self.trusted_variable().into()),
        ];
        overlay_environment(&self.agent.build_environment(&self.effects.settings.environment), variables)
    }
}

/// Returns the command that interrupts a turn.
fn interrupt_command(turn: &AgentTurn, record: Option<String>, usage: AgentUsage) -> Command {
    Command::InterruptTurn { run: turn.run.clone(), record, usage }
}
