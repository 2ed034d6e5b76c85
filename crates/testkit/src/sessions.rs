//! Sessions, worked out from the log alone, and what may never be wrong with them.
//!
//! The engine moves a session from phase to phase and keeps two lists of feedback. Here nothing is kept that can be
//! worked out: what is pending is whatever was queued and is neither delivered nor in the turn that runs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use windlass_engine::{
    Closing, Completion, Cost, DebtId, Decision, Effect, Ending, Event, EventType, GateAnswer, Limits, Next,
    OnRetryLimit, OwnerName, Phase, Piece, Promise, Purpose, Record, RunId, Seq, Session, SessionName, Step, Terms,
    Timestamp, Verdict,
};

use crate::debts::{ends_a_turn, owed_by};
use crate::invariants::Rows;

/// A session as the log tells it.
#[derive(Debug, Clone)]
pub struct Told {
    pub owner: OwnerName,
    pub terms: Terms,
    pub turn: Option<RunId>,
    pub iteration: u32,
    pub stopping: Option<Closing>,
    pub ended: Option<Ending>,
    /// The hooks that its loop waits for.
    pub waits_for: Vec<DebtId>,
    started: Timestamp,
    interrupted: u32,
    failures: u32,
    recovery: Recovery,
    /// A person is asked, and has perhaps answered.
    asking: Option<Option<GateAnswer>>,
    answered: Option<GateAnswer>,
    /// The agent is left alone until then.
    postponed: Option<Timestamp>,
    postponements: u32,
    spent: u64,
    /// What is about the iteration that it was queued in.
    passing: BTreeSet<Seq>,
    queued: BTreeSet<Seq>,
    delivered: BTreeSet<Seq>,
    /// What the turn that runs carries.
    bound: BTreeSet<Seq>,
    /// What was in a turn that did not finish.
    seen: BTreeSet<Seq>,
    claim: Option<Promise>,
    gate: Option<(Verdict, Decision)>,
    /// How it is to end after its last delivery, whatever its terms become meanwhile.
    closing: Option<Ending>,
    /// What cannot have happened.
    wrong: Vec<String>,
}

/// Whether an iteration has failed, and hooks have had something to say about it since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Recovery {
    None,
    Failed,
    Due,
}

/// Every session that a log tells of.
pub fn told(log: &[Record]) -> BTreeMap<SessionName, Told> {
    let mut sessions = BTreeMap::new();
    for record in log {
        if let Event::HookFinished(finished) = &record.envelope.event {
            sessions.values_mut().for_each(|told: &mut Told| told.waits_for.retain(|debt| *debt != finished.debt));
        }
        let Some(name) = &record.envelope.session else { continue };
        if let Event::SessionStarted(started) = &record.envelope.event {
            let (owner, terms) = (started.owner.clone(), started.terms.clone());
            sessions.insert(name.clone(), Told::new(owner, terms, record.envelope.timestamp));
        }
        if let Some(told) = sessions.get_mut(name) {
            told.hear(record);
        }
    }
    sessions
}

impl Told {
    fn new(owner: OwnerName, terms: Terms, started: Timestamp) -> Self {
        Self {
            owner,
            terms,
            turn: None,
            iteration: 0,
            stopping: None,
            ended: None,
            waits_for: Vec::new(),
            started,
            interrupted: 0,
            failures: 0,
            recovery: Recovery::None,
            asking: None,
            answered: None,
            postponed: None,
            postponements: 0,
            spent: 0,
            passing: BTreeSet::new(),
            queued: BTreeSet::new(),
            delivered: BTreeSet::new(),
            bound: BTreeSet::new(),
            seen: BTreeSet::new(),
            claim: None,
            gate: None,
            closing: None,
            wrong: Vec::new(),
        }
    }

    pub fn is_over(&self) -> bool {
        self.ended.is_some() && self.waits_for.is_empty()
    }

    /// Whether a person's answer would be heard.
    pub fn asks(&self) -> bool {
        self.asking == Some(None) && self.stopping.is_none() && self.ended.is_none()
    }

