//! The note about tasks that were completed without any check of their work.

use std::collections::BTreeSet;

use windlass_engine::{EffectId, Event, EventType, HookOutcome, Session};
use windlass_store::{EventFilter, SqliteStore, Store as _};
use windlass_text as text;

use crate::{Failure, hints};

/// The longest shown reason for a skipped check.
const MAX_REASON: usize = 200;

/// Returns a note that nothing checked the work on these tasks, and how to add a check. `skipped` describes a skipped check.
pub fn describe_unchecked_work(tasks: u32, completed: usize, skipped: Option<&str>) -> Option<String> {
    let how = match skipped {
        Some(skipped) => format!(": {skipped}"),
        None => "; add a check, such as `hooks: {stop: [run_tests]}`, to .windlass/config.yaml".to_owned(),
    };
    match tasks {
        0 => None,
        some if completed > some as usize => {
            Some(format!("nothing checked the work on {some} of {completed} tasks{how}"))
        }
        1 => Some(format!("nothing checked this work{how}")),
        many => Some(format!("nothing checked this work ({many} tasks){how}")),
    }
}

/// Returns how many tasks a session has claimed and completed, or 0 if all its work was checked.
pub fn count_completed_tasks(store: &SqliteStore, session: &Session) -> Result<usize, Failure> {
    if session.unchecked == 0 {
        return Ok(0);
    }
    let types = vec![EventType::TaskClaimed, EventType::TaskCompleted];
    let filter = EventFilter { session: Some(session.name.clone()), types, ..EventFilter::default() };
    let (mut claimed, mut completed) = (BTreeSet::new(), BTreeSet::new());
    for record in store.read_events(&filter, Default::default(), usize::MAX).map_err(hints::store_failure)? {
        match record.envelope.event {
            Event::TaskClaimed(_) => claimed.extend(record.envelope.node.task_id()),
            _ => completed.extend(record.envelope.node.task_id().filter(|task| claimed.contains(task))),
        }
    }
    Ok(completed.len())
}

/// Returns the last check that was skipped in a session with unchecked work, and the reason.
pub fn find_skipped_check(store: &SqliteStore, session: &Session) -> Result<Option<String>, Failure> {
    if session.unchecked == 0 {
        return Ok(None);
    }
    let filter = EventFilter { session: Some(session.name.clone()), ..EventFilter::default() };
    let mut checks: BTreeSet<EffectId> = BTreeSet::new();
    let mut skipped = None;
    for record in store.read_events(&filter, Default::default(), usize::MAX).map_err(hints::store_failure)? {
        let owed = record.envelope.metadata.owes.iter().flat_map(|owed| &owed.hooks);
        let owed = (0..).zip(owed).filter(|(_, hook)| hook.is_check());
        checks.extend(owed.map(|(index, _)| EffectId { seq: record.seq, index }));
        match &record.envelope.event {
            Event::HookFinished(finished)
                if finished.outcome == HookOutcome::Skip && checks.contains(&finished.effect) =>
            {
                let why = finished.message.as_ref().map(|why| format!(": {}", text::fit_to_width(why, MAX_REASON)));
                skipped =
                    Some(format!("`{}` was skipped{}", text::clean_line(&finished.hook), why.unwrap_or_default()));
            }
            _ => {}
        }
    }
    Ok(skipped)
}
