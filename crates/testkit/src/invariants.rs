//! Invariants of the state between commits.

use std::collections::{BTreeMap, BTreeSet};

use windlass_engine::{
    BridgeConversation, EffectId, EffectKind, EngineLimits, EventRecord, EventType, MemoryView, PendingEffect,
    RowChange, Seq, Session, StateView, Task, TaskEdge, TaskId, TaskPriority, TaskState, Timestamp,
};

use crate::bridge_calls::count_send_backs;
use crate::effects::{LoggedEffect, read_pending_effects};
use crate::hook_actions::requested_actions;
use crate::sessions;
use crate::task_histories::read_task_histories;

use TaskState::{Active, Blocked, Completed, Created, Deleted, Failed, NeedsContinuation, Ready, Submitted};

/// All rows of a view.
#[derive(Debug, Default)]
pub struct StateRows {
    pub tasks: Vec<Task>,
    pub edges: Vec<TaskEdge>,
    pub sessions: Vec<Session>,
    pub effects: Vec<PendingEffect>,
    pub conversations: Vec<BridgeConversation>,
}

impl StateRows {
    pub fn read(memory: &MemoryView) -> Self {
        let mut rows = Self::default();
        for row in memory.clone().into_rows() {
            match row {
                RowChange::PutTask(task) => rows.tasks.push(*task),
                RowChange::PutEdge(edge) => rows.edges.push(edge),
                RowChange::PutSession(session) => rows.sessions.push(*session),
                RowChange::PutEffect(effect) => rows.effects.push(*effect),
                RowChange::PutConversation(row) => rows.conversations.push(*row),
                RowChange::PutConfig { .. }
                | RowChange::DropConversation(_)
                | RowChange::DropEdge(_)
                | RowChange::DropEffect(_) => {}
            }
        }
        rows
    }
}

/// Returns all violations in a state that a log led to. Empty if the engine is right.
pub fn find_violations(memory: &MemoryView, log: &[EventRecord]) -> Vec<String> {
    let mut violations = InvariantViolations::default();
    let rows = StateRows::read(memory);
    let graph = WaitGraph::read(&rows);
    for task in &rows.tasks {
        check_task_fields(task, &mut violations);
        check_waiting(task, &graph, &mut violations);
        check_history(task, log, &mut violations);
    }
    let histories = read_task_histories(log);
    for task in &rows.tasks {
        violations.0.extend(histories.get(&task.id).cloned().unwrap_or_default().differences(task));
    }
    check_edges(&rows, &graph, &mut violations);
    check_indexes(memory, &mut violations);
    check_effects(&rows, log, &mut violations);
    check_conversations(&rows, log, &mut violations);
    violations.0
}

#[derive(Default)]
struct InvariantViolations(Vec<String>);

impl InvariantViolations {
    fn require(&mut self, holds: bool, description: impl FnOnce() -> String) {
        if !holds {
            self.0.push(description());
        }
    }
}

/// The waiting relation, computed from all edges.
struct WaitGraph<'a> {
    tasks: BTreeMap<TaskId, &'a Task>,
    waits: BTreeSet<(TaskId, TaskId)>,
}

impl<'a> WaitGraph<'a> {
    fn read(rows: &'a StateRows) -> Self {
        let tasks = rows.tasks.iter().map(|task| (task.id, task)).collect();
        Self { tasks, waits: rows.edges.iter().filter_map(TaskEdge::waiting_pair).collect() }
    }

    fn awaited(&self, id: TaskId) -> impl Iterator<Item = &Task> {
        self.waits.iter().filter(move |(waiter, _)| *waiter == id).map(|(_, awaited)| self.tasks[awaited])
    }
}

/// Checks which fields a task has in its state.
fn check_task_fields(task: &Task, violations: &mut InvariantViolations) {
    let state = task.state;
    let mut check = |holds: bool, description: &str| {
        violations.require(holds, || format!("{} is {state} and {description}", task.id))
    };
    check(task.blocked.is_some() == (state == Blocked), "the field `blocked` says otherwise");
    check(task.lease.is_none() || matches!(state, Active | Submitted), "held");
    check(task.lease.as_ref().is_none_or(|lease| lease.epoch == task.epoch), "held under an old epoch");
    check(state != Completed || task.completed_at.is_some(), "has no moment of completion");
    let finished = matches!(state, Completed | Deleted);
    check(task.completed_at.is_none() || finished, "has a moment of completion");
    check(task.result.is_none() && task.artifacts.is_empty() || finished, "has a result");
    check(task.started_at.is_some() || !matches!(state, Active | Submitted | NeedsContinuation), "was never started");
    check(task.reason.is_some() || !matches!(state, Failed | NeedsContinuation), "does not say why");
    let claimed = matches!(state, Ready | Active | Submitted | NeedsContinuation);
    check(task.claim.is_none() || claimed, "still claimed to be done");
    check(task.updated_at >= task.created_at, "was updated before it was created");
}