    /// Whether there is something to decide that nobody has decided yet.
    pub fn may_advance(&self, now: Timestamp) -> bool {
        let answered = matches!(self.asking, Some(Some(_)));
        let due = self.postponed.is_some_and(|until| now >= until);
        self.waits_for.is_empty() && (answered || due)
    }

    fn hear(&mut self, record: &Record) {
        self.judge(record);
        self.hear_of_guards(record);
        match &record.envelope.event {
            Event::SessionResumed(resumed) => {
                (self.owner, self.terms) = (resumed.owner.clone(), resumed.terms.clone());
            }
            Event::SessionStopping(stopping) => {
                self.stopping = Some(Closing { ending: stopping.ending, reason: stopping.reason.clone() });
            }
            Event::SessionEnded(ended) => self.ended = Some(ended.ending),
            Event::IterationStarted(started) => {
                self.iteration = started.run.iteration;
                let (passing, delivered) = (&self.passing, &self.delivered);
                self.queued.retain(|at| !passing.contains(at) || delivered.contains(at));
            }
            Event::TurnStarted(started) => {
                (self.turn, self.bound) = (Some(started.run.clone()), self.undelivered().collect());
                if let Purpose::Delivery(closing) = &started.purpose {
                    self.closing = Some(closing.ending);
                }
            }
            Event::FeedbackQueued(_) => drop(self.queued.insert(record.seq)),
            Event::FeedbackDelivered(delivered) => self.delivered.extend(&delivered.feedback),
            Event::PromiseDetected(detected) => self.claim = Some(detected.promise),
            Event::GateDecided(decided) => self.gate = Some((decided.verdict, decided.decision.clone())),
            Event::IterationCompleted(_) => self.failures = 0,
            _ => {}
        }
        match (record.kind(), self.recovery) {
            (EventType::IterationFailed, _) => self.recovery = Recovery::Failed,
            (EventType::FeedbackQueued, Recovery::Failed) => self.recovery = Recovery::Due,
            (EventType::TurnStarted | EventType::IterationStarted, _) => self.recovery = Recovery::None,
            _ => {}
        }
        match record.kind() {
            EventType::IterationFailed => self.failures += 1,
            EventType::IterationInterrupted | EventType::IterationPostponed => self.interrupted += 1,
            EventType::TurnFinished => self.claim = None,
            _ => {}
        }
        if ends_a_turn(record.kind()) {
            let carried = std::mem::take(&mut self.bound);
            self.seen.extend(carried.difference(&self.delivered));
            self.turn = None;
        }
        let owner = record.envelope.metadata.owes.as_ref().map(|owed| &owed.owner);
        if owner == Some(&self.owner) {
            self.waits_for.extend(owed_by(record));
        }
    }

    /// What is asked, waited for and used up.
    fn hear_of_guards(&mut self, record: &Record) {
        let spend = |cost: Option<Cost>| cost.map_or(0, |cost| cost.0);
        match &record.envelope.event {
            Event::GateDecided(decided) => {
                (self.answered, self.asking) = (self.asking.take().flatten(), None);
                if decided.decision == Decision::Ask {
                    self.asking = Some(None);
                }
            }
            Event::GateAnswered(answered) => self.asking = Some(Some(answered.answer)),
            Event::IterationPostponed(postponed) => {
                self.postponed = Some(postponed.until);
                self.postponements += 1;
            }
            Event::TurnFinished(finished) => {
                self.postponements = 0;
                self.spent += spend(finished.cost);
            }
            Event::DeliveryFinished(finished) => self.spent += spend(finished.cost),
            Event::IterationFailed(_) => self.postponements = 0,
            Event::FeedbackQueued(queued) if queued.passing => drop(self.passing.insert(record.seq)),
            _ => {}
        }
        match record.kind() {
            EventType::IterationStarted | EventType::SessionEnded => self.postponed = None,
            EventType::IterationInterrupted => self.asking = None,
            _ => {}
        }
    }

