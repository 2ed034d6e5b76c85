//! Comparison of the session rows with the log.

use windlass_engine::{
    AfterIteration, EffectId, EffectKind, Epoch, EventRecord, OwnerName, Session, SessionEndKind, SessionPhase,
    SessionStep, StalledWork, Task, TaskHold, TaskId, TurnPurpose,
};

use super::{SessionOracle, read_sessions_and_tasks};
use crate::invariants::StateRows;

/// Returns all violations in the sessions of a state that a log led to.
pub fn find_violations(rows: &StateRows, log: &[EventRecord]) -> Vec<String> {
    let (oracles, stalls, pending) = read_sessions_and_tasks(log);
    let mut violations = Vec::new();
    // The oracle does not compute these two flags from the log.
    let known =
        |task: &Task| task.stalled.clone().map(|stalled| StalledWork { checked: false, rejudged: false, ..stalled });
    let stalled = rows.tasks.iter().filter(|task| known(task).as_ref() != stalls.find_stalled(task.id));
    violations.extend(stalled.map(|task| {
        format!("{}: the row continues at {:?}, the log at {:?}", task.id, task.stalled, stalls.find_stalled(task.id))
    }));
    let differing = rows.tasks.iter().filter(|task| task.undelivered_feedback != pending.feedback_of_task(task.id));
    violations.extend(differing.map(|task| {
        format!(
            "{}: the row keeps {:?} for later, the log {:?}",
            task.id,
            task.undelivered_feedback,
            pending.feedback_of_task(task.id)
        )
    }));
    if !rows.sessions.iter().map(|session| &session.name).eq(oracles.keys()) {
        violations.push(format!("the log tells of {:?}", oracles.keys()));
        return violations;
    }
    for (session, oracle) in rows.sessions.iter().zip(oracles.values()) {
        violations.extend(oracle.violations.iter().cloned());
        check_row(session, oracle, &mut violations);
        check_lease(session, rows, &mut violations);
        check_rest(session, rows, &mut violations);
        let turns = rows
            .effects
            .iter()
            .filter(|effect| matches!(&effect.kind, EffectKind::Turn { session: name, .. } if *name == session.name));
        if turns.count() != usize::from(session.current_turn().is_some()) {
            violations.push(format!("{} has another number of turns than it should", session.name));
        }
    }
    violations
}

/// Compares a row with the session of the log.
fn check_row(session: &Session, oracle: &SessionOracle, violations: &mut Vec<String>) {
    let lost: Vec<_> = session.lost_tasks.iter().map(|lost| lost.task).collect();
    let actual = (
        (&session.owner, &session.terms, &session.pending_hooks, &session.stopping),
        (session.current_turn().map(|turn| &turn.run), session.iteration, session.interrupted, session.failures),
        (
            session.ending_kind(),
            &session.pending,
            session.current_turn().map_or(&[][..], |turn| &turn.feedback),
            &session.conversation,
        ),
        (session.task, session.hold, session.work, &session.escalated, &session.released_tasks, &lost),
        (session.workspace_mode, &session.workspace, session.resumes_at_gate, session.remediations, session.rechecks),
        session.judged_done_at,
        matches!(session.phase, SessionPhase::Pipeline(_)),
    );
    let (pending, carried) = (oracle.pending(), oracle.carried());
    let expected = (
        (&oracle.owner, &oracle.terms, &oracle.waits_for, &oracle.stopping),
        (
            oracle.turn.as_ref(),
            oracle.iteration,
            oracle.interrupted,
            u32::try_from(oracle.failures.len()).unwrap_or(u32::MAX),
        ),
        (oracle.ended, &pending, &carried[..], &oracle.conversation),
        (oracle.task, oracle.hold, oracle.work, &oracle.escalated, &oracle.released_tasks, &oracle.lost_tasks),
        (
            oracle.workspace_mode,
            &oracle.delivery.workspace,
            oracle.delivery.resumes,
            oracle.delivery.remediations,
            oracle.delivery.rechecks,
        ),
        oracle.judged_done_at,
        oracle.ended.is_none() && oracle.turn.is_none() && oracle.delivery.is_under_way(),
    );
    if actual != expected {
        violations.push(format!("{}: the row has {actual:?}, the log {expected:?}", session.name));
    }
}

