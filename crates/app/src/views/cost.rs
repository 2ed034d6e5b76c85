//! Tokens and money by day, agent, task and type; durations of hooks; the time that tasks spend in each state.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use schemars::JsonSchema;
use serde::Serialize;
use windlass_engine::{Event, EventRecord, EventType, Seq, StateView, TaskId, TaskState, TaskTransition, Timestamp};
use windlass_store::EventFilter;

use super::usage::UsageTotals;
use crate::context::OpenedProject;
use crate::turn_end::{TURN_END_EVENTS, ends_turn};
use crate::{Failure, environment, hints, time_format};

/// The most events that a report reads; the newest count.
const MAX_REPORT_EVENTS: usize = 200_000;
const EVENTS_PER_PAGE: usize = 1000;
/// The most rows of a table.
const MAX_ROWS: usize = 100;

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CostRow {
    /// A day, an agent, a task or a type.
    pub key: String,
    pub usage: UsageTotals,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookDuration {
    pub hook: String,
    pub runs: usize,
    pub p50_ms: u64,
    pub p95_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StateTime {
    pub state: String,
    pub ms: i64,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CostReport {
    /// Every day of the period, oldest first.
    pub days: Vec<CostRow>,
    /// The other rows are sorted by tokens, largest first.
    pub agents: Vec<CostRow>,
    pub tasks: Vec<CostRow>,
    pub types: Vec<CostRow>,
    pub total: UsageTotals,
    pub hook_durations: Vec<HookDuration>,
    /// The time that tasks spent in each state during the period.
    pub state_times: Vec<StateTime>,
    /// Whether older events of the period were left out.
    pub is_cut: bool,
}

/// Builds the report about the last days, today included.
pub fn build_cost_report(opened: &OpenedProject, days: u16) -> Result<CostReport, Failure> {
    let now = environment::current_timestamp();
    let (since, days) = time_format::list_last_days(now, days.clamp(1, 366));
    let changes = EventType::ALL.iter().copied().filter(|kind| TaskTransition::for_event_type(*kind).is_some());
    let types = usage_events().chain([EventType::TaskCreated]).chain(changes).collect();
    let days = days.into_iter().map(|day| (day, UsageTotals::default())).collect();
    let mut builder = CostBuilder { days, ..CostBuilder::default() };
    let is_cut = visit_events_since(opened, types, since, &mut |record| builder.add_record(opened, record))?;
    builder.finish_report(opened, since, now, is_cut)
}

/// Returns the events that end a turn or report usage.
fn usage_events() -> impl Iterator<Item = EventType> {
    TURN_END_EVENTS.into_iter().chain([EventType::HookFinished])
}

/// Reads the usage since a moment.
pub(super) fn read_usage_since(opened: &OpenedProject, since: Timestamp) -> Result<UsageTotals, Failure> {
    let mut totals = UsageTotals::default();
    visit_events_since(opened, usage_events().collect(), since, &mut |record| {
        totals.add_event(&record.envelope.event);
        Ok(())
    })?;
    Ok(totals)
}

/// Visits the newest events of some types since a moment, newest first. Returns whether older ones were left out.
fn visit_events_since(
    opened: &OpenedProject,
    types: Vec<EventType>,
    since: Timestamp,
    visit: &mut dyn FnMut(&EventRecord) -> Result<(), Failure>,
) -> Result<bool, Failure> {
    let filter = EventFilter { types, ..EventFilter::default() };
    let (mut before, mut left): (Option<Seq>, usize) = (None, MAX_REPORT_EVENTS);
    loop {
        let page = opened.store.read_events_back(&filter, before, EVENTS_PER_PAGE).map_err(hints::store_failure)?;
        for record in &page {
            if record.envelope.timestamp < since {
                return Ok(false);
            }
            if left == 0 {
                return Ok(true);
            }
            left -= 1;
            visit(record)?;
        }
        match page.last() {
            Some(oldest) if page.len() == EVENTS_PER_PAGE => before = Some(oldest.seq),
            _ => return Ok(false),
        }
    }
}

#[derive(Default)]
struct CostBuilder {
    days: BTreeMap<String, UsageTotals>,
    agents: BTreeMap<String, UsageTotals>,
    tasks: BTreeMap<TaskId, UsageTotals>,
    types: BTreeMap<String, UsageTotals>,
    total: UsageTotals,
    durations: BTreeMap<String, Vec<u64>>,
    /// The agents of sessions, and the types of tasks, that were looked up.
    agent_names: BTreeMap<String, String>,
    type_names: BTreeMap<TaskId, String>,
    /// The state changes of each task, newest first.
    changes: BTreeMap<TaskId, Vec<(Timestamp, TaskState)>>,
}

impl CostBuilder {
    fn add_record(&mut self, opened: &OpenedProject, record: &EventRecord) -> Result<(), Failure> {
        let envelope = &record.envelope;
        let task = envelope.node.task_id();
        if let Event::HookFinished(finished) = &envelope.event
            && let Some(took) = finished.duration_ms
        {
            self.durations.entry(finished.hook.clone()).or_default().push(took);
        }
        let to = TaskTransition::for_event_type(record.kind()).map(|change| change.to);
        let to = to.or((record.kind() == EventType::TaskCreated).then_some(TaskState::Created));
        if let (Some(task), Some(to)) = (task, to) {
            self.changes.entry(task).or_default().push((envelope.timestamp, to));
        }
        let event = &envelope.event;
        if event.usage().is_nothing() && !ends_turn(event.kind()) {
            return Ok(());
        }
        self.total.add_event(event);
        self.days.entry(time_format::format_local_day(envelope.timestamp)).or_default().add_event(event);
        if let Some(session) = &envelope.session {
            let name = session.to_string();
            if !self.agent_names.contains_key(&name) {
                let snapshot = opened.store.begin_snapshot().map_err(hints::store_failure)?;
                let found = snapshot.find_session(session).map_err(hints::view_failure)?;
                self.agent_names.insert(name.clone(), found.map(|session| session.agent).unwrap_or_default());
            }
            self.agents.entry(self.agent_names[&name].clone()).or_default().add_event(event);
        }
        let Some(task) = task else { return Ok(()) };
        self.tasks.entry(task).or_default().add_event(event);
        if let Entry::Vacant(unknown) = self.type_names.entry(task) {
            let snapshot = opened.store.begin_snapshot().map_err(hints::store_failure)?;
            let kind = snapshot.find_task(task).map_err(hints::view_failure)?.and_then(|task| task.kind);
            unknown.insert(kind.map_or_else(|| "no type".to_owned(), |kind| kind.to_string()));
        }
        self.types.entry(self.type_names[&task].clone()).or_default().add_event(event);
        Ok(())
    }

    fn finish_report(
        self,
        opened: &OpenedProject,
        since: Timestamp,
        now: Timestamp,
        is_cut: bool,
    ) -> Result<CostReport, Failure> {
        let mut state_times: BTreeMap<TaskState, i64> = BTreeMap::new();
        for changes in self.changes.values() {
            let mut until = now;
            for (at, state) in changes {
                let is_over = matches!(state, TaskState::Completed | TaskState::Deleted);
                if !is_over {
                    *state_times.entry(*state).or_default() += until.millis() - at.millis().max(since.millis());
                }
                until = *at;
            }
        }
        let mut hook_durations: Vec<HookDuration> = self.durations.into_iter().map(duration_row).collect();
        hook_durations.sort_by_key(|row| std::cmp::Reverse(row.p95_ms));
        hook_durations.truncate(MAX_ROWS);
        let mut tasks = Vec::new();
        let snapshot = opened.store.begin_snapshot().map_err(hints::store_failure)?;
        for (id, usage) in rank_by_tokens(self.tasks) {
            let goal = snapshot.find_task(id).map_err(hints::view_failure)?.map(|task| task.goal).unwrap_or_default();
            tasks.push(CostRow { key: format!("{id} {}", super::excerpt(&goal, 80)), usage });
        }
        Ok(CostReport {
            days: self.days.into_iter().map(|(key, usage)| CostRow { key, usage }).collect(),
            agents: rank_rows(self.agents),
            tasks,
            types: rank_rows(self.types),
            total: self.total,
            hook_durations,
            state_times: state_times
                .into_iter()
                .map(|(state, ms)| StateTime { state: state.name().to_owned(), ms })
                .collect(),
            is_cut,
        })
    }
}

fn rank_rows(rows: BTreeMap<String, UsageTotals>) -> Vec<CostRow> {
    rank_by_tokens(rows).into_iter().map(|(key, usage)| CostRow { key, usage }).collect()
}

/// Returns the entries with the most tokens, largest first.
fn rank_by_tokens<K>(entries: BTreeMap<K, UsageTotals>) -> Vec<(K, UsageTotals)> {
    let mut entries: Vec<(K, UsageTotals)> = entries.into_iter().collect();
    entries.sort_by_key(|(_, usage)| std::cmp::Reverse(usage.input_tokens + usage.output_tokens));
    entries.truncate(MAX_ROWS);
    entries
}

fn duration_row((hook, mut durations): (String, Vec<u64>)) -> HookDuration {
    durations.sort_unstable();
    let at = |percent: usize| durations[(durations.len() * percent).div_ceil(100).max(1) - 1];
    HookDuration { hook, runs: durations.len(), p50_ms: at(50), p95_ms: at(95) }
}
