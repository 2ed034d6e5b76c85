//! A collector that assembles hook runs from their events.
//!
//! ```text
//! hook_started 12.0 ──────────────► hook_finished 12.0 ─► feedback_queued      a run: the effect ties them together
//! hook_started 12.0 ─► hook_finished 12.0 ─► pipeline_failed ─► feedback_queued   the same, where a gate fails
//! hook_started 12.0 ─► (crash) ─► hook_started 12.0, attempt 2 ─► …            two runs, the first interrupted
//! hook_started 12.0 ─► (fails) ─► hook_started 12.0, attempt 2, after … ─► …   two runs, the first failed
//! ```
//!
//! The collector reads the log backwards, so that it finds the last runs without the first ones.

use std::collections::{BTreeMap, BTreeSet};

use windlass_engine::{EffectId, Event, EventRecord, EventType, GateRemedy, HookOutcome, Seq, SessionName, payload};
use windlass_store::EventFilter;

use super::record::{HookRunOutcome, HookRunRecord};
use crate::context::OpenedProject;
use crate::project::Project;
use crate::{Failure, hints};

/// The events that describe runs.
pub const RUN_EVENTS: [EventType; 6] = [
    EventType::HookStarted,
    EventType::HookFinished,
    EventType::HookError,
    EventType::ActionError,
    EventType::FeedbackQueued,
    EventType::PipelineFailed,
];

/// The number of events per read.
const PAGE_SIZE: usize = 512;

/// The state of an effect after the present position in the log.
enum LaterEvent {
    /// It ended; the index of the run that still needs its start, if that run is wanted.
    Finished(Option<usize>),
    /// It was started again: after a failure with this message, or after a crash.
    Started(Option<String>),
}

/// The assembly of runs from events that come newest first.
struct RunCollector<'w> {
    project: &'w Project,
    wanted: &'w mut dyn FnMut(&HookRunRecord) -> Result<bool, Failure>,
    runs: Vec<HookRunRecord>,
    later: BTreeMap<EffectId, LaterEvent>,
    /// Effects of wanted runs whose start has not been read.
    sought: BTreeSet<EffectId>,
    /// Queued feedback, until its hook is read.
    queued: Option<(Option<Seq>, payload::FeedbackQueued, Seq)>,
    /// Feedback that a failed gate has queued, until its hook is read.
    remediations: BTreeMap<(Option<SessionName>, String), Seq>,
}

impl<'w> RunCollector<'w> {
    fn new(project: &'w Project, wanted: &'w mut dyn FnMut(&HookRunRecord) -> Result<bool, Failure>) -> Self {
        let (runs, later, sought) = (Vec::new(), BTreeMap::new(), BTreeSet::new());
        Self { project, wanted, runs, later, sought, queued: None, remediations: BTreeMap::new() }
    }

    fn add_run(&mut self, run: HookRunRecord) -> Result<Option<usize>, Failure> {
        if !(self.wanted)(&run)? {
            return Ok(None);
        }
        self.runs.push(run);
        Ok(Some(self.runs.len() - 1))
    }

    fn read_record(&mut self, record: &EventRecord) -> Result<(), Failure> {
        match &record.envelope.event {
            Event::FeedbackQueued(queued) => self.queued = Some((record.cause_position(), queued.clone(), record.seq)),
            Event::PipelineFailed(failed) if failed.remedy == GateRemedy::Remediate && failed.feedback.is_none() => {
                if let Some((_, queued, seq)) = &self.queued
                    && queued.source == failed.hook
                {
                    let hook = (record.envelope.session.clone(), failed.hook.clone());
                    self.remediations.insert(hook, *seq);
                }
            }
            Event::HookFinished(finished) => {
                let mut run = HookRunRecord::from_finished_event(record, finished);
                let remediation = self.remediations.remove(&(run.session.clone(), finished.hook.clone()));
                if let (Some(seq), Some((queued, _))) = (remediation, &mut run.feedback) {
                    *queued = seq;
                }
                let own = |(cause, queued, _): &(_, payload::FeedbackQueued, _)| {
                    *cause == run.event && queued.source == finished.hook
                };
                let queued = self.queued.take().filter(own).map(|(_, queued, seq)| (seq, queued.text));
                run.feedback = queued.or(run.feedback);
                let place = self.add_run(run)?;
                self.later.insert(finished.effect, LaterEvent::Finished(place));
                if place.is_some() {
                    self.sought.insert(finished.effect);
                }
            }
            Event::HookStarted(started) => self.read_hook_start(record, started)?,
            // The end of its run has the same error.
            Event::HookError(error) if error.effect.is_some() => {}
            Event::HookError(error) => {
                let (hook, message) = (Some(error.hook_name.clone()), Some(error.error.clone()));
                let ended = Some(record.envelope.timestamp);
                self.add_run(HookRunRecord {
                    hook,
                    message,
                    ended,
                    ..HookRunRecord::new(record, HookRunOutcome::Error)
                })?;
            }
            Event::ActionError(error) => {
                let (action, message) = (Some(error.action_type.clone()), Some(error.error.clone()));
                let ended = Some(record.envelope.timestamp);
                self.add_run(HookRunRecord {
                    action,
                    message,
                    ended,
                    ..HookRunRecord::new(record, HookRunOutcome::Error)
                })?;
            }
            _ => {}
        }
        Ok(())
    }

