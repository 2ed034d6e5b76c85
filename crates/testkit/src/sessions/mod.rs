//! Sessions, computed from the log alone, with their rules.
//!
//! The engine moves a session from phase to phase and stores two lists of feedback. This module stores no value that it can
//! compute: feedback is pending if it was queued and is neither delivered nor in the current turn.

mod allowed_events;
mod pending_feedback;
mod rows;
mod send_backs;
mod stalled_work;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use windlass_engine::{
    AfterIteration, AgentUsage, CompletionMode, ConversationStart, EffectId, EngineLimits, Epoch, Event, EventRecord,
    EventType, FeedbackRef, GateAnswer, GateDecision, GateRemedy, GateVerdict, MessageAuthor, OwnerName, Promise,
    RetryLimitAction, RunId, Seq, SessionEnd, SessionEndKind, SessionName, SessionTerms, StateField, TaskHold, TaskId,
    TaskState, TaskTransition, Timestamp, TurnFailure, TurnPurpose, WorkSource, WorkspaceMode, payload,
};

use crate::effects::{ends_turn, owed_hooks};
use crate::gates::{DeliveryProgress, GateContext};
use pending_feedback::PendingFeedback;
use send_backs::SendBackCounts;
use stalled_work::StalledWorkOracle;

pub use rows::find_violations;

/// A session, according to the log.
#[derive(Debug, Clone)]
pub struct SessionOracle {
    pub owner: OwnerName,
    pub terms: SessionTerms,
    pub work: WorkSource,
    /// The current or the last task of the session.
    pub task: Option<TaskId>,
    hold: TaskHold,
    escalated: Vec<TaskId>,
    /// Tasks that the session left for a later run.
    pub released_tasks: Vec<TaskId>,
    /// Tasks that the session lost, and that others can claim.
    lost_tasks: Vec<TaskId>,
    pub workspace_mode: WorkspaceMode,
    delivery: DeliveryProgress,
    /// Whether the session completed its last task, and whether that task is completed at all.
    finished: bool,
    completed: bool,
    pub turn: Option<RunId>,
    pub iteration: u32,
    pub stopping: Option<SessionEnd>,
    pub ended: Option<SessionEndKind>,
    /// The hooks that the loop waits for.
    pub waits_for: Vec<EffectId>,
    started: Timestamp,
    interrupted: u32,
    /// The times of consecutive failed iterations.
    failures: Vec<Option<Timestamp>>,
    recovery: RecoveryState,
    /// The question to a person, and the answer if there is one.
    asking: Option<Option<GateAnswer>>,
    answered: Option<GateAnswer>,
    /// The end of a rate limit.
    postponed: Option<Timestamp>,
    postponements: u32,
    used: AgentUsage,
    /// Feedback about only the iteration in which it was queued.
    passing: BTreeSet<Seq>,
    queued: BTreeSet<Seq>,
    /// Feedback of persons.
    person_feedback: BTreeSet<Seq>,
    delivered: BTreeSet<Seq>,
    /// Feedback in the current turn.
    bound: BTreeSet<Seq>,
    /// Feedback in turns that did not finish.
    seen: BTreeSet<Seq>,
    /// The last conversation of the session, or of the previous session of its task.
    conversation: Option<String>,
    agent: String,
    fresh: bool,
    claim: Option<Promise>,
    /// When the stop gate last let the work pass.
    judged_done_at: Option<Seq>,
    gate: Option<(GateVerdict, GateDecision)>,
    /// Whether the iteration has had its delivery turn.
    has_delivered: bool,
    /// Whether the next iteration continues an interrupted one.
    takes_up: bool,
    send_backs: SendBackCounts,
    /// Whether a turn about the current task has finished.
    has_worked: bool,
    /// Violations so far.
    violations: Vec<String>,
}

/// The state after a failed iteration: whether hooks have sent feedback since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RecoveryState {
    None,
    Failed(Seq),
    Due,
}

/// Returns every session of a log.
pub fn read_sessions(log: &[EventRecord]) -> BTreeMap<SessionName, SessionOracle> {
    read_sessions_and_tasks(log).0
}

