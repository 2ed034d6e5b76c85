//! Pending effects, computed from the log alone.

use std::collections::BTreeMap;

use windlass_engine::{EffectId, Event, EventRecord, EventType, OwnerName, RunId, SessionName};

/// A pending effect, according to the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedEffect {
    pub owner: OwnerName,
    pub attempts: u32,
    /// Whether the effect has failed and waits for a retry.
    pub is_resting: bool,
    /// The turn, if the effect is no hook.
    pub turn: Option<RunId>,
    pub session: Option<SessionName>,
    pub iteration: Option<u32>,
}

/// Returns all effects that are pending or begun.
pub fn read_pending_effects(log: &[EventRecord]) -> BTreeMap<EffectId, LoggedEffect> {
    let mut pending = BTreeMap::new();
    for record in log {
        let envelope = &record.envelope;
        let (session, iteration) = (envelope.session.clone(), envelope.iteration);
        match &envelope.event {
            Event::TurnStarted(started) => {
                let id = EffectId { seq: record.seq, index: 0 };
                let (owner, turn) = (started.owner.clone(), Some(started.run.clone()));
                pending.insert(
                    id,
                    LoggedEffect { owner, attempts: 1, is_resting: false, turn, session: session.clone(), iteration },
                );
            }
            Event::HookStarted(started) => {
                let pending = pending.get_mut(&started.effect).expect("a started hook is pending");
                (pending.attempts, pending.owner, pending.is_resting) =
                    (pending.attempts + 1, started.owner.clone(), false);
            }
            Event::HookRetrying(retrying) => {
                pending.get_mut(&retrying.effect).expect("a hook that waits for a retry is pending").is_resting = true
            }
            Event::HookFinished(finished) => {
                drop(pending.remove(&finished.effect).expect("a finished hook was pending"))
            }
            event if ends_turn(event.kind()) => {
                pending.retain(|_, pending: &mut LoggedEffect| pending.turn.is_none() || pending.session != session);
            }
            _ => {}
        }
        for id in owed_hooks(record) {
            let owner = envelope.metadata.owes.as_ref().expect("it owes").owner.clone();
            pending.insert(
                id,
                LoggedEffect { owner, attempts: 0, is_resting: false, turn: None, session: session.clone(), iteration },
            );
        }
    }
    pending
}

/// Returns the hooks that an event enqueued. The event that begins a turn has the turn as its first effect.
pub fn owed_hooks(record: &EventRecord) -> impl Iterator<Item = EffectId> {
    let hooks = record.envelope.metadata.owes.as_ref().map_or(0, |owed| owed.hooks.len());
    let first = u32::from(record.kind() == EventType::TurnStarted);
    let seq = record.seq;
    (first..).take(hooks).map(move |index| EffectId { seq, index })
}

/// Returns whether an event of this type ends the current turn.
pub fn ends_turn(kind: EventType) -> bool {
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