    fn read_hook_start(&mut self, record: &EventRecord, started: &payload::HookStarted) -> Result<(), Failure> {
        self.sought.remove(&started.effect);
        match self.later.insert(started.effect, LaterEvent::Started(started.after.clone())) {
            Some(LaterEvent::Finished(place)) => {
                if let Some(run) = place.and_then(|place| self.runs.get_mut(place)) {
                    run.attempt = started.attempt;
                    run.started = Some(record.envelope.timestamp);
                }
            }
            Some(LaterEvent::Started(Some(message))) => {
                let outcome = HookRunOutcome::Ended(HookOutcome::Failure);
                self.add_run(HookRunRecord {
                    message: Some(message),
                    ..HookRunRecord::from_started_event(record, started, outcome)
                })?;
            }
            Some(LaterEvent::Started(None)) => {
                let outcome = HookRunOutcome::Ended(HookOutcome::Interrupted);
                let message = Some("it was begun again".to_owned());
                self.add_run(HookRunRecord { message, ..HookRunRecord::from_started_event(record, started, outcome) })?;
            }
            None => {
                let alive = !self.project.is_owner_dead(started.owner.as_str());
                let outcome = if alive { HookRunOutcome::Running } else { HookRunOutcome::Left };
                self.add_run(HookRunRecord::from_started_event(record, started, outcome))?;
            }
        }
        Ok(())
    }

    /// Returns whether there are enough runs, and earlier events cannot complete any of them.
    fn has_enough(&self, most: usize, at: Seq) -> bool {
        self.runs.len() >= most && self.sought.first().is_none_or(|effect| effect.seq >= at)
    }

    /// Returns the last runs, oldest first.
    fn into_newest_runs(mut self, most: usize) -> Vec<HookRunRecord> {
        self.runs.truncate(most);
        self.runs.reverse();
        self.runs
    }
}

/// Returns the last wanted runs, oldest first.
pub fn find_newest_runs(
    opened: &OpenedProject,
    filter: EventFilter,
    most: usize,
    wanted: &mut dyn FnMut(&HookRunRecord) -> Result<bool, Failure>,
) -> Result<Vec<HookRunRecord>, Failure> {
    let mut collector = RunCollector::new(&opened.project, wanted);
    let filter = EventFilter { types: RUN_EVENTS.to_vec(), ..filter };
    // The store walks the whole history of a task, whatever the page size.
    let size = if filter.task.is_some() { usize::MAX } else { PAGE_SIZE };
    let mut before = None;
    loop {
        let page = opened.store.read_events_back(&filter, before, size).map_err(hints::store_failure)?;
        for record in &page {
            if collector.has_enough(most, record.seq) {
                return Ok(collector.into_newest_runs(most));
            }
            collector.read_record(record)?;
        }
        before = page.last().map(|record| record.seq);
        if page.len() < size {
            return Ok(collector.into_newest_runs(most));
        }
    }
}

/// Returns all runs that these events describe, oldest first.
pub fn collect_runs(opened: &OpenedProject, records: &[EventRecord]) -> Result<Vec<HookRunRecord>, Failure> {
    let mut all = |_: &HookRunRecord| Ok(true);
    let mut collector = RunCollector::new(&opened.project, &mut all);
    records.iter().rev().try_for_each(|record| collector.read_record(record))?;
    Ok(collector.into_newest_runs(usize::MAX))
}
