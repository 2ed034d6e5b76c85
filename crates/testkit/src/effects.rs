//! Pending effects, from the log alone.

use std::collections::BTreeMap;

use windlass_engine::{EffectId, Event, EventRecord, EventType, OwnerName, RunId, SessionName};

/// A pending effect, according to the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedEffect {
    pub owner: OwnerName,
    pub begun: u32,
    /// Whether the effect has failed and waits for a retry.
    pub rests: bool,
    /// The turn, if the effect is no hook.
    pub turn: Option<RunId>,
    pub session: Option<SessionName>,
    pub iteration: Option<u32>,
}

/// Returns all effects that are pending or begun.
pub fn read_pending_effects(log: &[EventRecord]) -> BTreeMap<EffectId, LoggedEffect> {
    let mut due = BTreeMap::new();
    for record in log {
        let envelope = &record.envelope;
        let (session, iteration) = (envelope.session.clone(), envelope.iteration);
        match &envelope.event {
            Event::TurnStarted(started) => {
                let id = EffectId { seq: record.seq, index: 0 };
                let (owner, turn) = (started.owner.clone(), Some(started.run.clone()));
                due.insert(
                    id,
                    LoggedEffect { owner, begun: 1, rests: false, turn, session: session.clone(), iteration },
                );
            }
            Event::HookStarted(started) => {
                let due = due.get_mut(&started.effect).expect("what begins is owed");
                (due.begun, due.owner, due.rests) = (due.begun + 1, started.owner.clone(), false);
            }
            Event::HookRetrying(retrying) => due.get_mut(&retrying.effect).expect("what rests is owed").rests = true,
            Event::HookFinished(finished) => drop(due.remove(&finished.effect).expect("what finishes is owed")),
            event if ends_a_turn(event.kind()) => {
                due.retain(|_, due: &mut LoggedEffect| due.turn.is_none() || due.session != session);
            }
            _ => {}
        }
        for id in owed_by(record) {
            let owner = envelope.metadata.owes.as_ref().expect("it owes").owner.clone();
            due.insert(
                id,
                LoggedEffect { owner, begun: 0, rests: false, turn: None, session: session.clone(), iteration },
            );
        }
    }
    due
}

/// Returns the hooks that an event enqueued. The event that begins a turn has the turn as its first effect.
pub fn owed_by(record: &EventRecord) -> impl Iterator<Item = EffectId> {
    let hooks = record.envelope.metadata.owes.as_ref().map_or(0, |owed| owed.hooks.len());
    let first = u32::from(record.kind() == EventType::TurnStarted);
    let seq = record.seq;
    (first..).take(hooks).map(move |index| EffectId { seq, index })
}

/// Returns whether an event of this type ends the current turn.
pub fn ends_a_turn(kind: EventType) -> bool {
    use EventType as E;
    matches!(
        kind,
        E::TurnFinished
            | E::IterationFailed
            | E::IterationInterrupted
            | E::IterationPostponed
            | E::DeliveryFinished
            | E::DeliveryFailed
            | E::DeliveryInterrupted
    )
}