    /// Whether a budget may be used up. Time that nobody ran it for does not count, so this says at most.
    fn may_be_used_up(&self, now: Timestamp) -> bool {
        let long = |moment: Timestamp| Duration::from_millis((moment.millis() - self.started.millis()).unsigned_abs());
        let late = |most: Duration| long(now) >= most || self.postponed.is_some_and(|until| long(until) >= most);
        self.terms.wall_time.is_some_and(late) || self.terms.cost.is_some_and(|most| self.spent >= most.0)
    }

    /// Whether what is told now could have come after what was told before.
    fn judge(&mut self, record: &Record) {
        let counted = self.iteration - self.interrupted;
        let fits = match &record.envelope.event {
            Event::IterationStarted(started) => {
                let next = started.run.iteration == self.iteration + 1 && self.recovery != Recovery::Due;
                let awake = self.postponed.is_none_or(|until| record.envelope.timestamp >= until);
                next && awake && self.turn.is_none() && (self.iteration == 0 || counted < self.terms.max_iterations)
            }
            Event::TurnStarted(started) => {
                let closes = match &started.purpose {
                    Purpose::Delivery(closing) => self.may_end(closing.ending, record.envelope.timestamp),
                    Purpose::Recovery => {
                        self.recovery == Recovery::Due && self.failures < self.terms.max_failures.max(1)
                    }
                    Purpose::Work | Purpose::SendBack => true,
                };
                let present = started.run.iteration == self.iteration && started.owner == self.owner;
                self.turn.is_none() && present && closes
            }
            Event::FeedbackDelivered(delivered) => {
                let given: BTreeSet<Seq> = delivered.feedback.iter().copied().collect();
                !given.is_empty() && given == self.bound && given.is_disjoint(&self.delivered)
            }
            Event::GateDecided(decided) => {
                let blocked = decided.verdict == Verdict::Block;
                let told_to = self.asking == Some(Some(GateAnswer::Continue));
                match decided.decision {
                    Decision::SendBack => blocked && (told_to || decided.retries <= self.terms.max_hook_retries),
                    Decision::Ask => blocked && self.terms.on_retry_limit == OnRetryLimit::Ask,
                    Decision::Next(_) => true,
                }
            }
            Event::GateAnswered(_) => self.asks(),
            Event::SessionEnded(ended) => self.turn.is_none() && self.may_end(ended.ending, record.envelope.timestamp),
            Event::TurnFinished(payload) => self.turn.as_ref() == Some(&payload.run) && self.is_bound_delivered(),
            Event::DeliveryFinished(payload) => self.turn.as_ref() == Some(&payload.run) && self.is_bound_delivered(),
            Event::FeedbackQueued(_) => self.ended.is_none(),
            _ => true,
        };
        if !fits {
            self.wrong.push(format!("{} of {:?} cannot be", record.seq, record.envelope.event));
        }
    }

    fn is_bound_delivered(&self) -> bool {
        self.bound.is_subset(&self.delivered)
    }

    /// Whether it may be said to have ended so. Nothing but the gates makes the work complete.
    fn may_end(&self, ending: Ending, now: Timestamp) -> bool {
        let closed = || match &self.gate {
            Some((verdict, Decision::Next(Next::Close(closing)))) if closing.ending == ending => Some(*verdict),
            _ => None,
        };
        let stopped = self.stopping.as_ref().map(|closing| closing.ending);
        let asked = stopped == Some(ending) || self.closing == Some(ending);
        let claimed = self.claim == Some(Promise::Complete) || self.terms.completion == Completion::Gate;
        asked
            || match ending {
                Ending::Completed => match closed() {
                    Some(Verdict::Pass) => claimed,
                    Some(Verdict::Fail) => claimed && !self.terms.strict,
                    Some(Verdict::Block) if self.answered == Some(GateAnswer::Ignore) => claimed,
                    Some(Verdict::Block) => self.terms.on_retry_limit == OnRetryLimit::Complete,
                    Some(Verdict::Continue | Verdict::Escalate) | None => false,
                },
                Ending::Escalated => {
                    let failed = self.failures > 0 && self.failures >= self.terms.max_failures;
                    closed().is_some() || failed || self.postponements >= Limits::POSTPONEMENTS
                }
                Ending::Limit => {
                    self.iteration - self.interrupted >= self.terms.max_iterations || self.may_be_used_up(now)
                }
                Ending::Error => self.interrupted >= Limits::INTERRUPTIONS,
                Ending::Cancelled => false,
            }
    }