/// Returns the sessions, the stalled work, and the feedback that waits with tasks.
fn read_sessions_and_tasks(
    log: &[EventRecord],
) -> (BTreeMap<SessionName, SessionOracle>, StalledWorkOracle, PendingFeedback) {
    let (mut sessions, mut stalls, mut pending): (BTreeMap<SessionName, SessionOracle>, _, _) =
        (BTreeMap::new(), StalledWorkOracle::default(), PendingFeedback::default());
    for record in log {
        if let Event::HookFinished(finished) = &record.envelope.event {
            sessions
                .values_mut()
                .for_each(|oracle: &mut SessionOracle| oracle.waits_for.retain(|effect| *effect != finished.effect));
        }
        let named = record.envelope.session.as_ref();
        if let (Some(name), Event::SessionStarted(started)) = (named, &record.envelope.event) {
            let task = record.envelope.node.task_id();
            sessions.insert(
                name.clone(),
                SessionOracle { task, work: started.work, ..SessionOracle::new(started, record.envelope.timestamp) },
            );
        }
        stalls.observe(record, named.and_then(|name| sessions.get(name)));
        pending.observe(record, named.and_then(|name| sessions.get_mut(name)));
        if let Some((name, oracle)) = named.and_then(|name| Some((name, sessions.get_mut(name)?))) {
            oracle.observe(record, name, &stalls);
        }
        // An event that takes a task away from a session need not name the session.
        for (name, oracle) in &mut sessions {
            let held = matches!(oracle.hold, TaskHold::Held(_));
            let left = oracle.lose_task(name, record);
            pending.keep_feedback(oracle.task, left);
            if let Some(task) = oracle.task.filter(|_| held && oracle.hold == TaskHold::Left) {
                stalls.conversations.insert(task, oracle.last_conversation());
            }
        }
    }
    (sessions, stalls, pending)
}

impl SessionOracle {
    fn new(started: &payload::SessionStarted, at: Timestamp) -> Self {
        Self {
            owner: started.owner.clone(),
            terms: started.terms.clone(),
            work: WorkSource::Given,
            task: None,
            hold: TaskHold::Never,
            escalated: Vec::new(),
            released_tasks: Vec::new(),
            lost_tasks: Vec::new(),
            workspace_mode: started.workspace_mode,
            delivery: DeliveryProgress::default(),
            finished: false,
            completed: false,
            turn: None,
            iteration: 0,
            stopping: None,
            ended: None,
            waits_for: Vec::new(),
            started: at,
            interrupted: 0,
            failures: Vec::new(),
            recovery: RecoveryState::None,
            asking: None,
            answered: None,
            postponed: None,
            postponements: 0,
            used: AgentUsage::default(),
            passing: BTreeSet::new(),
            queued: BTreeSet::new(),
            person_feedback: BTreeSet::new(),
            delivered: BTreeSet::new(),
            bound: BTreeSet::new(),
            seen: BTreeSet::new(),
            conversation: None,
            agent: started.agent.clone(),
            fresh: started.fresh,
            claim: None,
            judged_done_at: None,
            gate: None,
            has_delivered: false,
            takes_up: false,
            send_backs: SendBackCounts::default(),
            has_worked: false,
            violations: Vec::new(),
        }
    }

    pub fn is_over(&self) -> bool {
        self.ended.is_some() && self.waits_for.is_empty()
    }

    /// Returns the hook that the session no longer waits for, because its end was requested.
    pub fn skipped_hook(&self) -> Option<EffectId> {
        let stops = self.stopping.is_some() && self.ended.is_none();
        self.waits_for.first().copied().filter(|effect| stops || self.is_hook_needless(*effect))
    }

    /// Returns whether a hook that has not begun must not begin any more.
    pub fn is_hook_needless(&self, effect: EffectId) -> bool {
        self.delivery.is_hook_needless(effect, self.hold != TaskHold::Left, self.is_held_back())
    }

    /// Returns whether the session works on a task, or did without completing it.
    pub fn has_taken_up(&self, id: TaskId) -> bool {
        [&self.released_tasks, &self.escalated, &self.lost_tasks].iter().any(|list| list.contains(&id))
            || self.task == Some(id)
    }

    pub fn holds(&self) -> bool {
        matches!(self.hold, TaskHold::Held(_))
    }

    pub fn is_in_worktrees(&self) -> bool {
        self.workspace_mode == WorkspaceMode::Worktrees
    }

    /// Returns whether the session waits for its work to be collected.
    pub fn wants_work(&self) -> bool {
        let done = self.delivery.done || self.resumes();
        let is_submitted = self.is_in_worktrees() || self.delivery.report;
        self.holds() && is_submitted && self.is_idle() && self.stopping.is_none() && done
    }

    /// Returns whether the work resumes at a gate, unless a person sends feedback.
    fn resumes(&self) -> bool {
        self.delivery.resumes && self.delivery.workspace.is_some()
    }

    pub fn delivery(&self) -> &DeliveryProgress {
        &self.delivery
    }

