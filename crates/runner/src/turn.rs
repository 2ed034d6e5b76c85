//! A turn of the agent: its prompt request, and the meaning of its outcome for the session.
//!
//! Not here: prompting (`journal`), drivers (`agents`).

use std::ffi::OsString;
use std::io;
use std::time::Duration;

use windlass_agents::{PromptRequest, TurnBudget, TurnEnd, TurnOutcome};
use windlass_engine::{
    Answer, Command, Digest, EffectId, Ending, EventType, Failing, Fault, Limits, Promise, Purpose, Session, Task,
    Timestamp, Turn, Usage, explain_uncounted, find_promise, in_words,
};
use windlass_hooks::{Retry, clean, cut};
use windlass_process::{Environment, Spec, overlay};
use windlass_tools::validation::Standing;

use crate::journal::PromptSource;
use crate::{RunError, Runner, RunnerEvent};

/// Event whose hooks judge a turn.
const GATED: EventType = EventType::TurnFinished;

impl Runner<'_> {
    /// Runs a turn, unless an earlier owner has died during it.
    pub(crate) fn turn(&mut self, session: &Session, effect: EffectId) -> Result<(), RunError> {
        if !self.is_ours(session, effect)? {
            return Ok(());
        }
        let Some(turn) = session.turn() else { return Err(RunError::Stuck(session.name.clone())) };
        if session.stopping.is_some() {
            return self.commit(&interrupted(turn, None, Usage::default())).map(drop);
        }
        let pause = match turn.purpose {
            Purpose::SendBack => self.pause_before_sending_back(session),
            _ => Duration::ZERO,
        };
        if !pause.is_zero() {
            if !self.dispatch.wait(pause) {
                // The session was cancelled meanwhile.
                return Ok(());
            }
            (self.dispatch.outside.tell)(RunnerEvent::Asking);
        }
        self.tell_messages(turn)?;
        let mut budget = TurnBudget::new(self.time(session), self.allowance.silence, self.dispatch.control.clone());
        if budget.time == Some(Duration::ZERO) {
            return self.end_with(
                session,
                &interrupted(turn, None, Usage::default()),
                Ending::Limit,
                session.out_of_time(),
            );
        }
        let request = self.prompt_request(session, turn)?;
        let source = PromptSource::Turn { session, turn };
        let outcome = self.dispatch.prompt_agent(&mut *self.driver, &request, &mut budget, source)?;
        self.report(session, turn, budget.time, outcome)
    }

    /// Builds the request of a turn, without its text.
    fn prompt_request(&self, session: &Session, turn: &Turn) -> Result<PromptRequest, RunError> {
        let mut environment = self.variables(session, turn);
        if self.agent.stays() {
            // The process serves the next iteration, too.
            environment.retain(|(name, _)| name != "WINDLASS_ITERATION");
        }
        Ok(PromptRequest {
            directory: self.dispatch.directory_of(Some(session)),
            environment,
            tools: self.own_server(turn),
            conversation: session.conversation.clone(),
            used: session.watch.used_in_conversation,
            nonce: (self.dispatch.outside.random)().map_err(RunError::Random)?,
            record: self.dispatch.settings.records.join(turn.effect.to_string()),
        })
    }

    /// Shows messages of people to the observer when the agent gets them.
    fn tell_messages(&mut self, turn: &Turn) -> Result<(), RunError> {
        for piece in turn.feedback.iter().filter(|piece| piece.person && !piece.possibly_seen) {
            let record = self.dispatch.event(piece.at)?;
            // Messages that this process has queued, such as a waiting answer, were shown then.
            if record.envelope.metadata.triggered_by != self.dispatch.owner.as_str() {
                self.dispatch.tell(&[record]);
            }
        }
        Ok(())
    }

    /// Reports the end of a turn to the engine.
    fn report(
        &mut self,
        session: &Session,
        turn: &Turn,
        time: Option<Duration>,
        outcome: TurnOutcome,
    ) -> Result<(), RunError> {
        let run = turn.run.clone();
        let mask = self.dispatch.settings.mask.clone();
        let fit = |error: &str| cut(&mask.text(&clean(error)), Limits::REASON);
        let tried_before = session.last_turn.is_some() || session.failures > 0;
        let TurnOutcome { end, leaky, record, usage } = outcome;
        let (fault, error) = match end {
            TurnEnd::Said(text) => {
                // Text that a terminal would hide is no claim either.
                let text = mask.kept(&clean(&text)).into_owned();
                let promise = find_promise(&text);
                let uncounted = explain_uncounted(&text);
                let output = cut(&text, Limits::OUTPUT);
                let tree = self.compared_tree(session, turn, (&output, promise));
                let answer = Answer { output, promise, uncounted, leaky, record, usage, tree };
                return self.commit(&Command::FinishTurn { run, answer }).map(drop);
            }
            TurnEnd::Broken(error) => {
                return self.end_with(session, &interrupted(turn, record, usage), Ending::Error, fit(&error));
            }
            TurnEnd::Unanswered(error) if !tried_before && turn.purpose.is_judged() => {
                return self.end_with(session, &interrupted(turn, record, usage), Ending::Error, fit(&error));
            }
            TurnEnd::Locked { said, remedy } => {
                let reason = format!("`{}` is not let in: {said}; {remedy}", self.agent);
                return self.end_with(session, &interrupted(turn, record, usage), Ending::Error, fit(&reason));
            }
            TurnEnd::TimedOut if self.is_out_of_time(session) => {
                return self.end_with(session, &interrupted(turn, record, usage), Ending::Limit, session.out_of_time());
            }
            TurnEnd::Limited { said, reset } => {
                let now = (self.dispatch.outside.now)();
                let until = reset.map(|reset| Timestamp::from_millis(reset.millis(now.millis())));
                let failing = Failing { record, usage, ..Failing::of(fit(&said)) };
                return self.commit(&Command::PostponeTurn { run, failing, until }).map(drop);
            }
            TurnEnd::Cancelled => {
                self.stop_if_cancelled(self.session(&session.name)?)?;
                return self.commit(&interrupted(turn, record, usage)).map(drop);
            }
            TurnEnd::TimedOut => (Fault::TimedOut, format!("timed out after {}", in_words(time.unwrap_or_default()))),
            TurnEnd::Failed { fault, why } => (fault, fit(&why)),
            TurnEnd::Unanswered(error) => (Fault::Failed, fit(&error)),
        };
        self.commit(&Command::FailTurn { run, failing: Failing { error, fault, record, usage, leaky } }).map(drop)
    }

    /// Ends the session instead of the turn, because no other turn would succeed.
    fn end_with(
        &mut self,
        session: &Session,
        interrupted: &Command,
        ending: Ending,
        reason: String,
    ) -> Result<(), RunError> {
        self.ask_to_end(&session.name, ending, Some(reason))?;
        self.commit(interrupted).map(drop)
    }

    /// Ends the session because no program can be started here.
    pub(crate) fn cannot_start(&mut self, session: &Session, error: &io::Error) -> Result<(), RunError> {
        let Some(turn) = session.turn() else { return Err(RunError::Stuck(session.name.clone())) };
        let reason = cut(&format!("cannot start the supervisor: {error}"), Limits::REASON);
        self.end_with(session, &interrupted(turn, None, Usage::default()), Ending::Error, reason)
    }

    /// Returns a digest of the work's files if it is needed: for hooks that judge the turn, or for the guard against an agent that
    /// repeats its last answer.
    fn compared_tree(
        &mut self,
        session: &Session,
        turn: &Turn,
        (output, promise): (&str, Option<Promise>),
    ) -> Option<Digest> {
        let is_judged = self.has_judges_of_turns(self.task_of(session).ok().as_ref());
        let is_guarded =
            session.terms.thrashing > 0 && promise != Some(Promise::Complete) && session.watch.repeats(output);
        let is_compared = turn.purpose.is_judged() && (is_judged || is_guarded);
        is_compared.then(|| self.look_at_tree(session)).flatten()
    }

    /// Returns whether hooks or rules judge the turns on a task.
    pub(crate) fn has_judges_of_turns(&self, task: Option<&Task>) -> bool {
        let effects = self.dispatch.settings.rules.effects.as_ref();
        effects.is_some_and(|effects| effects.hooks.contains_key(&GATED) || effects.first_judge(task).is_some())
    }

    /// Returns a digest of the work's files, as far as git knows of them.
    pub(crate) fn look_at_tree(&mut self, session: &Session) -> Option<Digest> {
        let run = |spec: &Spec| self.dispatch.look_with(spec);
        self.looker.look(&self.dispatch.directory_of(Some(session)), &self.dispatch.settings.environment, &run)
    }

    /// Returns the time limit of a turn that begins now.
    fn time(&self, session: &Session) -> Option<Duration> {
        let left = session.time_left((self.dispatch.outside.now)());
        left.into_iter().chain(self.allowance.time).min()
    }

    fn is_out_of_time(&self, session: &Session) -> bool {
        session.time_left((self.dispatch.outside.now)()).is_some_and(|left| left.is_zero())
    }

    /// Returns the longest wait that the hooks ask for before they send the agent back.
    fn pause_before_sending_back(&self, session: &Session) -> Duration {
        let waits = session.sent_back.iter().filter_map(|(hook, times)| {
            let retry = (self.dispatch.settings.hooks)(hook)?.retry?;
            Retry { jitter: false, ..retry }.wait(*times, 0)
        });
        waits.max().unwrap_or_default()
    }

    /// Returns the value of `WINDLASS_TRUSTED`: whether agents may have programs run.
    pub(crate) fn trusted(&self) -> &'static str {
        if self.dispatch.settings.permission.standing == Standing::Trusted { "1" } else { "" }
    }

    fn variables(&self, session: &Session, turn: &Turn) -> Environment {
        let told: Vec<(&str, OsString)> = vec![
            ("WINDLASS_SESSION", session.name.as_str().into()),
            ("WINDLASS_ITERATION", session.iteration.to_string().into()),
            ("WINDLASS_TASK_ID", session.task.map(|id| id.to_string()).unwrap_or_default().into()),
            ("WINDLASS_RUN", turn.run.to_string().into()),
            ("WINDLASS_PROJECT_DIR", self.dispatch.settings.project.clone().into()),
            ("WINDLASS_TRUSTED", self.trusted().into()),
        ];
        overlay(&self.agent.environment(&self.dispatch.settings.environment), told)
    }
}

/// Returns the command that interrupts a turn.
fn interrupted(turn: &Turn, record: Option<String>, usage: Usage) -> Command {
    Command::InterruptTurn { run: turn.run.clone(), record, usage }
}
