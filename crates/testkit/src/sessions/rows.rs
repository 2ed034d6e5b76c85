//! Comparison of the session rows with the log.

use windlass_engine::{
    AfterIteration, EffectId, EffectKind, Epoch, EventRecord, OwnerName, Session, SessionEndKind, SessionPhase,
    SessionStep, StalledWork, Task, TaskHold, TaskId, TurnPurpose,
};

use super::{SessionOracle, read_sessions_and_tasks};
use crate::invariants::Rows;

/// Returns all violations in the sessions of a state that a log led to.
pub fn find_violations(rows: &Rows, log: &[EventRecord]) -> Vec<String> {
    let (told, stalls, unheard) = read_sessions_and_tasks(log);
    let mut wrong = Vec::new();
    // The oracle does not compute these two flags from the log.
    let known =
        |task: &Task| task.stalled.clone().map(|stalled| StalledWork { checked: false, rejudged: false, ..stalled });
    let stalled = rows.tasks.iter().filter(|task| known(task).as_ref() != stalls.find_stalled(task.id));
    wrong.extend(stalled.map(|task| {
        format!("{}: the row continues at {:?}, the log at {:?}", task.id, task.stalled, stalls.find_stalled(task.id))
    }));
    let kept = rows.tasks.iter().filter(|task| task.unheard != unheard.feedback_of_task(task.id));
    wrong.extend(kept.map(|task| {
        format!(
            "{}: the row keeps {:?} for later, the log {:?}",
            task.id,
            task.unheard,
            unheard.feedback_of_task(task.id)
        )
    }));
    if !rows.sessions.iter().map(|session| &session.name).eq(told.keys()) {
        wrong.push(format!("the log tells of {:?}", told.keys()));
        return wrong;
    }
    for (session, told) in rows.sessions.iter().zip(told.values()) {
        wrong.extend(told.wrong.iter().cloned());
        check_row(session, told, &mut wrong);
        check_lease(session, rows, &mut wrong);
        check_rest(session, rows, &mut wrong);
        let turns = rows
            .effects
            .iter()
            .filter(|effect| matches!(&effect.kind, EffectKind::Turn { session: name, .. } if *name == session.name));
        if turns.count() != usize::from(session.current_turn().is_some()) {
            wrong.push(format!("{} has another number of turns than it should", session.name));
        }
    }
    wrong
}

/// Compares a row with the session of the log.
fn check_row(session: &Session, told: &SessionOracle, wrong: &mut Vec<String>) {
    let lost: Vec<_> = session.lost.iter().map(|lost| lost.task).collect();
    let kept = (
        (&session.owner, &session.terms, &session.owed, &session.stopping),
        (session.current_turn().map(|turn| &turn.run), session.iteration, session.interrupted, session.failures),
        (
            session.ending_kind(),
            &session.pending,
            session.current_turn().map_or(&[][..], |turn| &turn.feedback),
            &session.conversation,
        ),
        (session.task, session.hold, session.work, &session.escalated, &session.left, &lost),
        (session.grounds, &session.workspace, session.resumes, session.remediations, session.rechecks),
        session.done_at,
        matches!(session.phase, SessionPhase::Pipeline(_)),
    );
    let (pending, carried) = (told.pending(), told.carried());
    let said = (
        (&told.owner, &told.terms, &told.waits_for, &told.stopping),
        (told.turn.as_ref(), told.iteration, told.interrupted, u32::try_from(told.failures.len()).unwrap_or(u32::MAX)),
        (told.ended, &pending, &carried[..], &told.conversation),
        (told.task, told.hold, told.work, &told.escalated, &told.left, &told.lost),
        (told.grounds, &told.passage.workspace, told.passage.resumes, told.passage.remediations, told.passage.rechecks),
        told.done_at,
        told.ended.is_none() && told.turn.is_none() && told.passage.is_under_way(),
    );
    if kept != said {
        wrong.push(format!("{}: the row has {kept:?}, the log {said:?}", session.name));
    }
}

fn is_cancelled(session: &Session) -> bool {
    session.stopping.as_ref().is_some_and(|closing| closing.ending == SessionEndKind::Cancelled)
}

/// Checks that a session and its task agree about the lease, and that an ended session has none.
fn check_lease(session: &Session, rows: &Rows, wrong: &mut Vec<String>) {
    let held: Vec<(TaskId, Epoch, &OwnerName)> = rows
        .tasks
        .iter()
        .filter_map(|task| Some((task.id, task.lease.as_ref()?)))
        .filter(|(_, lease)| lease.session.as_ref() == Some(&session.name))
        .map(|(id, lease)| (id, lease.epoch, &lease.owner))
        .collect();
    let said: Vec<_> =
        session.task.zip(session.held_epoch()).map(|(id, epoch)| (id, epoch, &session.owner)).into_iter().collect();
    if held != said || (session.ending_kind().is_some() && !held.is_empty()) {
        wrong.push(format!("{} has {said:?}, the tasks say {held:?}", session.name));
    }
}

/// Returns whether a person has sent feedback about work on its way.
fn is_held_back(session: &Session) -> bool {
    let on_its_way =
        matches!(session.phase, SessionPhase::Pipeline(_) | SessionPhase::Settled(AfterIteration::Close(_)));
    let said = session.pending.iter().any(|piece| piece.person && Some(piece.at) > session.done_at);
    session.held_epoch().is_some() && said && (on_its_way || session.resumes)
}

fn is_out_of_time(session: &Session) -> bool {
    session.terms.wall_time.is_some_and(|most| session.watch.lasted >= most)
}

/// Checks that no decision is left open: the session waits for the outside, or for a hook that has begun.
fn check_rest(session: &Session, rows: &Rows, wrong: &mut Vec<String>) {
    let begun = |id: EffectId| rows.effects.iter().any(|effect| effect.id == id && effect.attempts > 0);
    let rests = match session.next_step() {
        SessionStep::Wait(_) => true,
        // Feedback of a person is for the runner to act on.
        _ if is_held_back(session) => true,
        // The runner delivers feedback while the session waits for its work to be collected.
        SessionStep::StartTurn(_, TurnPurpose::Delivery) => !session.grounds.is_in_place() || session.report,
        // The runner still has to decide about requests of others.
        SessionStep::SkipHook(effect) => begun(effect) || is_cancelled(session) || session.hold == TaskHold::Left,
        // The answer of a person is for the runner to act on.
        SessionStep::DecideGate(..) => matches!(session.phase, SessionPhase::Asking(_, _, Some(_))),
        // The loss of the task is for the runner to act on.
        _ if is_cancelled(session) || session.hold == TaskHold::Left => {
            let waits = !session.grounds.is_in_place()
                && matches!(session.phase, SessionPhase::Started | SessionPhase::Settled(_));
            waits || session.wait_deadline().is_some() || matches!(session.phase, SessionPhase::Asking(..))
        }
        // The time limit is for the runner to act on, if it passes during hooks of others.
        _ => session.wait_deadline().is_some() && is_out_of_time(session),
    };
    if !rests {
        wrong.push(format!("{} does not rest: {:?} in {session:?}", session.name, session.next_step()));
    }
    if let Some(lost) = session.owed.iter().find(|id| !rows.effects.iter().any(|effect| effect.id == **id)) {
        wrong.push(format!("{} waits for {lost}, which is no effect", session.name));
    }
}