fn is_cancelled(session: &Session) -> bool {
    session.stopping.as_ref().is_some_and(|closing| closing.ending == SessionEndKind::Cancelled)
}

/// Checks that a session and its task agree about the lease, and that an ended session has none.
fn check_lease(session: &Session, rows: &StateRows, violations: &mut Vec<String>) {
    let held: Vec<(TaskId, Epoch, &OwnerName)> = rows
        .tasks
        .iter()
        .filter_map(|task| Some((task.id, task.lease.as_ref()?)))
        .filter(|(_, lease)| lease.session.as_ref() == Some(&session.name))
        .map(|(id, lease)| (id, lease.epoch, &lease.owner))
        .collect();
    let expected: Vec<_> =
        session.task.zip(session.held_epoch()).map(|(id, epoch)| (id, epoch, &session.owner)).into_iter().collect();
    if held != expected || (session.ending_kind().is_some() && !held.is_empty()) {
        violations.push(format!("{} has {expected:?}, the tasks say {held:?}", session.name));
    }
}

/// Returns whether a person has sent feedback about work on its way.
fn is_held_back(session: &Session) -> bool {
    let on_its_way =
        matches!(session.phase, SessionPhase::Pipeline(_) | SessionPhase::Settled(AfterIteration::Close(_)));
    let has_feedback = session.pending.iter().any(|piece| piece.person && Some(piece.at) > session.judged_done_at);
    session.held_epoch().is_some() && has_feedback && (on_its_way || session.resumes_at_gate)
}

fn is_out_of_time(session: &Session) -> bool {
    session.terms.wall_time.is_some_and(|most| session.watch.lasted >= most)
}

/// Checks that no decision is left open: the session waits for the outside, or for a hook that has begun.
fn check_rest(session: &Session, rows: &StateRows, violations: &mut Vec<String>) {
    let begun = |id: EffectId| rows.effects.iter().any(|effect| effect.id == id && effect.attempts > 0);
    let rests = match session.next_step() {
        SessionStep::Wait(_) => true,
        // Feedback of a person is for the runner to act on.
        _ if is_held_back(session) => true,
        // The runner delivers feedback while the session waits for its work to be collected.
        SessionStep::StartTurn(_, TurnPurpose::Delivery) => !session.workspace_mode.is_in_place() || session.report,
        // The runner still has to decide about requests of others.
        SessionStep::SkipHook(effect) => begun(effect) || is_cancelled(session) || session.hold == TaskHold::Left,
        // The answer of a person is for the runner to act on.
        SessionStep::DecideGate(..) => matches!(session.phase, SessionPhase::Asking(_, _, Some(_))),
        // The loss of the task is for the runner to act on.
        _ if is_cancelled(session) || session.hold == TaskHold::Left => {
            let waits = !session.workspace_mode.is_in_place()
                && matches!(session.phase, SessionPhase::Started | SessionPhase::Settled(_));
            waits || session.wait_deadline().is_some() || matches!(session.phase, SessionPhase::Asking(..))
        }
        // The time limit is for the runner to act on, if it passes during hooks of others.
        _ => session.wait_deadline().is_some() && is_out_of_time(session),
    };
    if !rests {
        violations.push(format!("{} does not rest: {:?} in {session:?}", session.name, session.next_step()));
    }
    if let Some(lost) = session.pending_hooks.iter().find(|id| !rows.effects.iter().any(|effect| effect.id == **id)) {
        violations.push(format!("{} waits for {lost}, which is no effect", session.name));
    }
}
