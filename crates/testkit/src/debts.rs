//! What is owed, worked out from the log alone.

use std::collections::BTreeMap;

use windlass_engine::{DebtId, Event, OwnerName, Record, RunId, payload};

/// A debt as the log tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    pub owner: OwnerName,
    pub begun: u32,
    /// The turn that it stands for, if it is no hook.
    pub turn: Option<RunId>,
}

/// Everything that was made owed or begun, and not finished.
pub fn due(log: &[Record]) -> BTreeMap<DebtId, Due> {
    let mut due = BTreeMap::new();
    for record in log {
        match &record.envelope.event {
            Event::IterationStarted(started) => {
                let id = DebtId { seq: record.seq, index: 0 };
                due.insert(id, Due { owner: started.owner.clone(), begun: 1, turn: Some(started.run.clone()) });
            }
            Event::IterationCompleted(payload::IterationCompleted { run })
            | Event::IterationFailed(payload::IterationFailed { run, .. })
            | Event::IterationInterrupted(payload::IterationInterrupted { run }) => {
                due.retain(|_, due: &mut Due| due.turn.as_ref() != Some(run));
            }
            Event::HookStarted(started) => {
                let due = due.get_mut(&started.debt).expect("what begins is owed");
                (due.begun, due.owner) = (due.begun + 1, started.owner.clone());
            }
            Event::HookFinished(finished) => drop(due.remove(&finished.debt).expect("what finishes is owed")),
            _ => {}
        }
        let Some(owed) = &record.envelope.metadata.owes else { continue };
        // The turn itself comes first among the debts of the event that begins it.
        let first = u32::from(matches!(record.envelope.event, Event::IterationStarted(_)));
        for index in (first..).take(owed.hooks.len()) {
            let id = DebtId { seq: record.seq, index };
            due.insert(id, Due { owner: owed.owner.clone(), begun: 0, turn: None });
        }
    }
    due
}