fn check_waiting(task: &Task, graph: &WaitGraph<'_>, violations: &mut InvariantViolations) {
    let open = graph.awaited(task.id).filter(|other| other.state != Completed).count();
    let counted = task.open_dependencies;
    violations
        .require(counted as usize == open, || format!("{} counts {counted} open dependencies of {open}", task.id));
    let claimable = task.state.is_claimable();
    violations.require(!claimable || open == 0, || format!("{} can be claimed and waits for {open}", task.id));
    violations.require(task.state != Created || open > 0, || format!("{} is created and waits for no task", task.id));
    let failed = graph.awaited(task.id).find(|other| other.state == Failed);
    let in_vain = (task.state == Created || claimable) && failed.is_some();
    violations.require(!in_vain, || format!("{} is {} and waits for a failed task", task.id, task.state));
    let by = task.blocked.as_ref().and_then(|blocked| blocked.by);
    let freed = graph.awaited(task.id).any(|other| Some(other.id) == by && other.state == Completed);
    violations.require(!freed, || format!("{} is blocked by what is completed", task.id));
}

fn check_history(task: &Task, log: &[EventRecord], violations: &mut InvariantViolations) {
    let last = log.iter().rev().find(|record| record.envelope.node.task_id() == Some(task.id)).map(|record| record.seq);
    violations.require(last == Some(task.last_event), || {
        format!("{}: the last event is {last:?}, not {}", task.id, task.last_event)
    });
    violations.require(task.version >= task.last_event, || format!("{}: the version lags behind", task.id));
}

fn check_edges(rows: &StateRows, graph: &WaitGraph<'_>, violations: &mut InvariantViolations) {
    let mut seen = BTreeSet::new();
    for edge in &rows.edges {
        violations.require(seen.insert((edge.from_id, edge.kind, edge.to_id)), || format!("{edge:?} is there twice"));
        violations.require(edge.from_id != edge.to_id, || format!("{edge:?} leads nowhere"));
        for end in [edge.from_id, edge.to_id] {
            violations.require(graph.tasks[&end].state != Deleted, || format!("{edge:?} ends at a deleted task"));
        }
    }
    violations.require(is_acyclic(graph.waits.clone()), || "a task waits for itself".to_owned());
}

/// Returns whether the relation has no cycle. Removes the pairs whose awaited task waits for nothing, as long as there are any.
fn is_acyclic(mut waits: BTreeSet<(TaskId, TaskId)>) -> bool {
    loop {
        let waiters: BTreeSet<_> = waits.iter().map(|(waiter, _)| *waiter).collect();
        let before = waits.len();
        waits.retain(|(_, awaited)| waiters.contains(awaited));
        if waits.len() == before {
            return waits.is_empty();
        }
    }
}

fn check_indexes(memory: &MemoryView, violations: &mut InvariantViolations) {
    let bugs = BTreeSet::from(["bug".parse().expect("a type's name")]);
    for closed in [BTreeSet::new(), bugs] {
        let claimable: BTreeSet<(TaskPriority, TaskId)> = memory
            .tasks()
            .filter(|task| matches!(task.state, Ready | NeedsContinuation))
            .filter(|task| task.kind.as_ref().is_none_or(|kind| !closed.contains(kind)))
            .map(|task| (task.priority, task.id))
            .collect();
        let walked =
            walk_index(|after| memory.next_claimable_except(&closed, after).expect("memory can always be read"));
        violations
            .require(walked.iter().eq(&claimable), || format!("claimable is {claimable:?}, the index says {walked:?}"));
    }
    let end = Timestamp::from_millis(i64::MAX);
    let leases: BTreeSet<(Timestamp, TaskId)> =
        memory.tasks().filter_map(|task| Some((task.lease.as_ref()?.until?, task.id))).collect();
    let walked = walk_index(|after| memory.next_expired_lease(end, after).expect("memory can always be read"));
    violations.require(walked.iter().eq(&leases), || format!("leases are {leases:?}, the index says {walked:?}"));
}

fn walk_index<K: Copy>(next: impl Fn(Option<K>) -> Option<K>) -> Vec<K> {
    let mut found = Vec::new();
    while let Some(key) = next(found.last().copied()) {
        found.push(key);
    }
    found
}