    /// Returns whether the session neither works nor waits.
    fn is_idle(&self) -> bool {
        let waits = self.asking.is_some() || self.postponed.is_some() || !self.waits_for.is_empty();
        self.turn.is_none() && self.ended.is_none() && !waits
    }

    /// Returns whether the session accepts the answer of a person.
    pub fn asks(&self) -> bool {
        self.asking == Some(None) && !self.waits_in_vain() && self.stopping.is_none() && self.ended.is_none()
    }

    /// Returns whether the session asks or waits about a task that it has lost.
    fn waits_in_vain(&self) -> bool {
        self.hold == TaskHold::Left && (self.asking.is_some() || self.postponed.is_some())
    }

    /// Returns whether a decision is due.
    pub fn may_advance(&self, now: Timestamp) -> bool {
        let answered = matches!(self.asking, Some(Some(_)));
        let due = self.postponed.is_some_and(|until| now >= until);
        let stopped = self.stopping.is_some() && (self.asking.is_some() || self.postponed.is_some());
        // A session that is to end, or has no task, has no work to decide about.
        let in_vain = self.is_idle() && (self.stopping.is_some() || self.hold == TaskHold::Left);
        let on_its_way = self.resumes() || self.delivery.done || self.delivery.is_under_way();
        let has_feedback = self.is_idle() && self.is_held_back() && on_its_way && !self.delivery.is_merged();
        let delivers = self.is_idle() && self.delivery.done && !self.delivery.is_under_way() && self.may_deliver();
        let waits = has_feedback || delivers || answered || due || stopped || in_vain || self.waits_in_vain();
        self.waits_for.is_empty() && self.turn.is_none() && waits
    }

    fn observe(&mut self, record: &EventRecord, name: &SessionName, stalls: &StalledWorkOracle) {
        self.check_event(record, name, stalls);
        self.send_backs.observe(record, self.takes_up, self.asking.is_some());
        self.observe_guards(record);
        self.delivery.observe(record, &self.owner, is_own(record));
        match &record.envelope.event {
            Event::SessionResumed(resumed) => {
                self.failures.fill(None);
                (self.owner, self.terms) = (resumed.owner.clone(), resumed.terms.clone());
            }
            Event::SessionStopping(stopping) => {
                self.stopping = Some(SessionEnd { ending: stopping.ending, reason: stopping.reason.clone() });
            }
            Event::SessionEnded(ended) => self.ended = Some(ended.ending),
            Event::TaskClaimed(claimed) if claimed.session == record.envelope.session => {
                let task = record.envelope.node.task_id().expect("a task is claimed");
                self.take_task(task, claimed.epoch);
                let last = stalls.conversations.get(&task).filter(|(agent, _)| *agent == self.agent && !self.fresh);
                if self.conversation.is_none() {
                    self.conversation = last.and_then(|(_, conversation)| conversation.clone());
                }
                self.delivery.report = claimed.report;
                self.delivery.resumes =
                    self.is_in_worktrees() && stalls.find_stalled(task).is_some() && !claimed.report;
            }
            Event::IterationStarted(started) => {
                self.iteration = started.run.iteration;
                self.has_delivered &= std::mem::take(&mut self.takes_up);
                let (passing, delivered) = (&self.passing, &self.delivered);
                self.queued.retain(|at| !passing.contains(at) || delivered.contains(at));
            }
            Event::TurnStarted(started) => {
                (self.turn, self.bound) = (Some(started.run.clone()), self.undelivered().collect());
                self.has_delivered |= started.purpose == TurnPurpose::Delivery;
                // An earlier verdict says nothing about this turn.
                (self.gate, self.delivery.done) = (None, false);
            }
            Event::FeedbackQueued(queued) => {
                self.queued.insert(record.seq);
                self.person_feedback.extend((queued.voice == MessageAuthor::Person).then_some(record.seq));
                let about = record.cause_position().map(RecoveryState::Failed);
                if queued.voice == MessageAuthor::Hook && about == Some(self.recovery) {
                    self.recovery = RecoveryState::Due;
                }
            }
            Event::FeedbackDelivered(delivered) => self.delivered.extend(&delivered.feedback),
            Event::ConversationOpened(opened) => self.conversation = Some(opened.conversation.clone()),
            Event::IterationFailed(failed) if failed.fault == TurnFailure::OutOfTokens => self.conversation = None,
            Event::PromiseDetected(detected) => self.claim = Some(detected.promise),
            Event::GateDecided(decided) => {
                self.gate = Some((decided.verdict, decided.decision.clone()));
                if self.closing_verdict(SessionEndKind::Completed).is_some() {
                    self.judged_done_at = Some(record.seq);
                }
            }
            Event::IterationCompleted(_) => {
                (self.failures, self.delivery.done) =
                    (Vec::new(), self.closing_verdict(SessionEndKind::Completed).is_some());
            }
            _ => {}
        }
        match record.kind() {
            EventType::TurnStarted | EventType::IterationStarted => self.recovery = RecoveryState::None,
            EventType::IterationFailed => {
                self.recovery = RecoveryState::Failed(record.seq);
                self.failures.push(Some(record.envelope.timestamp));
            }
            EventType::IterationInterrupted | EventType::IterationPostponed => {
                (self.interrupted, self.takes_up) = (self.interrupted + 1, true);
            }
            EventType::TurnFinished => (self.claim, self.has_worked) = (None, true),
            EventType::DeliveryFinished => self.has_worked = true,
            _ => {}
        }
        if ends_turn(record.kind()) {
            let carried = std::mem::take(&mut self.bound);
            self.seen.extend(carried.difference(&self.delivered));
            self.turn = None;
        }
        if record.envelope.metadata.owes.as_ref().is_some_and(|owed| owed.owner == self.owner) {
            self.waits_for.extend(owed_hooks(record));
        }
    }

