//! Invariants of the state between commits.

use std::collections::{BTreeMap, BTreeSet};

use windlass_engine::{
    Change, Conversation, Edge, EffectId, EffectKind, EventType, Limits, Memory, PendingEffect, Priority, Record, Seq,
    Session, State, Task, TaskId, Timestamp, View,
};

use crate::calling::sent_back;
use crate::effects::{Due, due};
use crate::kept::kept;
use crate::sessions;
use crate::wishes::asked;

use State::{Active, Blocked, Completed, Created, Deleted, Failed, NeedsContinuation, Ready, Submitted};

/// All rows of a view.
#[derive(Debug, Default)]
pub struct Rows {
    pub tasks: Vec<Task>,
    pub edges: Vec<Edge>,
    pub sessions: Vec<Session>,
    pub effects: Vec<PendingEffect>,
    pub conversations: Vec<Conversation>,
}

impl Rows {
    pub fn of(memory: &Memory) -> Self {
        let mut rows = Self::default();
        for row in memory.clone().into_rows() {
            match row {
                Change::PutTask(task) => rows.tasks.push(*task),
                Change::PutEdge(edge) => rows.edges.push(edge),
                Change::PutSession(session) => rows.sessions.push(*session),
                Change::PutEffect(effect) => rows.effects.push(*effect),
                Change::PutConversation(row) => rows.conversations.push(*row),
                Change::PutConfig { .. }
                | Change::DropConversation(_)
                | Change::DropEdge(_)
                | Change::DropEffect(_) => {}
            }
        }
        rows
    }
}

/// Returns all violations in a state that a log led to. Empty if the engine is right.
pub fn broken(memory: &Memory, log: &[Record]) -> Vec<String> {
    let mut wrong = Findings::default();
    let rows = Rows::of(memory);
    let graph = Graph::of(&rows);
    for task in &rows.tasks {
        task_fields(task, &mut wrong);
        waiting(task, &graph, &mut wrong);
        history(task, log, &mut wrong);
    }
    let kept = kept(log);
    for task in &rows.tasks {
        wrong.0.extend(kept.get(&task.id).cloned().unwrap_or_default().differs(task));
    }
    edges(&rows, &graph, &mut wrong);
    indexes(memory, &mut wrong);
    owed(&rows, log, &mut wrong);
    conversations(&rows, log, &mut wrong);
    wrong.0
}

#[derive(Default)]
struct Findings(Vec<String>);

impl Findings {
    fn unless(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.0.push(what());
        }
    }
}

/// The waiting relation, computed from all edges.
struct Graph<'a> {
    tasks: BTreeMap<TaskId, &'a Task>,
    waits: BTreeSet<(TaskId, TaskId)>,
}

impl<'a> Graph<'a> {
    fn of(rows: &'a Rows) -> Self {
        let tasks = rows.tasks.iter().map(|task| (task.id, task)).collect();
        Self { tasks, waits: rows.edges.iter().filter_map(Edge::wait).collect() }
    }

    fn awaited(&self, id: TaskId) -> impl Iterator<Item = &Task> {
        self.waits.iter().filter(move |(waiter, _)| *waiter == id).map(|(_, awaited)| self.tasks[awaited])
    }
}

