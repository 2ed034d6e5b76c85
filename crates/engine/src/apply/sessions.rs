//! Sessions: each event moves its session from one phase to the next, or does not fit.

use std::collections::BTreeMap;

use super::{ApplyError, Changes, Fold, put};
use crate::effects::outbox::EffectKind;
use crate::log::event::{Event, payload};
use crate::log::id::{EffectId, RunId, SessionName, TaskId};
use crate::session::fault::Fault;
use crate::session::promise::{Promise, last_words};
use crate::session::usage::Usage;
use crate::session::voice::Voice;
use crate::session::watch::Watch;
use crate::session::{
    Closing, Completion, Decision, Ending, GateAnswer, Hold, Next, Opening, Phase, Piece, Purpose, Session, Turn,
    Verdict,
};
use crate::task::{Claim, State, Task};
use crate::view::Change;

const MAX_CAUSE_BYTES: usize = 200;

impl Fold<'_> {
    pub(super) fn session_started(&self, started: &payload::SessionStarted) -> Changes {
        let name = self.session_name()?;
        if self.view.session(name)?.is_some() {
            return Err(self.unfit(format!("session `{name}` exists")));
        }
        Ok(vec![Change::PutSession(Box::new(Session {
            name: name.clone(),
            config: started.config,
            protected: started.protected,
            task: self.envelope.node.task(),
            hold: Hold::Never,
            finished: false,
            work: started.work,
            grounds: started.grounds,
            workspace: None,
            report: false,
            done_at: None,
            resumes: false,
            remediations: 0,
            rechecks: 0,
            rejudged: false,
            left: Vec::new(),
            lost: Vec::new(),
            plea: None,
            escalated: Vec::new(),
            goal: started.goal.clone(),
            agent: started.agent.clone(),
            terms: started.terms.clone(),
            nonce: started.nonce,
            fresh: started.fresh,
            nesting: self.nesting()?,
            owner: started.owner.clone(),
            phase: Phase::Started,
            owed: Vec::new(),
            iteration: 0,
            iterations_before: 0,
            interrupted: 0,
            interrupted_in_a_row: 0,
            failures: 0,
            retries: 0,
            sent_back: BTreeMap::new(),
            verdict: Verdict::Pass,
            asking: None,
            broken_gate: false,
            blocking: Vec::new(),
            ignores: Vec::new(),
            overlooked: Vec::new(),
            waivers: Vec::new(),
            checked: false,
            unchecked: 0,
            pending: Vec::new(),
            last_turn: None,
            delivered: false,
            keeps_feedback: started.keeps_feedback,
            conversation: None,
            stopping: None,
            watch: Watch { at: Some(self.envelope.timestamp), ..Watch::default() },
            version: self.seq,
        }))])
    }

    pub(super) fn session_resumed(&self, resumed: &payload::SessionResumed) -> Changes {
        let mut held = None;
        let mut changes = self.session(|session| {
            session.watch.wake(self.envelope.timestamp);
            // A session that is not running does not fail.
            session.watch.failing_since = None;
            session.owner = resumed.owner.clone();
            session.terms = resumed.terms.clone();
            held = session.task.filter(|_| session.epoch().is_some());
            Some(())
        })?;
        if let Some(id) = held {
            let mut task = self.its_task(id)?;
            if let Some(lease) = &mut task.lease {
                lease.owner = resumed.owner.clone();
            }
            changes.push(put(task));
        }
        Ok(changes)
    }

    /// Gives a task to a session that is between iterations. A wait for the agent goes on with the new task.
    pub(super) fn taken_up(&self, name: &SessionName, claimed: &payload::TaskClaimed) -> Changes {
        let (own, id) = (self.session_name()? == name, self.node()?);
        let task = self.task(id)?;
        let ignores = task.answer.map(|answer| answer.ignores).unwrap_or_default();
        self.session(|session| {
            session.ignores.clone_from(&ignores);
            session.pending.extend(task.unsaid.iter().chain(&task.unheard));
            session.pending.sort_by_key(|piece| piece.at);
            let free = session.epoch().is_none() && is_between(session);
            let fits = own && free && session.owner == claimed.owner;
            let waits_until = session.waits_until();
            session.take_up(id, claimed.epoch);
            session.go_on_talking(task.conversation.as_ref());
            session.report = claimed.report;
            session.resumes = task.stalled.is_some() && !session.grounds.is_in_place() && !claimed.report;
            let stalled = task.stalled.as_ref().filter(|_| session.resumes);
            session.checked = stalled.is_some_and(|stalled| stalled.checked);
            session.rejudged = stalled.is_some_and(|stalled| stalled.rejudged);
            if let Some(until) = waits_until {
                session.phase = Phase::Postponed(until);
            }
            fits.then_some(())
        })
    }

    pub(super) fn claimed_done(&self, claim: &Claim) -> Changes {
        let mut changes = self.touched(|task| task.claim = Some(claim.clone()))?;
        let id = self.node()?;
        if self.envelope.session.as_ref() == Some(&claim.run.session) {
            self.with_session(&claim.run.session, &mut changes, |session| {
                let own = session.task == Some(id) && session.epoch().is_some();
                if let Phase::Turn(turn) = &mut session.phase
                    && turn.run == claim.run
                {
                    turn.claimed |= own;
                }
            })?;
        }
        Ok(changes)
    }

    pub(super) fn session_stopping(&self, stopping: &payload::SessionStopping) -> Changes {
        self.session(|session| {
            let first = session.ended().is_none() && session.stopping.is_none();
            session.stopping = Some(Closing { ending: stopping.ending, reason: stopping.reason.clone() });
            first.then_some(())
        })
    }

    /// Folds the end of a session. Feedback that the agent has not received stays with the task; of a session of an older version only a
    /// person's, and only if the task is not completed.
    pub(super) fn session_ended(&self, ending: Ending) -> Changes {
        let (mut worked_on, mut unsaid, mut unheard) = (None, Vec::<Piece>::new(), Vec::new());
        let mut changes = self.session(|session| {
            let between = is_between(session) || matches!(session.phase, Phase::Closing(_));
            let free = session.epoch().is_none();
            session.phase = Phase::Ended(ending);
            worked_on = session.task;
            match worked_on.filter(|_| session.keeps_feedback) {
                Some(_) => unheard = session.take_unheard(),
                None => unsaid.extend(session.pending.iter().filter(|piece| piece.person)),
            }
            (between && free).then_some(())
        })?;
        if let Some(id) = worked_on.filter(|_| !unsaid.is_empty() || !unheard.is_empty()) {
            let mut task = self.its_task(id)?;
            if task.state != State::Completed {
                task.unsaid.extend(unsaid);
            }
            task.keep_unheard(unheard);
            changes.push(put(task));
        }
        Ok(changes)
    }

    pub(super) fn iteration_started(&self, run: &RunId) -> Changes {
        let mut changes = self.session(|session| {
            let next = run.iteration == session.iteration + 1 && *run == session.run(run.iteration);
            let fits = next && is_between(session);
            // An iteration that starts again gets its own feedback again.
            session.pending.retain(|piece| !piece.passing);
            let is_taken_up = session.takes_up();
            if !is_taken_up {
                session.retries = 0;
                session.sent_back.clear();
                session.watch.same_blocks = 0;
                session.delivered = false;
            }
            session.iteration = run.iteration;
            session.watch.used_in_iteration = Usage::default();
            session.phase = Phase::Preparing(run.clone());
            session.resumes = false;
            // A person's waiver holds until the work is judged done, its delivery included.
            if !is_taken_up && session.done_at.is_some() {
                session.ignores.clear();
            }
            fits.then_some(())
        })?;
        // The agent may change the work, so it has to be judged again.
        if self.envelope.node.task().is_some() {
            changes.extend(self.touched(|task| task.stalled = None)?);
        }
        Ok(changes)
    }

    pub(super) fn turn_started(&self, started: &payload::TurnStarted) -> Changes {
        let name = self.session_name()?.clone();
        let kind = EffectKind::Turn { session: name, run: started.run.clone() };
        let mut config = None;
        let mut changes = self.session(|session| {
            let fits = match (&session.phase, &started.purpose) {
                (Phase::Preparing(run), Purpose::Work) => *run == started.run,
                (Phase::Decided(run, Decision::SendBack), Purpose::SendBack) => *run == started.run,
                (Phase::Recovering(run) | Phase::Failed(run), Purpose::Recovery) => *run == started.run,
                (Phase::Settled(_), Purpose::Delivery) => {
                    !session.delivered && session.run(session.iteration) == started.run
                }
                (_, Purpose::UnjudgedDelivery(_)) => is_between(session),
                _ => false,
            };
            session.delivered |= started.purpose == Purpose::Delivery;
            let bound = u32::try_from(session.pending.len()) == Ok(started.feedback);
            config = Some(session.config);
            session.phase = Phase::Turn(Turn {
                run: started.run.clone(),
                effect: EffectId { seq: self.seq, index: 0 },
                purpose: started.purpose.clone(),
                feedback: std::mem::take(&mut session.pending),
                claimed: false,
            });
            (fits && bound).then_some(())
        })?;
        if let Some(config) = config {
            changes.push(Change::PutEffect(Box::new(self.made(0, kind, config, &started.owner))));
        }
        Ok(changes)
    }

    pub(super) fn feedback_delivered(&self, delivered: &payload::FeedbackDelivered) -> Changes {
        self.session(|session| match &mut session.phase {
            Phase::Turn(turn) if turn.run == delivered.run => {
                let carried = std::mem::take(&mut turn.feedback);
                let fits =
                    !carried.is_empty() && carried.iter().map(|piece| piece.at).eq(delivered.feedback.iter().copied());
                fits.then_some(())
            }
            _ => None,
        })
    }

    pub(super) fn conversation_opened(&self, opened: &payload::ConversationOpened) -> Changes {
        self.session(|session| {
            let runs = session.turn().is_some_and(|turn| turn.run == opened.run);
            let first = session.conversation.is_none();
            session.conversation = Some(opened.conversation.clone());
            if opened.opening != Opening::Loaded {
                session.watch.used_in_conversation = Usage::default();
            }
            (runs && first == (opened.opening == Opening::New)).then_some(())
        })
    }

    pub(super) fn turn_finished(&self, finished: &payload::TurnFinished) -> Changes {
        self.turn_over(&finished.run, |session, turn| {
            session.watch.begin_judging(&finished.output, finished.tree);
            session.verdict = Verdict::Pass;
            session.blocking.clear();
            session.overlooked.clear();
            (session.asking, session.broken_gate, session.rejudged) = (None, false, false);
            session.checked = false;
            session.interrupted_in_a_row = 0;
            session.last_turn = Some(self.seq);
            session.plea = match &self.envelope.event {
                Event::TurnFinished(finished) => last_words(&finished.output),
                _ => None,
            };
            session.phase = Phase::Judging(turn.run, None);
            turn.purpose.is_judged()
        })
    }

    pub(super) fn promise_detected(&self, detected: &payload::PromiseDetected) -> Changes {
        self.session(|session| match &mut session.phase {
            Phase::Judging(run, claim @ None) if *run == detected.run => {
                *claim = Some(detected.promise);
                Some(())
            }
            _ => None,
        })
    }

    pub(super) fn gate_decided(&self, decided: &payload::GateDecided) -> Changes {
        let mut held = None;
        let mut changes = self.session(|session| {
            held = session.task.filter(|_| session.epoch().is_some());
            let (fits, claim) = match &session.phase {
                Phase::Judging(run, claim) | Phase::Asking(run, claim, Some(_)) => (*run == decided.run, *claim),
                _ => (false, None),
            };
            if !matches!(claim, Some(Promise::Blocked | Promise::Escalate)) {
                session.plea = None;
            }
            session.watch.end_judging();
            session.retries = decided.retries;
            if !decided.decision.asks_for_person() {
                session.overlooked.clear();
            }
            let completes = matches!(&decided.decision, Decision::Next(Next::Close(closing)) if closing.ending == Ending::Completed);
            let done = claim == Some(Promise::Complete) || session.terms.completion == Completion::Gate;
            let let_pass = matches!(session.phase, Phase::Asking(_, _, Some(GateAnswer::Ignore)));
            match completes && !session.delivered {
                true if let_pass => session.ignores.extend(session.blocking.iter().map(|blocker| blocker.hook.clone())),
                true => {}
                false if done && !session.is_unheard() => session.ignores.clear(),
                false => {}
            }
            if let Decision::Next(Next::Close(Closing { ending: Ending::Completed, reason })) = &decided.decision {
                session.done_at = Some(self.seq);
                session.checked |= reason.is_some();
            }
            if decided.decision == Decision::SendBack {
                for blocker in std::mem::take(&mut session.blocking) {
                    *session.sent_back.entry(blocker.hook).or_default() += 1;
                }
            }
            session.phase = match &decided.decision {
                Decision::Ask => Phase::Asking(decided.run.clone(), claim, None),
                decision => Phase::Decided(decided.run.clone(), decision.clone()),
            };
            fits.then_some(())
        })?;
        if let Some(mut task) = held.map(|id| self.its_task(id)).transpose()?
            && let Some(series) = &mut task.drive.series
        {
            series.judged_by_loop = true;
            changes.push(put(task));
        }
        Ok(changes)
    }

    pub(super) fn gate_answered(&self, answered: &payload::GateAnswered) -> Changes {
        self.session(|session| match &mut session.phase {
            Phase::Asking(run, _, answer @ None) if *run == answered.run => {
                *answer = Some(answered.answer);
                // The time of an answer does not count as working time.
                session.watch.wake(self.envelope.timestamp);
                session.watch.begin_anew();
                if answered.answer == GateAnswer::Continue {
                    session.retries = 0;
                    session.sent_back.clear();
                }
                Some(())
            }
            _ => None,
        })
    }

    pub(super) fn iteration_completed(&self, run: &RunId) -> Changes {
        self.session(|session| match &session.phase {
            Phase::Decided(decided, Decision::Next(next)) if decided == run => {
                session.failures = 0;
                session.phase = Phase::Settled(next.clone());
                Some(())
            }
            _ => None,
        })
    }

    /// Folds a failed iteration. After a full conversation the next turn starts a new one.
    pub(super) fn iteration_failed(&self, failed: &payload::IterationFailed) -> Changes {
        self.turn_over(&failed.run, |session, turn| {
            session.count_failure(self.envelope.timestamp);
            if failed.fault == Fault::OutOfTokens {
                session.conversation = None;
            }
            session.watch.failure = Some(self.seq);
            session.watch.failure_cause = first_words(&failed.error);
            session.watch.retry_at = failed.until;
            session.watch.postponed = 0;
            session.phase = Phase::Failed(turn.run);
            give_back(session, turn.feedback);
            turn.purpose.is_judged()
        })
    }

    pub(super) fn iteration_interrupted(&self, interrupted: &payload::IterationInterrupted) -> Changes {
        let run = &interrupted.run;
        let mut ended = None;
        let mut changes = self.session(|session| {
            let feedback = match session.phase.clone() {
                Phase::Preparing(open)
                | Phase::Judging(open, _)
                | Phase::Decided(open, _)
                | Phase::Asking(open, ..)
                    if open == *run =>
                {
                    vec![]
                }
                Phase::Turn(turn) if turn.run == *run && turn.purpose.is_judged() => {
                    ended = Some(turn.effect);
                    turn.feedback
                }
                _ => return None,
            };
            session.watch.spend(interrupted.usage);
            session.interrupted += 1;
            session.interrupted_in_a_row += 1;
            session.phase = Phase::Settled(Next::TakeUp);
            give_back(session, feedback);
            Some(())
        })?;
        changes.extend(ended.map(Change::DropEffect));
        changes.extend(self.task_after(interrupted.usage)?);
        Ok(changes)
    }

    /// Folds a postponed iteration. It does not count, and the session takes it up again.
    pub(super) fn iteration_postponed(&self, postponed: &payload::IterationPostponed) -> Changes {
        self.turn_over(&postponed.run, |session, turn| {
            session.interrupted += 1;
            session.watch.postponed += 1;
            session.phase = Phase::Postponed(postponed.until);
            give_back(session, turn.feedback);
            turn.purpose.is_judged()
        })
    }

    /// Folds the end of a delivery. Undelivered feedback stays pending. An interrupted delivery of an older version is repeated, a failed
    /// one is not.
    pub(super) fn delivery_over(&self, run: &RunId) -> Changes {
        let interrupted = matches!(self.envelope.event, Event::DeliveryInterrupted(_));
        self.turn_over(run, |session, turn| {
            give_back(session, turn.feedback);
            if matches!(self.envelope.event, Event::DeliveryFinished(_)) {
                session.last_turn = Some(self.seq);
            }
            session.phase = match turn.purpose {
                // The wait that the failure asked for applies after any recovery turn.
                Purpose::Recovery => match session.watch.retry_at {
                    Some(until) => Phase::Postponed(until),
                    None => Phase::Settled(Next::Continue),
                },
                Purpose::UnjudgedDelivery(closing) if interrupted => Phase::Settled(Next::Close(closing)),
                Purpose::UnjudgedDelivery(closing) => Phase::Closing(closing),
                Purpose::Work | Purpose::SendBack | Purpose::Delivery => return false,
            };
            true
        })
    }

    /// Folds queued feedback. A person's message restarts the count of send-backs, unless the session asks a person about it.
    pub(super) fn feedback_queued(&self, queued: &payload::FeedbackQueued) -> Changes {
        let person = queued.voice.is_person();
        let piece = Piece { at: self.seq, possibly_seen: false, passing: queued.passing, person };
        if self.envelope.session.is_none() {
            return self.touched(|task| task.keep_unheard(vec![piece]));
        }
        self.session(|session| {
            session.pending.push(piece);
            if matches!(session.phase, Phase::Judging(..)) {
                let blocker = session.blocking.last_mut().filter(|blocker| blocker.hook == queued.source);
                session.watch.told(&queued.text, queued.own, blocker.is_some());
                if let Some(blocker) = blocker.filter(|blocker| blocker.reason.is_none()) {
                    blocker.reason.clone_from(&queued.reason);
                }
            }
            match (&session.phase, queued.voice) {
                (Phase::Failed(run), Voice::Hook) if session.watch.is_failure(self.envelope.metadata.cause) => {
                    session.phase = Phase::Recovering(run.clone());
                }
                (Phase::Asking(..), Voice::Person) => {}
                (_, Voice::Person) => {
                    session.retries = 0;
                    session.sent_back.clear();
                    session.watch.begin_anew();
                }
                (_, Voice::Hook | Voice::Agent | Voice::Windlass) => {}
            }
            Some(())
        })
    }

    fn turn_over(&self, run: &RunId, change: impl FnOnce(&mut Session, Turn) -> bool) -> Changes {
        let mut effect = None;
        let used = self.envelope.event.usage();
        let mut changes = self.session(|session| match session.phase.clone() {
            Phase::Turn(turn) if turn.run == *run => {
                effect = Some(turn.effect);
                session.watch.spend(used);
                change(session, turn).then_some(())
            }
            _ => None,
        })?;
        changes.extend(effect.map(Change::DropEffect));
        changes.extend(self.task_after(used)?);
        Ok(changes)
    }

    fn its_task(&self, id: TaskId) -> Result<Task, ApplyError> {
        let task = if self.envelope.node.task() == Some(id) { self.own_task()? } else { self.task(id)? };
        Ok(Task { version: self.seq, ..task })
    }

    fn task_after(&self, used: Usage) -> Result<Option<Change>, ApplyError> {
        let said = match &self.envelope.event {
            Event::TurnFinished(_) => self.said(false),
            _ => None,
        };
        if self.envelope.node.task().is_none() {
            return Ok(None);
        }
        let mut task = self.own_task()?;
        let heard = self.is_work_of_the_holder(&task) && !task.findings.is_empty();
        if said.is_none() && used.is_nothing() && !heard {
            return Ok(None);
        }
        if heard {
            task.findings.clear();
        }
        if let Some(said) = said {
            task.memo.said(said);
        }
        task.used = task.used.plus(used);
        Ok(Some(put(task)))
    }

    /// Returns whether the holder of the task has worked on it, and so knows the findings.
    fn is_work_of_the_holder(&self, task: &Task) -> bool {
        let holder = task.lease.as_ref().and_then(|lease| lease.session.as_ref());
        matches!(self.envelope.event, Event::TurnFinished(_))
            && holder.is_some()
            && holder == self.envelope.session.as_ref()
    }

    pub(super) fn session(&self, change: impl FnOnce(&mut Session) -> Option<()>) -> Changes {
        let name = self.session_name()?;
        let Some(mut session) = self.view.session(name)? else {
            return Err(self.unfit(format!("there is no session `{name}`")));
        };
        let phase = session.phase.clone();
        change(&mut session).ok_or_else(|| self.unfit(format!("session `{name}` is {phase:?}")))?;
        self.pass_time(&mut session);
        session.version = self.seq;
        Ok(vec![Change::PutSession(Box::new(session))])
    }

    /// Records that the session's runner was active. Events of others, such as an agent's claim, do not count.
    pub(super) fn pass_time(&self, session: &mut Session) {
        let of_the_loop = match &self.envelope.event {
            Event::FeedbackQueued(queued) => queued.voice.is_hook(),
            Event::SessionStopping(_) | Event::GateAnswered(_) | Event::CompletionClaimed(_) => false,
            _ => self.envelope.session.is_some(),
        };
        if of_the_loop {
            session.watch.hear(self.envelope.timestamp);
        }
    }

    fn session_name(&self) -> Result<&SessionName, ApplyError> {
        self.envelope.session.as_ref().ok_or_else(|| self.unfit("it names no session".to_owned()))
    }
}

/// Returns whether the next iteration may begin. Work of a task that the session has left is no longer at a gate.
fn is_between(session: &Session) -> bool {
    use Phase as P;
    match session.phase {
        P::Started | P::Settled(_) | P::Failed(_) | P::Recovering(_) | P::Postponed(_) => true,
        P::Pipeline(_) => session.epoch().is_none(),
        _ => false,
    }
}

/// Puts the feedback of an unfinished turn back at the head of the queue, marked as possibly seen.
fn give_back(session: &mut Session, feedback: Vec<Piece>) {
    let pieces = feedback.into_iter().map(|piece| Piece { possibly_seen: true, ..piece });
    session.pending.splice(0..0, pieces);
}

fn first_words(error: &str) -> Option<String> {
    let line = error.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line[..line.floor_char_boundary(MAX_CAUSE_BYTES)].to_owned())
}
