//! The note about tasks that were completed while nothing checked their work.

use std::collections::BTreeSet;

use windlass_engine::{DebtId, Event, HookOutcome, Session};
use windlass_store::{Filter, Sqlite, Store as _};

use crate::failure::Failure;
use crate::{remedy, text};

/// How much of the reason for a skip is shown.
const MAX_REASON: usize = 200;

/// Returns that nothing checked the work on so many tasks, and what would. `skipped` is a check that was skipped.
pub fn note(tasks: u32, skipped: Option<&str>) -> Option<String> {
    let how = skipped.unwrap_or("a stop hook does, such as `hooks: {stop: [run_tests]}` in .windlass/config.yaml");
    match tasks {
        0 => None,
        1 => Some(format!("nothing checked this work: {how}")),
        many => Some(format!("nothing checked this work ({many} tasks): {how}")),
    }
}

/// Returns the last check that was skipped in a session with unchecked work, and why it was.
pub fn find_skipped_check(store: &Sqlite, session: &Session) -> Result<Option<String>, Failure> {
    if session.unchecked == 0 {
        return Ok(None);
    }
    let filter = Filter { session: Some(session.name.clone()), ..Filter::default() };
    let mut checks: BTreeSet<DebtId> = BTreeSet::new();
    let mut skipped = None;
    for record in store.read(&filter, Default::default(), usize::MAX).map_err(remedy::store)? {
        let owed = record.envelope.metadata.owes.iter().flat_map(|owed| &owed.hooks);
        let owed = (0..).zip(owed).filter(|(_, hook)| hook.is_check());
        checks.extend(owed.map(|(index, _)| DebtId { seq: record.seq, index }));
        match &record.envelope.event {
            Event::HookFinished(finished)
                if finished.outcome == HookOutcome::Skip && checks.contains(&finished.debt) =>
            {
                let why = finished.message.as_ref().map(|why| format!(": {}", text::fit(why, MAX_REASON)));
                skipped = Some(format!("`{}` was skipped{}", text::line(&finished.hook), why.unwrap_or_default()));
            }
            _ => {}
        }
    }
    Ok(skipped)
}