/// Checks that an effect exists exactly from its creation to its end.
fn check_effects(rows: &StateRows, log: &[EventRecord], violations: &mut InvariantViolations) {
    let expected: BTreeMap<EffectId, LoggedEffect> = read_pending_effects(log);
    let actual: BTreeMap<EffectId, LoggedEffect> =
        rows.effects.iter().map(|effect| (effect.id, logged_effect(effect))).collect();
    violations.require(expected == actual, || format!("the log has pending effects {expected:?}, the rows {actual:?}"));
    for session in &rows.sessions {
        let Some(turn) = session.current_turn() else { continue };
        violations
            .require(actual.get(&turn.effect).is_some_and(|pending| pending.turn.as_ref() == Some(&turn.run)), || {
                format!("the turn {} is not the pending effect {}", turn.run, turn.effect)
            });
    }
    violations.0.extend(sessions::find_violations(rows, log));
    check_carried_actions(rows, log, violations);
    check_cascades(rows, log, violations);
}

/// Checks that the first open hook of an event carries the requested actions of all its hooks, and no other effect does.
fn check_carried_actions(rows: &StateRows, log: &[EventRecord], violations: &mut InvariantViolations) {
    let mut before = None;
    for effect in rows.effects.iter().filter(|effect| matches!(effect.kind, EffectKind::Hook(_))) {
        let expected = if before == Some(effect.id.seq) { vec![] } else { requested_actions(log, effect.id.seq) };
        let holds = effect.carried == expected;
        violations.require(holds, || format!("{} carries {:?}, not {expected:?}", effect.id, effect.carried));
        before = Some(effect.id.seq);
    }
}

/// Checks the bound of a cascade, which holds all descendants of a root event: events, their hooks, and the shares of open
/// hooks. The effects of an action on the tasks that wait for its task come on top.
fn check_cascades(rows: &StateRows, log: &[EventRecord], violations: &mut InvariantViolations) {
    let mut roots: BTreeMap<Seq, Seq> = BTreeMap::new();
    let mut descended: BTreeMap<Seq, usize> = BTreeMap::new();
    for record in log {
        let metadata = &record.envelope.metadata;
        let root = match record.cause_position() {
            Some(cause) if metadata.depth > 0 => roots[&cause],
            _ => record.seq,
        };
        roots.insert(record.seq, root);
        if metadata.depth > 0 {
            let hooks = metadata.owes.as_ref().map_or(0, |owed| owed.hooks.len());
            *descended.entry(root).or_default() += hooks + usize::from(counts_for_cascade(record.kind()));
        }
        violations
            .require(metadata.depth <= EngineLimits::CASCADE_DEPTH + 1, || format!("{} lies too deep", record.seq));
    }
    for effect in &rows.effects {
        *descended.entry(roots[&effect.id.seq]).or_default() += effect.share as usize;
        violations
            .require(effect.nesting <= EngineLimits::NESTED_CALLS, || format!("{} lies in too many calls", effect.id));
    }
    let limit = EngineLimits::CASCADE_EVENTS as usize + rows.tasks.len();
    for (root, count) in descended.into_iter().filter(|(_, count)| *count > limit) {
        violations.0.push(format!("{count} descend from {root}"));
    }
}

/// Checks that the rows of conversations match the log.
fn check_conversations(rows: &StateRows, log: &[EventRecord], violations: &mut InvariantViolations) {
    let actual: BTreeMap<_, _> = rows
        .conversations
        .iter()
        .map(|row| ((row.caller.agent.clone(), row.caller.conversation.clone()), row.retries))
        .collect();
    let expected = count_send_backs(log);
    violations.require(actual == expected, || format!("{actual:?} is remembered, not {expected:?}"));
}

/// Returns whether an event counts for the cascade. The graph bounds ready events, workflows bound their steps, and the rest
/// reports the ends of hooks.
fn counts_for_cascade(kind: EventType) -> bool {
    use EventType as E;
    !matches!(
        kind,
        E::TaskReady
            | E::DependencySatisfied
            | E::ConfigRecorded
            | E::HookStarted
            | E::HookRetrying
            | E::HookFinished
            | E::HookError
            | E::ActionError
            | E::ChangeOpened
            | E::ChangeMerged
            | E::MessageAdded
            | E::FeedbackQueued
            | E::SessionStopping
            | E::WorkflowStarted
            | E::WorkflowStepStarted
            | E::WorkflowStepFinished
            | E::WorkflowCompleted
            | E::WorkflowFailed
    )
}

fn logged_effect(effect: &PendingEffect) -> LoggedEffect {
    let turn = match &effect.kind {
        EffectKind::Hook(_) => None,
        EffectKind::Turn { run, .. } => Some(run.clone()),
    };
    LoggedEffect {
        owner: effect.owner.clone(),
        attempts: effect.attempts,
        is_resting: effect.resting.is_some(),
        turn,
        session: effect.session.clone(),
        iteration: effect.iteration,
    }
}
