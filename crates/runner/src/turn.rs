//! Giving the agent the word.

use std::ffi::OsString;
use std::time::Duration;

use windlass_agents::TurnEnd;
use windlass_engine::{
    Answer, Command, Completion, DebtId, Digest, Ending, Event, EventType, Limits, Note, Promise, Prompt, Purpose,
    Session, Timestamp, Turn, detect, payload,
};
use windlass_hooks::{Retry, clean, cut};
use windlass_process::{Environment, Spec, overlay};

use crate::dispatch::Resolve;
use crate::{RunError, Runner};

/// How long the agent may take over what is said to it after the end was asked for.
const LAST_WORD: Duration = Duration::from_secs(60);

/// How long to wait after the first failure, and at most.
const FIRST_WAIT: Duration = Duration::from_millis(250);
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// How much of its last answer an agent is reminded of.
const REMEMBERED: usize = 4 * 1024;

/// The event whose hooks judge a turn.
const GATED: EventType = EventType::TurnFinished;

/// What came of asking an agent.
struct Asked {
    end: TurnEnd,
    /// It left processes behind.
    leaky: bool,
    /// The file that has all of what it wrote.
    record: Option<String>,
}

impl Runner<'_> {
    /// Has the agent answer, unless whoever asked it before us died while it did.
    pub(crate) fn turn(&mut self, session: &Session, debt: DebtId) -> Result<(), RunError> {
        if !self.is_ours(session, debt)? {
            return Ok(());
        }
        let Some(turn) = session.turn() else { return Err(RunError::Stuck(session.name.clone())) };
        if session.stopping.is_some() && !turn.purpose.is_delivery() {
            return self.give(&Command::InterruptTurn { run: turn.run.clone() }).map(drop);
        }
        let failed_before = session.failures > 0 && turn.purpose == Purpose::Work;
        if failed_before && !self.dispatch.control.wait(back_off(session.failures)) {
            // The end was asked for meanwhile.
            return Ok(());
        }
        if turn.purpose == Purpose::SendBack && !self.dispatch.control.wait(self.pause_before_sending_back(session)) {
            return Ok(());
        }
        let allowance = self.allowance(session, turn);
        if allowance == Some(Duration::ZERO) {
            return self.end_with(session, turn, Ending::Limit, session.out_of_time());
        }
        let prompt = self.prompt(session, turn)?;
        let asked = self.ask(session, turn, &prompt, allowance)?;
        self.report(session, turn, asked, &prompt)
    }

    /// Tells the engine how a turn ended.
    fn report(&mut self, session: &Session, turn: &Turn, asked: Asked, prompt: &str) -> Result<(), RunError> {
        let run = turn.run.clone();
        let mask = self.dispatch.settings.mask.clone();
        let fit = |error: &str| cut(&mask.text(&clean(error)), Limits::REASON);
        let tried_before = session.last_turn.is_some() || session.failures > 0;
        let command = match asked.end {
            TurnEnd::Said(text) => {
                // A claim that only a terminal would hide is no claim either.
                let text = self.dispatch.settings.mask.text(&clean(&text)).into_owned();
                let promise = detect(&text, prompt);
                let output = cut(&text, Limits::OUTPUT);
                let tree = self.change(session, turn, promise);
                let Asked { leaky, record, .. } = asked;
                Command::FinishTurn { run, answer: Answer { output, promise, leaky, record, cost: None, tree } }
            }
            TurnEnd::Broken(error) if !tried_before && turn.purpose.is_judged() => {
                return self.end_with(session, turn, Ending::Error, fit(&error));
            }
            TurnEnd::Locked { said, remedy } if !turn.purpose.is_delivery() => {
                let reason = format!("`{}` is not let in: {said}; {remedy}", self.agent);
                return self.end_with(session, turn, Ending::Error, fit(&reason));
            }
            TurnEnd::TimedOut if !turn.purpose.is_delivery() => {
                return self.end_with(session, turn, Ending::Limit, session.out_of_time());
            }
            TurnEnd::Limited { said, reset } => {
                let now = (self.dispatch.outside.now)();
                let until = reset.map(|reset| Timestamp::from_millis(reset.millis(now.millis())));
                Command::PostponeTurn { run, error: fit(&said), until }
            }
            TurnEnd::TimedOut => Command::FailTurn { run, error: "timed out".to_owned() },
            TurnEnd::Failed(error) | TurnEnd::Broken(error) | TurnEnd::Locked { said: error, .. } => {
                Command::FailTurn { run, error: fit(&error) }
            }
            TurnEnd::Cancelled if session.stopping.is_some() => return Err(RunError::Killed),
            TurnEnd::Cancelled if turn.purpose.is_delivery() => {
                Command::FailTurn { run, error: "cancelled".to_owned() }
            }
            TurnEnd::Cancelled => {
                self.stop_if_cancelled(session.clone())?;
                Command::InterruptTurn { run }
            }
        };
        self.give(&command).map(drop)
    }

    /// Ends the session instead of the turn: no other turn would fare better.
    fn end_with(&mut self, session: &Session, turn: &Turn, ending: Ending, reason: String) -> Result<(), RunError> {
        self.give(&Command::StopSession { name: session.name.clone(), ending, reason: Some(reason) })?;
        self.give(&Command::InterruptTurn { run: turn.run.clone() }).map(drop)
    }

    /// How long the agent may take, if that is limited.
    fn allowance(&self, session: &Session, turn: &Turn) -> Option<Duration> {
        match (session.time_left((self.dispatch.outside.now)()), &turn.purpose) {
            (Some(_), Purpose::Delivery(_)) => Some(LAST_WORD),
            (left, Purpose::Work | Purpose::SendBack | Purpose::Recovery) => left,
            (None, Purpose::Delivery(_)) => session.stopping.as_ref().map(|_| LAST_WORD),
        }
    }

    /// What the agent has changed, if anybody may want to compare it.
    fn change(&mut self, session: &Session, turn: &Turn, promise: Option<Promise>) -> Option<Digest> {
        let settings = &self.dispatch.settings;
        let gates = settings.rules.effects.as_ref().is_some_and(|effects| effects.hooks.contains_key(&GATED));
        let done = promise == Some(Promise::Complete) && !gates;
        if done || !turn.purpose.is_judged() || session.terms.thrashing == 0 {
            return None;
        }
        let run = |spec: &Spec| self.dispatch.look_with(spec);
        self.looker.look(&settings.directory, &settings.environment, run)
    }

    fn ask(
        &mut self,
        session: &Session,
        turn: &Turn,
        prompt: &str,
        allowance: Option<Duration>,
    ) -> Result<Asked, RunError> {
        let records = self.dispatch.settings.records.join(turn.debt.to_string());
        let agent = self.agent.clone();
        let mut spec = agent.spec(prompt, &self.dispatch.settings.directory, self.variables(session, turn), &records);
        spec.timeout = allowance;
        let resolve = if session.stopping.is_some() { Resolve::Resolute } else { Resolve::Cancellable };
        let ran = self.dispatch.start(&spec, resolve)?;
        let (leaky, record) = match &ran {
            Ok(finished) => {
                self.dispatch.settings.mask.spilled(finished);
                (finished.leaky, self.dispatch.record(finished))
            }
            Err(_) => (false, None),
        };
        Ok(Asked { end: agent.answer(&ran), leaky, record })
    }

    /// How long the hooks that send the agent back want it to wait.
    fn pause_before_sending_back(&self, session: &Session) -> Duration {
        let waits = session.sent_back.iter().filter_map(|(hook, times)| {
            let retry = self.dispatch.settings.hooks.get(hook)?.retry.as_ref()?;
            Retry { jitter: false, ..*retry }.wait(*times, 0)
        });
        waits.max().unwrap_or_default()
    }

    fn variables(&self, session: &Session, turn: &Turn) -> Environment {
        let told: Vec<(&str, OsString)> = vec![
            ("WINDLASS_SESSION", session.name.as_str().into()),
            ("WINDLASS_ITERATION", session.iteration.to_string().into()),
            ("WINDLASS_RUN", turn.run.to_string().into()),
            ("WINDLASS_PROJECT_DIR", self.dispatch.settings.directory.clone().into()),
        ];
        overlay(&self.dispatch.settings.environment, told)
    }

    fn prompt(&self, session: &Session, turn: &Turn) -> Result<String, RunError> {
        // All of it at one moment: that is cheaper than one moment for each piece.
        let _moment = self.dispatch.store.snapshot()?;
        let pieces = turn.feedback.iter().map(|piece| match self.dispatch.event(piece.at)?.envelope.event {
            Event::FeedbackQueued(queued) => Ok((queued, piece.possibly_seen)),
            _ => Err(RunError::MissingEvent(piece.at)),
        });
        let pieces: Vec<(payload::FeedbackQueued, bool)> = pieces.collect::<Result<_, RunError>>()?;
        let last_output = self.dispatch.last_output(session)?.map(|output| cut(&output, REMEMBERED));
        let error = self.error(session, turn)?;
        let prompt = Prompt {
            error: error.as_deref(),
            goal: session.goal.as_deref().unwrap_or_default(),
            purpose: &turn.purpose,
            last_output: last_output.as_deref(),
            feedback: pieces.iter().map(|(queued, seen)| note(queued, *seen)).collect(),
            asks_for_promise: session.terms.completion == Completion::Promise,
        };
        Ok(prompt.text())
    }

    /// How the iteration failed that the agent is to recover from.
    fn error(&self, session: &Session, turn: &Turn) -> Result<Option<String>, RunError> {
        let Some(at) = session.watch.failure.filter(|_| turn.purpose == Purpose::Recovery) else { return Ok(None) };
        match self.dispatch.event(at)?.envelope.event {
            Event::IterationFailed(failed) => Ok(Some(failed.error)),
            _ => Err(RunError::MissingEvent(at)),
        }
    }
}

/// How long to wait after so many failures in a row.
fn back_off(failures: u32) -> Duration {
    FIRST_WAIT.saturating_mul(2_u32.saturating_pow(failures - 1)).min(LONGEST_WAIT)
}

fn note(queued: &payload::FeedbackQueued, possibly_seen: bool) -> Note<'_> {
    Note { source: &queued.source, reason: queued.reason.as_deref(), text: &queued.text, possibly_seen }
}