    /// Claims a task, and drops the state about the previous one.
    fn take_task(&mut self, task: TaskId, epoch: Epoch) {
        if self.task != Some(task) {
            self.conversation = None;
        }
        (self.task, self.hold) = (Some(task), TaskHold::Held(epoch));
        (self.failures, self.gate, self.claim, self.delivery) = (Vec::new(), None, None, DeliveryProgress::default());
        (self.recovery, self.judged_done_at) = (RecoveryState::None, None);
        (self.has_worked, self.has_delivered) = (false, false);
        self.escalated.retain(|other| *other != task);
        self.lost_tasks.retain(|other| *other != task);
    }

    /// Returns the agent and the conversation that the next session of the task can continue.
    fn last_conversation(&self) -> (String, Option<String>) {
        (self.agent.clone(), self.conversation.clone().filter(|_| !self.is_broken()))
    }

    /// Observes the loss of the lease, which leaves the session without its task. Returns the feedback that stays with the task.
    fn lose_task(&mut self, name: &SessionName, record: &EventRecord) -> Vec<FeedbackRef> {
        if record.kind() == EventType::ChangeMerged && record.envelope.node.task_id() == self.task && self.holds() {
            self.delivery.record_merge();
        }
        if let Some(row) =
            TaskTransition::for_event_type(record.kind()).filter(|_| record.envelope.node.task_id() == self.task)
        {
            self.completed = row.to == TaskState::Completed;
        }
        let leaves =
            TaskTransition::for_event_type(record.kind()).is_some_and(|row| row.clears.contains(&StateField::Lease));
        if leaves && matches!(self.hold, TaskHold::Held(_)) && record.envelope.node.task_id() == self.task {
            let itself = record.envelope.session.as_ref() == Some(name) && self.completes(record);
            self.finished = itself && record.kind() == EventType::TaskCompleted;
            self.hold = TaskHold::Left;
            self.released_tasks
                .extend(self.task.filter(|_| itself && record.kind() == EventType::TaskNeedsContinuation));
            self.escalated.extend(self.task.filter(|_| record.kind() == EventType::TaskBlocked));
            let open = |row: &TaskTransition| matches!(row.to, TaskState::Created | TaskState::NeedsContinuation);
            let lost = !itself && TaskTransition::for_event_type(record.kind()).is_some_and(open);
            self.lost_tasks.extend(self.task.filter(|_| lost));
            return self.leave_feedback();
        }
        Vec::new()
    }

    /// Observes questions, waits and usage.
    fn observe_guards(&mut self, record: &EventRecord) {
        self.used = self.used.saturating_add(record.envelope.event.usage());
        match &record.envelope.event {
            Event::GateDecided(decided) => {
                (self.answered, self.asking) = (self.asking.take().flatten(), None);
                if decided.decision == GateDecision::Ask {
                    self.asking = Some(None);
                }
            }
            Event::GateAnswered(answered) => self.asking = Some(Some(answered.answer)),
            Event::IterationPostponed(postponed) => {
                self.postponed = Some(postponed.until);
                self.postponements += 1;
            }
            Event::TurnFinished(_) => {
                self.postponements = 0;
            }
            Event::IterationFailed(failed) => (self.postponed, self.postponements) = (failed.until, 0),
            Event::FeedbackQueued(queued) if queued.passing => drop(self.passing.insert(record.seq)),
            _ => {}
        }
        match record.kind() {
            EventType::IterationStarted | EventType::SessionEnded => self.postponed = None,
            EventType::IterationInterrupted => self.asking = None,
            _ => {}
        }
    }