    fn undelivered(&self) -> impl Iterator<Item = Seq> {
        self.queued.difference(&self.delivered).copied()
    }

    /// What no turn carries, in the order in which it was queued.
    fn pending(&self) -> Vec<Piece> {
        self.undelivered().filter(|at| !self.bound.contains(at)).map(|at| self.piece(at)).collect()
    }

    fn carried(&self) -> Vec<Piece> {
        self.bound.iter().map(|at| self.piece(*at)).collect()
    }

    fn piece(&self, at: Seq) -> Piece {
        Piece { at, possibly_seen: self.seen.contains(&at), passing: self.passing.contains(&at) }
    }
}

/// Everything that is wrong with the sessions of a state that a log led to.
pub fn broken(rows: &Rows, log: &[Record]) -> Vec<String> {
    let told = told(log);
    let mut wrong = Vec::new();
    if !rows.sessions.iter().map(|session| &session.name).eq(told.keys()) {
        wrong.push(format!("the log tells of {:?}", told.keys()));
        return wrong;
    }
    for (session, told) in rows.sessions.iter().zip(told.values()) {
        wrong.extend(told.wrong.iter().cloned());
        differs(session, told, &mut wrong);
        rests(session, rows, &mut wrong);
        let turns = rows
            .debts
            .iter()
            .filter(|debt| matches!(&debt.effect, Effect::Turn { session: name, .. } if *name == session.name));
        if turns.count() != usize::from(session.turn().is_some()) {
            wrong.push(format!("{} has another number of turns than it should", session.name));
        }
    }
    wrong
}

/// The row and the log say the same.
fn differs(session: &Session, told: &Told, wrong: &mut Vec<String>) {
    let kept = (
        (&session.owner, &session.terms, &session.owed, &session.stopping),
        (session.turn().map(|turn| &turn.run), session.iteration, session.interrupted, session.failures),
        (session.ended(), &session.pending, session.turn().map_or(&[][..], |turn| &turn.feedback)),
    );
    let (pending, carried) = (told.pending(), told.carried());
    let said = (
        (&told.owner, &told.terms, &told.waits_for, &told.stopping),
        (told.turn.as_ref(), told.iteration, told.interrupted, told.failures),
        (told.ended, &pending, &carried[..]),
    );
    if kept != said {
        wrong.push(format!("{}: the row has {kept:?}, the log {said:?}", session.name));
    }
}

/// Nothing that can be decided is left undecided: it waits for the outside, or for a hook that has begun.
fn rests(session: &Session, rows: &Rows, wrong: &mut Vec<String>) {
    let begun = |id: DebtId| rows.debts.iter().any(|debt| debt.id == id && debt.attempts > 0);
    let rests = match session.step() {
        Step::Wait(_) => true,
        Step::SkipHook(debt) => begun(debt),
        // What a person says falls to whoever runs the session.
        Step::DecideGate(..) => matches!(session.phase, Phase::Asking(_, _, Some(_))),
        _ => false,
    };
    if !rests {
        wrong.push(format!("{} does not rest: {:?} in {session:?}", session.name, session.step()));
    }
    if let Some(lost) = session.owed.iter().find(|id| !rows.debts.iter().any(|debt| debt.id == **id)) {
        wrong.push(format!("{} waits for {lost}, which nobody owes", session.name));
    }
}