/// Checks which fields a task has in its state.
fn task_fields(task: &Task, wrong: &mut Findings) {
    let state = task.state;
    let mut check = |holds: bool, what: &str| wrong.unless(holds, || format!("{} is {state} and {what}", task.id));
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

fn waiting(task: &Task, graph: &Graph<'_>, wrong: &mut Findings) {
    let open = graph.awaited(task.id).filter(|other| other.state != Completed).count();
    let counted = task.open_dependencies;
    wrong.unless(counted as usize == open, || format!("{} counts {counted} open dependencies of {open}", task.id));
    let claimable = task.state.is_claimable();
    wrong.unless(!claimable || open == 0, || format!("{} can be claimed and waits for {open}", task.id));
    wrong.unless(task.state != Created || open > 0, || format!("{} is created and waits for no task", task.id));
    let failed = graph.awaited(task.id).find(|other| other.state == Failed);
    let in_vain = (task.state == Created || claimable) && failed.is_some();
    wrong.unless(!in_vain, || format!("{} is {} and waits in vain", task.id, task.state));
    let by = task.blocked.as_ref().and_then(|blocked| blocked.by);
    let freed = graph.awaited(task.id).any(|other| Some(other.id) == by && other.state == Completed);
    wrong.unless(!freed, || format!("{} is blocked by what is completed", task.id));
}

fn history(task: &Task, log: &[Record], wrong: &mut Findings) {
    let last = log.iter().rev().find(|record| record.envelope.node.task() == Some(task.id)).map(|record| record.seq);
    wrong.unless(last == Some(task.last_event), || {
        format!("{}: the last event is {last:?}, not {}", task.id, task.last_event)
    });
    wrong.unless(task.version >= task.last_event, || format!("{}: the version lags behind", task.id));
}

fn edges(rows: &Rows, graph: &Graph<'_>, wrong: &mut Findings) {
    let mut seen = BTreeSet::new();
    for edge in &rows.edges {
        wrong.unless(seen.insert((edge.from_id, edge.kind, edge.to_id)), || format!("{edge:?} is there twice"));
        wrong.unless(edge.from_id != edge.to_id, || format!("{edge:?} leads nowhere"));
        for end in [edge.from_id, edge.to_id] {
            wrong.unless(graph.tasks[&end].state != Deleted, || format!("{edge:?} ends at a deleted task"));
        }
    }
    wrong.unless(is_acyclic(graph.waits.clone()), || "a task waits for itself".to_owned());
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

fn indexes(memory: &Memory, wrong: &mut Findings) {
    let bugs = BTreeSet::from(["bug".parse().expect("a type's name")]);
    for closed in [BTreeSet::new(), bugs] {
        let claimable: BTreeSet<(Priority, TaskId)> = memory
            .tasks()
            .filter(|task| matches!(task.state, Ready | NeedsContinuation))
            .filter(|task| task.kind.as_ref().is_none_or(|kind| !closed.contains(kind)))
            .map(|task| (task.priority, task.id))
            .collect();
        let walked = walk(|after| memory.claimable_except(&closed, after).expect("memory can always be read"));
        wrong.unless(walked.iter().eq(&claimable), || format!("claimable is {claimable:?}, the index says {walked:?}"));
    }
    let end = Timestamp::from_millis(i64::MAX);
    let leases: BTreeSet<(Timestamp, TaskId)> =
        memory.tasks().filter_map(|task| Some((task.lease.as_ref()?.until?, task.id))).collect();
    let walked = walk(|after| memory.expired(end, after).expect("memory can always be read"));
    wrong.unless(walked.iter().eq(&leases), || format!("leases are {leases:?}, the index says {walked:?}"));
}

fn walk<K: Copy>(next: impl Fn(Option<K>) -> Option<K>) -> Vec<K> {
    let mut found = Vec::new();
    while let Some(key) = next(found.last().copied()) {
        found.push(key);
    }
    found
}

/// Checks that an effect exists exactly from its creation to its end.
fn owed(rows: &Rows, log: &[Record], wrong: &mut Findings) {
    let told: BTreeMap<EffectId, Due> = due(log);
    let kept: BTreeMap<EffectId, Due> = rows.effects.iter().map(|effect| (effect.id, as_due(effect))).collect();
    wrong.unless(told == kept, || format!("the log owes {told:?}, the rows {kept:?}"));
    for session in &rows.sessions {
        let Some(turn) = session.turn() else { continue };
        wrong.unless(kept.get(&turn.effect).is_some_and(|due| due.turn.as_ref() == Some(&turn.run)), || {
            format!("the turn {} is not owed under {}", turn.run, turn.effect)
        });
    }
    wrong.0.extend(sessions::broken(rows, log));
    carried(rows, log, wrong);
    bounded(rows, log, wrong);
}

/// Checks that the first open hook of an event carries the requested actions of all its hooks, and no other effect does.
fn carried(rows: &Rows, log: &[Record], wrong: &mut Findings) {
    let mut before = None;
    for effect in rows.effects.iter().filter(|effect| matches!(effect.kind, EffectKind::Hook(_))) {
        let expected = if before == Some(effect.id.seq) { vec![] } else { asked(log, effect.id.seq) };
        let holds = effect.carried == expected;
        wrong.unless(holds, || format!("{} carries {:?}, not {expected:?}", effect.id, effect.carried));
        before = Some(effect.id.seq);
    }
}

/// Checks the bound of a cascade, which holds all descendants of a root event: events, their hooks, and the shares of open
/// hooks. The effects of an action on the tasks that wait for its task come on top.
fn bounded(rows: &Rows, log: &[Record], wrong: &mut Findings) {
    let mut roots: BTreeMap<Seq, Seq> = BTreeMap::new();
    let mut descended: BTreeMap<Seq, usize> = BTreeMap::new();
    for record in log {
        let metadata = &record.envelope.metadata;
        let root = match record.cause() {
            Some(cause) if metadata.depth > 0 => roots[&cause],
            _ => record.seq,
        };
        roots.insert(record.seq, root);
        if metadata.depth > 0 {
            let hooks = metadata.owes.as_ref().map_or(0, |owed| owed.hooks.len());
            *descended.entry(root).or_default() += hooks + usize::from(counts(record.kind()));
        }
        wrong.unless(metadata.depth <= Limits::DEPTH + 1, || format!("{} lies too deep", record.seq));
    }
    for effect in &rows.effects {
        *descended.entry(roots[&effect.id.seq]).or_default() += effect.share as usize;
        wrong.unless(effect.nesting <= Limits::NESTED, || format!("{} lies in too many calls", effect.id));
    }
    let most = Limits::EVENTS as usize + rows.tasks.len();
    for (root, count) in descended.into_iter().filter(|(_, count)| *count > most) {
        wrong.0.push(format!("{count} descend from {root}"));
    }
}

/// Checks that the rows of conversations match the log.
fn conversations(rows: &Rows, log: &[Record], wrong: &mut Findings) {
    let remembered: BTreeMap<_, _> = rows
        .conversations
        .iter()
        .map(|row| ((row.caller.agent.clone(), row.caller.conversation.clone()), row.retries))
        .collect();
    let expected = sent_back(log);
    wrong.unless(remembered == expected, || format!("{remembered:?} is remembered, not {expected:?}"));
}

/// Returns whether an event counts for the cascade. The graph bounds ready events, workflows bound their steps, and the rest
/// reports the ends of hooks.
fn counts(kind: EventType) -> bool {
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

fn as_due(effect: &PendingEffect) -> Due {
    let turn = match &effect.kind {
        EffectKind::Hook(_) => None,
        EffectKind::Turn { run, .. } => Some(run.clone()),
    };
    Due {
        owner: effect.owner.clone(),
        begun: effect.attempts,
        rests: effect.resting.is_some(),
        turn,
        session: effect.session.clone(),
        iteration: effect.iteration,
    }
}