    /// Returns whether a budget may be spent. Time without an owner does not count, so this is an upper bound.
    fn may_be_used_up(&self, now: Timestamp) -> bool {
        let long = |moment: Timestamp| Duration::from_millis((moment.millis() - self.started.millis()).unsigned_abs());
        let late = |most: Duration| long(now) >= most || self.postponed.is_some_and(|until| long(until) >= most);
        self.terms.wall_time.is_some_and(late) || self.is_spent()
    }

    /// Returns whether the token or cost budget is spent.
    fn is_spent(&self) -> bool {
        self.terms.cost.is_some_and(|most| self.used.cost.unwrap_or_default() >= most)
            || self.terms.tokens.is_some_and(|most| self.used.input + self.used.output >= most)
    }

    /// Checks whether the event may follow the events so far.
    fn check_event(&mut self, record: &EventRecord, name: &SessionName, stalls: &StalledWorkOracle) {
        let counted = self.iteration - self.interrupted;
        let fits = match &record.envelope.event {
            Event::IterationStarted(started) => {
                let next = started.run.iteration == self.iteration + 1 && self.recovery != RecoveryState::Due;
                let awake = self.postponed.is_none_or(|until| record.envelope.timestamp >= until);
                let at_work = match self.hold {
                    TaskHold::Held(_) => true,
                    TaskHold::Never => self.work == WorkSource::Given,
                    TaskHold::Left => false,
                };
                // Feedback of a person in the last iteration allows one more.
                let left =
                    self.iteration == 0 || counted < self.terms.max_iterations || self.has_pending_person_feedback();
                next && awake && at_work && self.turn.is_none() && left
            }
            Event::TurnStarted(started) => {
                let closes = match &started.purpose {
                    TurnPurpose::Delivery => self.may_deliver(),
                    TurnPurpose::UnjudgedDelivery(_) => false,
                    TurnPurpose::Recovery => self.recovery == RecoveryState::Due && self.may_go_on(),
                    TurnPurpose::Work | TurnPurpose::SendBack => true,
                };
                let present = started.run.iteration == self.iteration && started.owner == self.owner;
                self.turn.is_none() && present && closes
            }
            Event::FeedbackDelivered(delivered) => {
                let given: BTreeSet<Seq> = delivered.feedback.iter().copied().collect();
                !given.is_empty() && given == self.bound && given.is_disjoint(&self.delivered)
            }
            Event::GateDecided(decided) => self.may_decide(decided),
            Event::GateAnswered(_) => self.asks(),
            Event::ConversationOpened(opened) => {
                let same = self.conversation.as_ref() == Some(&opened.conversation);
                let opening = match (&self.conversation, same && opened.reason.is_none()) {
                    (None, _) => ConversationStart::New,
                    (Some(_), true) => ConversationStart::Loaded,
                    (Some(_), false) => ConversationStart::Anew,
                };
                self.turn.as_ref() == Some(&opened.run) && opened.opening == opening
            }
            Event::SessionEnded(ended) => {
                self.turn.is_none()
                    && self.may_end(ended.ending, record.envelope.timestamp)
                    && !matches!(self.hold, TaskHold::Held(_))
            }
            Event::TaskClaimed(claimed) if claimed.session == record.envelope.session => {
                self.turn.is_none() && claimed.owner == self.owner && !matches!(self.hold, TaskHold::Held(_))
            }
            Event::TaskCompleted(_) if self.completes(record) => {
                self.has_passed() && self.delivery.is_accepted(self.is_in_worktrees(), self.is_held_back())
            }
            Event::TurnFinished(payload) => self.turn.as_ref() == Some(&payload.run) && self.is_bound_delivered(),
            Event::DeliveryFinished(payload) => self.turn.as_ref() == Some(&payload.run) && self.is_bound_delivered(),
            Event::MessageAdded(_) | Event::FeedbackQueued(_) => self.ended.is_none(),
            _ => self.delivery.allows_event(record, &self.gate_context(record, name, stalls)),
        };
        if !fits {
            self.violations.push(format!("{} of {:?} cannot be", record.seq, record.envelope.event));
        }
    }
}

/// Returns whether the session itself emitted an event, and neither another command nor a hook did.
fn is_own(record: &EventRecord) -> bool {
    record.cause_position().is_some() && record.envelope.metadata.depth == 0
}
