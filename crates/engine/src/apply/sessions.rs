//! Sessions: each event moves its session from one phase to the next, or does not fit.

use std::collections::BTreeMap;

use super::{ApplyError, EventFold, FoldResult, put_task};
use crate::effects::outbox::EffectKind;
use crate::log::event::{Event, payload};
use crate::log::id::{EffectId, RunId, SessionName, TaskId};
use crate::session::guard_state::GuardState;
use crate::session::message_author::MessageAuthor;
use crate::session::promise::{Promise, excerpt_last_words};
use crate::session::turn_failure::TurnFailure;
use crate::session::usage::AgentUsage;
use crate::session::{
    AfterIteration, AgentTurn, CompletionMode, ConversationStart, FeedbackRef, GateAnswer, GateDecision, GateVerdict,
    Session, SessionEnd, SessionEndKind, SessionPhase, TaskHold, TurnPurpose,
};
use crate::task::{CompletionClaim, Task, TaskState};
use crate::view::RowChange;

const MAX_CAUSE_BYTES: usize = 200;

impl EventFold<'_> {
    pub(super) fn fold_session_started(&self, started: &payload::SessionStarted) -> FoldResult {
        let name = self.event_session_name()?;
        if self.view.find_session(name)?.is_some() {
            return Err(self.unfit_event_error(format!("session `{name}` exists")));
        }
        Ok(vec![RowChange::PutSession(Box::new(Session {
            name: name.clone(),
            config: started.config,
            protected: started.protected,
            task: self.envelope.node.task_id(),
            hold: TaskHold::Never,
            finished: false,
            work: started.work,
            workspace_mode: started.workspace_mode,
            workspace: None,
            report: false,
            judged_done_at: None,
            resumes_at_gate: false,
            remediations: 0,
            rechecks: 0,
            rejudged: false,
            released_tasks: Vec::new(),
            lost_tasks: Vec::new(),
            last_words: None,
            escalated: Vec::new(),
            goal: started.goal.clone(),
            agent: started.agent.clone(),
            terms: started.terms.clone(),
            nonce: started.nonce,
            fresh: started.fresh,
            nesting: self.nesting_depth()?,
            owner: started.owner.clone(),
            phase: SessionPhase::Started,
            pending_hooks: Vec::new(),
            iteration: 0,
            iterations_before: 0,
            interrupted: 0,
            interrupted_in_a_row: 0,
            failures: 0,
            retries: 0,
            sent_back: BTreeMap::new(),
            verdict: GateVerdict::Pass,
            asking: None,
            broken_gate: false,
            blocking: Vec::new(),
            ignored_hooks: Vec::new(),
            ignored_blocks: Vec::new(),
            waivers: Vec::new(),
            checked: false,
            unchecked: 0,
            pending: Vec::new(),
            last_turn: None,
            delivered: false,
            keeps_feedback: started.keeps_feedback,
            conversation: None,
            stopping: None,
            watch: GuardState { at: Some(self.envelope.timestamp), ..GuardState::default() },
            started: self.seq,
            started_at: self.envelope.timestamp,
            ended_at: None,
            version: self.seq,
        }))])
    }

    pub(super) fn fold_session_resumed(&self, resumed: &payload::SessionResumed) -> FoldResult {
        let mut held = None;
        let mut changes = self.change_session(|session| {
            session.watch.restart_clock(self.envelope.timestamp);
            // A session that is not running does not fail.
            session.watch.failing_since = None;
            session.owner = resumed.owner.clone();
            session.terms = resumed.terms.clone();
            held = session.task.filter(|_| session.held_epoch().is_some());
            Some(())
        })?;
        if let Some(id) = held {
            let mut task = self.require_session_task(id)?;
            if let Some(lease) = &mut task.lease {
                lease.owner = resumed.owner.clone();
            }
            changes.push(put_task(task));
        }
        Ok(changes)
    }

    /// Gives a task to a session that is between iterations. A wait for the agent goes on with the new task.
    pub(super) fn take_up_task(&self, name: &SessionName, claimed: &payload::TaskClaimed) -> FoldResult {
        let (own, id) = (self.event_session_name()? == name, self.event_task_id()?);
        let task = self.require_task(id)?;
        let ignores = task.answer.map(|answer| answer.ignores).unwrap_or_default();
        self.change_session(|session| {
            session.ignored_hooks.clone_from(&ignores);
            session.pending.extend(task.undelivered_messages.iter().chain(&task.undelivered_feedback));
            session.pending.sort_by_key(|piece| piece.at);
            let free = session.held_epoch().is_none() && is_between_iterations(session);
            let fits = own && free && session.owner == claimed.owner;
            let waits_until = session.wait_deadline();
            session.take_up_task(id, claimed.epoch);
            session.resume_conversation(task.conversation.as_ref());
            session.report = claimed.report;
            session.resumes_at_gate =
                task.stalled.is_some() && !session.workspace_mode.is_in_place() && !claimed.report;
            let stalled = task.stalled.as_ref().filter(|_| session.resumes_at_gate);
            session.checked = stalled.is_some_and(|stalled| stalled.checked);
            session.rejudged = stalled.is_some_and(|stalled| stalled.rejudged);
            if let Some(until) = waits_until {
                session.phase = SessionPhase::Postponed(until);
            }
            fits.then_some(())
        })
    }

    pub(super) fn fold_completion_claimed(&self, claim: &CompletionClaim) -> FoldResult {
        let mut changes = self.change_task(|task| task.claim = Some(claim.clone()))?;
        let id = self.event_task_id()?;
        if self.envelope.session.as_ref() == Some(&claim.run.session) {
            self.change_named_session(&claim.run.session, &mut changes, |session| {
                let own = session.task == Some(id) && session.held_epoch().is_some();
                if let SessionPhase::Turn(turn) = &mut session.phase
                    && turn.run == claim.run
                {
                    turn.claimed |= own;
                }
            })?;
        }
        Ok(changes)
    }

    pub(super) fn fold_session_stopping(&self, stopping: &payload::SessionStopping) -> FoldResult {
        self.change_session(|session| {
            let first = session.ending_kind().is_none() && session.stopping.is_none();
            session.stopping = Some(SessionEnd { ending: stopping.ending, reason: stopping.reason.clone() });
            first.then_some(())
        })
    }

    /// Folds the end of a session. Feedback that the agent has not received stays with the task; of a session of an older version only a
    /// person's, and only if the task is not completed.
    pub(super) fn fold_session_ended(&self, ending: SessionEndKind) -> FoldResult {
        let (mut worked_on, mut undelivered_messages, mut undelivered_feedback) =
            (None, Vec::<FeedbackRef>::new(), Vec::new());
        let mut changes = self.change_session(|session| {
            let between = is_between_iterations(session) || matches!(session.phase, SessionPhase::Closing(_));
            let free = session.held_epoch().is_none();
            session.phase = SessionPhase::Ended(ending);
            session.ended_at = Some(self.envelope.timestamp);
            worked_on = session.task;
            match worked_on.filter(|_| session.keeps_feedback) {
                Some(_) => undelivered_feedback = session.take_undelivered_feedback(),
                None => undelivered_messages.extend(session.pending.iter().filter(|piece| piece.person)),
            }
            (between && free).then_some(())
        })?;
        if let Some(id) = worked_on.filter(|_| !undelivered_messages.is_empty() || !undelivered_feedback.is_empty()) {
            let mut task = self.require_session_task(id)?;
            if task.state != TaskState::Completed {
                task.undelivered_messages.extend(undelivered_messages);
            }
            task.keep_undelivered_feedback(undelivered_feedback);
            changes.push(put_task(task));
        }
        Ok(changes)
    }

    pub(super) fn fold_iteration_started(&self, run: &RunId) -> FoldResult {
        let mut changes = self.change_session(|session| {
            let next = run.iteration == session.iteration + 1 && *run == session.run_id_for(run.iteration);
            let fits = next && is_between_iterations(session);
            // An iteration that starts again gets its own feedback again.
            session.pending.retain(|piece| !piece.passing);
            let is_taken_up = session.continues_interrupted_iteration();
            if !is_taken_up {
                session.retries = 0;
                session.sent_back.clear();
                session.watch.same_blocks = 0;
                session.delivered = false;
            }
            session.iteration = run.iteration;
            session.watch.used_in_iteration = AgentUsage::default();
            session.phase = SessionPhase::Preparing(run.clone());
            session.resumes_at_gate = false;
            // A person's waiver holds until the work is judged done, its delivery included.
            if !is_taken_up && session.judged_done_at.is_some() {
                session.ignored_hooks.clear();
            }
            fits.then_some(())
        })?;
        // The agent may change the work, so it has to be judged again.
        if self.envelope.node.task_id().is_some() {
            changes.extend(self.change_task(|task| task.stalled = None)?);
        }
        Ok(changes)
    }

    pub(super) fn fold_turn_started(&self, started: &payload::TurnStarted) -> FoldResult {
        let name = self.event_session_name()?.clone();
        let kind = EffectKind::Turn { session: name, run: started.run.clone() };
        let mut config = None;
        let mut changes = self.change_session(|session| {
            let fits = match (&session.phase, &started.purpose) {
                (SessionPhase::Preparing(run), TurnPurpose::Work) => *run == started.run,
                (SessionPhase::Decided(run, GateDecision::SendBack), TurnPurpose::SendBack) => *run == started.run,
                (SessionPhase::Recovering(run) | SessionPhase::Failed(run), TurnPurpose::Recovery) => {
                    *run == started.run
                }
                (SessionPhase::Settled(_), TurnPurpose::Delivery) => {
                    !session.delivered && session.run_id_for(session.iteration) == started.run
                }
                (_, TurnPurpose::UnjudgedDelivery(_)) => is_between_iterations(session),
                _ => false,
            };
            session.delivered |= started.purpose == TurnPurpose::Delivery;
            let bound = u32::try_from(session.pending.len()) == Ok(started.feedback);
            config = Some(session.config);
            session.phase = SessionPhase::Turn(AgentTurn {
                run: started.run.clone(),
                effect: EffectId { seq: self.seq, index: 0 },
                purpose: started.purpose.clone(),
                feedback: std::mem::take(&mut session.pending),
                claimed: false,
            });
            (fits && bound).then_some(())
        })?;
        if let Some(config) = config {
            changes.push(RowChange::PutEffect(Box::new(self.build_pending_effect(0, kind, config, &started.owner))));
        }
        Ok(changes)
    }

    pub(super) fn fold_feedback_delivered(&self, delivered: &payload::FeedbackDelivered) -> FoldResult {
        self.change_session(|session| match &mut session.phase {
            SessionPhase::Turn(turn) if turn.run == delivered.run => {
                let carried = std::mem::take(&mut turn.feedback);
                let fits =
                    !carried.is_empty() && carried.iter().map(|piece| piece.at).eq(delivered.feedback.iter().copied());
                fits.then_some(())
            }
            _ => None,
        })
    }

    pub(super) fn fold_conversation_opened(&self, opened: &payload::ConversationOpened) -> FoldResult {
        self.change_session(|session| {
            let runs = session.current_turn().is_some_and(|turn| turn.run == opened.run);
            let first = session.conversation.is_none();
            session.conversation = Some(opened.conversation.clone());
            if opened.opening != ConversationStart::Loaded {
                session.watch.used_in_conversation = AgentUsage::default();
            }
            (runs && first == (opened.opening == ConversationStart::New)).then_some(())
        })
    }

    pub(super) fn fold_turn_finished(&self, finished: &payload::TurnFinished) -> FoldResult {
        self.end_turn_with(&finished.run, |session, turn| {
            session.watch.begin_judging(&finished.output, finished.tree);
            session.verdict = GateVerdict::Pass;
            session.blocking.clear();
            session.ignored_blocks.clear();
            (session.asking, session.broken_gate, session.rejudged) = (None, false, false);
            session.checked = false;
            session.interrupted_in_a_row = 0;
            session.last_turn = Some(self.seq);
            session.last_words = match &self.envelope.event {
                Event::TurnFinished(finished) => excerpt_last_words(&finished.output),
                _ => None,
            };
            session.phase = SessionPhase::Judging(turn.run, None);
            turn.purpose.is_judged_by_hooks()
        })
    }

    pub(super) fn fold_promise_detected(&self, detected: &payload::PromiseDetected) -> FoldResult {
        self.change_session(|session| match &mut session.phase {
            SessionPhase::Judging(run, claim @ None) if *run == detected.run => {
                *claim = Some(detected.promise);
                Some(())
            }
            _ => None,
        })
    }

    pub(super) fn fold_gate_decided(&self, decided: &payload::GateDecided) -> FoldResult {
        let mut held = None;
        let mut changes = self.change_session(|session| {
            held = session.task.filter(|_| session.held_epoch().is_some());
            let (fits, claim) = match &session.phase {
                SessionPhase::Judging(run, claim) | SessionPhase::Asking(run, claim, Some(_)) => (*run == decided.run, *claim),
                _ => (false, None),
            };
            if !matches!(claim, Some(Promise::Blocked | Promise::Escalate)) {
                session.last_words = None;
            }
            session.watch.end_judging();
            session.retries = decided.retries;
            if !decided.decision.asks_for_person() {
                session.ignored_blocks.clear();
            }
            let completes = matches!(&decided.decision, GateDecision::Next(AfterIteration::Close(closing)) if closing.ending == SessionEndKind::Completed);
            let done = claim == Some(Promise::Complete) || session.terms.completion == CompletionMode::Gate;
            let let_pass = matches!(session.phase, SessionPhase::Asking(_, _, Some(GateAnswer::Ignore)));
            match completes && !session.delivered {
                true if let_pass => session.ignored_hooks.extend(session.blocking.iter().map(|blocker| blocker.hook.clone())),
                true => {}
                false if done && !session.has_unheard_person() => session.ignored_hooks.clear(),
                false => {}
            }
            if let GateDecision::Next(AfterIteration::Close(SessionEnd { ending: SessionEndKind::Completed, reason })) = &decided.decision {
                session.judged_done_at = Some(self.seq);
                session.checked |= reason.is_some();
            }
            if decided.decision == GateDecision::SendBack {
                for blocker in std::mem::take(&mut session.blocking) {
                    *session.sent_back.entry(blocker.hook).or_default() += 1;
                }
            }
            session.phase = match &decided.decision {
                GateDecision::Ask => SessionPhase::Asking(decided.run.clone(), claim, None),
                decision => SessionPhase::Decided(decided.run.clone(), decision.clone()),
            };
            fits.then_some(())
        })?;
        if let Some(mut task) = held.map(|id| self.require_session_task(id)).transpose()?
            && let Some(series) = &mut task.evaluation.series
        {
            series.judged_by_loop = true;
            changes.push(put_task(task));
        }
        Ok(changes)
    }

    pub(super) fn fold_gate_answered(&self, answered: &payload::GateAnswered) -> FoldResult {
        self.change_session(|session| match &mut session.phase {
            SessionPhase::Asking(run, _, answer @ None) if *run == answered.run => {
                *answer = Some(answered.answer);
                // The time of an answer does not count as working time.
                session.watch.restart_clock(self.envelope.timestamp);
                session.watch.reset_repetitions();
                if answered.answer == GateAnswer::Continue {
                    session.retries = 0;
                    session.sent_back.clear();
                }
                Some(())
            }
            _ => None,
        })
    }

    pub(super) fn fold_iteration_completed(&self, run: &RunId) -> FoldResult {
        self.change_session(|session| match &session.phase {
            SessionPhase::Decided(decided, GateDecision::Next(next)) if decided == run => {
                session.failures = 0;
                session.phase = SessionPhase::Settled(next.clone());
                Some(())
            }
            _ => None,
        })
    }

    /// Folds a failed iteration. After a full conversation the next turn starts a new one.
    pub(super) fn fold_iteration_failed(&self, failed: &payload::IterationFailed) -> FoldResult {
        self.end_turn_with(&failed.run, |session, turn| {
            session.count_failure(self.envelope.timestamp);
            if failed.fault == TurnFailure::OutOfTokens {
                session.conversation = None;
            }
            session.watch.failure = Some(self.seq);
            session.watch.failure_cause = first_error_line(&failed.error);
            session.watch.retry_at = failed.until;
            session.watch.postponed = 0;
            session.phase = SessionPhase::Failed(turn.run);
            return_feedback(session, turn.feedback);
            turn.purpose.is_judged_by_hooks()
        })
    }

    pub(super) fn fold_iteration_interrupted(&self, interrupted: &payload::IterationInterrupted) -> FoldResult {
        let run = &interrupted.run;
        let mut ended = None;
        let mut changes = self.change_session(|session| {
            let feedback = match session.phase.clone() {
                SessionPhase::Preparing(open)
                | SessionPhase::Judging(open, _)
                | SessionPhase::Decided(open, _)
                | SessionPhase::Asking(open, ..)
                    if open == *run =>
                {
                    vec![]
                }
                SessionPhase::Turn(turn) if turn.run == *run && turn.purpose.is_judged_by_hooks() => {
                    ended = Some(turn.effect);
                    turn.feedback
                }
                _ => return None,
            };
            session.watch.add_turn_usage(interrupted.usage);
            session.interrupted += 1;
            session.interrupted_in_a_row += 1;
            session.phase = SessionPhase::Settled(AfterIteration::TakeUp);
            return_feedback(session, feedback);
            Some(())
        })?;
        changes.extend(ended.map(RowChange::DropEffect));
        changes.extend(self.task_after_turn(interrupted.usage)?);
        Ok(changes)
    }

    /// Folds a postponed iteration. It does not count, and the session takes it up again.
    pub(super) fn fold_iteration_postponed(&self, postponed: &payload::IterationPostponed) -> FoldResult {
        self.end_turn_with(&postponed.run, |session, turn| {
            session.interrupted += 1;
            session.watch.postponed += 1;
            session.phase = SessionPhase::Postponed(postponed.until);
            return_feedback(session, turn.feedback);
            turn.purpose.is_judged_by_hooks()
        })
    }

    /// Folds the end of a delivery. Undelivered feedback stays pending. An interrupted delivery of an older version is repeated, a failed
    /// one is not.
    pub(super) fn fold_delivery_ended(&self, run: &RunId) -> FoldResult {
        let interrupted = matches!(self.envelope.event, Event::DeliveryInterrupted(_));
        self.end_turn_with(run, |session, turn| {
            return_feedback(session, turn.feedback);
            if matches!(self.envelope.event, Event::DeliveryFinished(_)) {
                session.last_turn = Some(self.seq);
            }
            session.phase = match turn.purpose {
                // The wait that the failure asked for applies after any recovery turn.
                TurnPurpose::Recovery => match session.watch.retry_at {
                    Some(until) => SessionPhase::Postponed(until),
                    None => SessionPhase::Settled(AfterIteration::Continue),
                },
                TurnPurpose::UnjudgedDelivery(closing) if interrupted => {
                    SessionPhase::Settled(AfterIteration::Close(closing))
                }
                TurnPurpose::UnjudgedDelivery(closing) => SessionPhase::Closing(closing),
                TurnPurpose::Work | TurnPurpose::SendBack | TurnPurpose::Delivery => return false,
            };
            true
        })
    }

    /// Folds queued feedback. A person's message restarts the count of send-backs, unless the session asks a person about it.
    pub(super) fn fold_feedback_queued(&self, queued: &payload::FeedbackQueued) -> FoldResult {
        let person = queued.voice.is_person();
        let piece = FeedbackRef { at: self.seq, possibly_seen: false, passing: queued.passing, person };
        if self.envelope.session.is_none() {
            return self.change_task(|task| task.keep_undelivered_feedback(vec![piece]));
        }
        self.change_session(|session| {
            session.pending.push(piece);
            if matches!(session.phase, SessionPhase::Judging(..)) {
                let blocker = session.blocking.last_mut().filter(|blocker| blocker.hook == queued.source);
                session.watch.record_hook_text(&queued.text, queued.own, blocker.is_some());
                if let Some(blocker) = blocker.filter(|blocker| blocker.reason.is_none()) {
                    blocker.reason.clone_from(&queued.reason);
                }
            }
            match (&session.phase, queued.voice) {
                (SessionPhase::Failed(run), MessageAuthor::Hook)
                    if session.watch.is_last_failure(self.envelope.metadata.cause) =>
                {
                    session.phase = SessionPhase::Recovering(run.clone());
                }
                (SessionPhase::Asking(..), MessageAuthor::Person) => {}
                (_, MessageAuthor::Person) => {
                    session.retries = 0;
                    session.sent_back.clear();
                    session.watch.reset_repetitions();
                }
                (_, MessageAuthor::Hook | MessageAuthor::Agent | MessageAuthor::Windlass) => {}
            }
            Some(())
        })
    }

    fn end_turn_with(&self, run: &RunId, change: impl FnOnce(&mut Session, AgentTurn) -> bool) -> FoldResult {
        let mut effect = None;
        let used = self.envelope.event.usage();
        let mut changes = self.change_session(|session| match session.phase.clone() {
            SessionPhase::Turn(turn) if turn.run == *run => {
                effect = Some(turn.effect);
                session.watch.add_turn_usage(used);
                change(session, turn).then_some(())
            }
            _ => None,
        })?;
        changes.extend(effect.map(RowChange::DropEffect));
        changes.extend(self.task_after_turn(used)?);
        Ok(changes)
    }

    fn require_session_task(&self, id: TaskId) -> Result<Task, ApplyError> {
        let task =
            if self.envelope.node.task_id() == Some(id) { self.require_event_task()? } else { self.require_task(id)? };
        Ok(Task { version: self.seq, ..task })
    }

    fn task_after_turn(&self, used: AgentUsage) -> Result<Option<RowChange>, ApplyError> {
        let said = match &self.envelope.event {
            Event::TurnFinished(_) => self.build_summary_ref(false),
            _ => None,
        };
        if self.envelope.node.task_id().is_none() {
            return Ok(None);
        }
        let mut task = self.require_event_task()?;
        let heard = self.is_work_of_holder(&task) && !task.findings.is_empty();
        if said.is_none() && used.is_nothing() && !heard {
            return Ok(None);
        }
        if heard {
            task.findings.clear();
        }
        if let Some(said) = said {
            task.memo.add_iteration_note(said);
        }
        task.used = task.used.saturating_add(used);
        Ok(Some(put_task(task)))
    }

    /// Returns whether the holder of the task has worked on it, and so knows the findings.
    fn is_work_of_holder(&self, task: &Task) -> bool {
        let holder = task.lease.as_ref().and_then(|lease| lease.session.as_ref());
        matches!(self.envelope.event, Event::TurnFinished(_))
            && holder.is_some()
            && holder == self.envelope.session.as_ref()
    }

    pub(super) fn change_session(&self, change: impl FnOnce(&mut Session) -> Option<()>) -> FoldResult {
        let name = self.event_session_name()?;
        let Some(mut session) = self.view.find_session(name)? else {
            return Err(self.unfit_event_error(format!("there is no session `{name}`")));
        };
        let phase = session.phase.clone();
        change(&mut session).ok_or_else(|| self.unfit_event_error(format!("session `{name}` is {phase:?}")))?;
        self.record_loop_activity(&mut session);
        session.version = self.seq;
        Ok(vec![RowChange::PutSession(Box::new(session))])
    }

    fn event_session_name(&self) -> Result<&SessionName, ApplyError> {
        self.envelope.session.as_ref().ok_or_else(|| self.unfit_event_error("it names no session".to_owned()))
    }
}

/// Returns whether the next iteration may begin. Work of a task that the session has left is no longer at a gate.
fn is_between_iterations(session: &Session) -> bool {
    use SessionPhase as P;
    match session.phase {
        P::Started | P::Settled(_) | P::Failed(_) | P::Recovering(_) | P::Postponed(_) => true,
        P::Pipeline(_) => session.held_epoch().is_none(),
        _ => false,
    }
}

/// Puts the feedback of an unfinished turn back at the head of the queue, marked as possibly seen.
fn return_feedback(session: &mut Session, feedback: Vec<FeedbackRef>) {
    let pieces = feedback.into_iter().map(|piece| FeedbackRef { possibly_seen: true, ..piece });
    session.pending.splice(0..0, pieces);
}

fn first_error_line(error: &str) -> Option<String> {
    let line = error.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line[..line.floor_char_boundary(MAX_CAUSE_BYTES)].to_owned())
}
