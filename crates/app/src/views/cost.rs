//! Tokens and money by day, agent, task and type; durations of hooks; the time that tasks spend in each state.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use schemars::JsonSchema;
use serde::Serialize;
use windlass_engine::{Event, EventRecord, EventType, Seq, StateView, TaskId, TaskState, TaskTransition, Timestamp};
use windlass_store::{EventFilter, Store};

use super::budget::{BudgetReport, load_budget_report};
use super::engine_names::EventTypeName;
use super::usage::UsageTotals;
use crate::context::OpenedProject;
use crate::turn_end::{TURN_END_EVENTS, ends_turn};
use crate::{Failure, environment, hints, time_format};

/// The number of positions of the log, up to the last one, that a report reads.
const MAX_REPORT_POSITIONS: u64 = 1_000_000;
const EVENTS_PER_PAGE: usize = 1000;
/// The most rows of a table.
const MAX_ROWS: usize = 100;
/// The events that open and close the budget of a session.
const SESSION_BOUNDS: [EventType; 2] = [EventType::SessionStarted, EventType::SessionEnded];

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
    /// The other rows are sorted by tokens, then by money, largest first.
    pub agents: Vec<CostRow>,
    pub tasks: Vec<CostRow>,
    pub types: Vec<CostRow>,
    pub total: UsageTotals,
    pub hook_durations: Vec<HookDuration>,
    /// The time that tasks spent in each state during the period.
    pub state_times: Vec<StateTime>,
    pub budgets: BudgetReport,
    /// Whether older events of the period were left out.
    pub is_cut: bool,
    /// The types of events after which the report may be different.
    #[schemars(with = "Vec<EventTypeName>")]
    pub source_events: Vec<&'static str>,
}

/// Builds the report about the last days, today included.
pub fn build_cost_report(opened: &OpenedProject, days: u16) -> Result<CostReport, Failure> {
    let now = environment::current_timestamp();
    let (since, days) = time_format::list_last_days(now, days.clamp(1, 366));
    let types = report_events().collect();
    let days = days.into_iter().map(|day| (day, UsageTotals::default())).collect();
    let mut builder = CostBuilder { days, ..CostBuilder::default() };
    let start = find_position_before(opened, since)?;
    let head = opened.store.head().map_err(hints::store_failure)?;
    let first = start.max(Seq(head.0.saturating_sub(MAX_REPORT_POSITIONS)));
    visit_events_after(opened, types, first, &mut |record| match record.envelope.timestamp < since {
        true => Ok(()),
        false => builder.add_record(opened, record),
    })?;
    builder.finish_report(opened, since, now, first > start)
}

/// Returns the events that end a turn or report usage.
fn usage_events() -> impl Iterator<Item = EventType> {
    TURN_END_EVENTS.into_iter().chain([EventType::HookFinished])
}

/// Returns the events that a report reads: those with usage, and those that set the state of a task.
fn report_events() -> impl Iterator<Item = EventType> {
    let changes = EventType::ALL.iter().copied().filter(|kind| TaskTransition::for_event_type(*kind).is_some());
    usage_events().chain([EventType::TaskCreated]).chain(changes)
}

/// The usage since a moment, counted up to a position of the log.
#[derive(Debug, Clone, Copy, Default)]
pub struct UsageCounter {
    since: Option<Timestamp>,
    through: Seq,
    totals: UsageTotals,
}

impl UsageCounter {
    /// Counts the usage since a moment. If the moment is the one of the last count, only the events after that are read.
    pub(super) fn count_since(&mut self, opened: &OpenedProject, since: Timestamp) -> Result<UsageTotals, Failure> {
        let mut counter = *self;
        if counter.since != Some(since) {
            counter = Self { since: Some(since), through: find_position_before(opened, since)?, ..Self::default() };
        }
        let (after, head) = (counter.through, opened.store.head().map_err(hints::store_failure)?);
        counter.through = head;
        visit_events_after(opened, usage_events().collect(), after, &mut |record| {
            counter.through = counter.through.max(record.seq);
            if record.envelope.timestamp >= since {
                counter.totals.add_event(&record.envelope.event);
            }
            Ok(())
        })?;
        *self = counter;
        Ok(counter.totals)
    }
}

/// Finds a position before which every event is older than a moment, as far as the clock never went back.
fn find_position_before(opened: &OpenedProject, moment: Timestamp) -> Result<Seq, Failure> {
    let (mut older, mut newer) = (0, opened.store.head().map_err(hints::store_failure)?.0 + 1);
    while newer - older > 1 {
        let middle = older + (newer - older) / 2;
        let record = opened.store.read_event(Seq(middle)).map_err(hints::store_failure)?;
        match record.is_some_and(|record| record.envelope.timestamp < moment) {
            true => older = middle,
            false => newer = middle,
        }
    }
    Ok(Seq(older))
}

/// Visits the events of some types after a position, oldest first.
fn visit_events_after(
    opened: &OpenedProject,
    types: Vec<EventType>,
    mut after: Seq,
    visit: &mut dyn FnMut(&EventRecord) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let filter = EventFilter { types, ..EventFilter::default() };
    loop {
        let page = opened.store.read_events(&filter, after, EVENTS_PER_PAGE).map_err(hints::store_failure)?;
        page.iter().try_for_each(&mut *visit)?;
        match page.last() {
            Some(newest) if page.len() == EVENTS_PER_PAGE => after = newest.seq,
            _ => return Ok(()),
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
    /// The state changes of each task, oldest first.
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
            for (at, state) in changes.iter().rev() {
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
            budgets: load_budget_report(opened)?,
            is_cut,
            source_events: report_events().chain(SESSION_BOUNDS).map(EventType::name).collect(),
        })
    }
}

fn rank_rows(rows: BTreeMap<String, UsageTotals>) -> Vec<CostRow> {
    rank_by_tokens(rows).into_iter().map(|(key, usage)| CostRow { key, usage }).collect()
}

/// Returns the entries with the most tokens, largest first; those with as many tokens are sorted by their money.
fn rank_by_tokens<K>(entries: BTreeMap<K, UsageTotals>) -> Vec<(K, UsageTotals)> {
    let mut entries: Vec<(K, UsageTotals)> = entries.into_iter().collect();
    let tokens = |usage: &UsageTotals| usage.input_tokens + usage.output_tokens;
    let money = |usage: &UsageTotals| usage.cost_usd.unwrap_or_default();
    entries.sort_by(|(_, one), (_, other)| tokens(other).cmp(&tokens(one)).then(money(other).total_cmp(&money(one))));
    entries.truncate(MAX_ROWS);
    entries
}

fn duration_row((hook, mut durations): (String, Vec<u64>)) -> HookDuration {
    durations.sort_unstable();
    let at = |percent: usize| durations[(durations.len() * percent).div_ceil(100).max(1) - 1];
    HookDuration { hook, runs: durations.len(), p50_ms: at(50), p95_ms: at(95) }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::sync::Arc;

    use windlass_engine::{
        AgentUsage, Authority, Command, CommandOrigin, EngineRules, HookRegistry, NewSession, NewTask, TurnAnswer,
    };
    use windlass_store::{Lifetime, SqliteStore};
    use windlass_testkit::sample_session;

    use super::*;
    use crate::SilentFrontEnd;
    use crate::project::Project;

    /// A project with one session, whose turns have ten tokens each.
    struct TestLog(OpenedProject);

    impl TestLog {
        fn start_session(directory: &Path, at: i64) -> Self {
            fs::create_dir(directory.join(".windlass")).unwrap();
            let project = Project::open_at(directory).unwrap().unwrap();
            let store = SqliteStore::create(&project.store_file(), Lifetime::Service).unwrap();
            let mut log = Self(OpenedProject::new(project, store, false, Arc::new(SilentFrontEnd)));
            log.add_task(at);
            let begin = Command::StartSession(NewSession { name: "pump".parse().unwrap(), ..sample_session() });
            log.execute(at, &begin);
            log
        }

        fn execute(&mut self, at: i64, command: &Command) {
            let rules = EngineRules { registry: HookRegistry::with_builtins(), ..EngineRules::default() };
            let (by, authority, at) = ("ada".to_owned(), Authority::Person, Timestamp::from_millis(at));
            let origin = CommandOrigin { by, at, authority, run: None, via: None };
            let nonce = u128::from(self.0.store.head().unwrap().0);
            self.0.store.execute_command(&rules, &origin, command, nonce).unwrap();
        }

        fn add_task(&mut self, at: i64) {
            self.execute(at, &Command::CreateTask(NewTask { goal: "One".to_owned(), ..NewTask::default() }));
        }

        fn finish_turn(&mut self, at: i64) {
            let filter = EventFilter { types: vec![EventType::TurnStarted], ..EventFilter::default() };
            let started = self.0.store.read_events_back(&filter, None, 1).unwrap().remove(0);
            let Event::TurnStarted(turn) = &started.envelope.event else { panic!("{started:?}") };
            let usage = AgentUsage { input: 10, ..AgentUsage::default() };
            let answer = TurnAnswer { output: format!("At {at}."), usage, ..TurnAnswer::default() };
            self.execute(at, &Command::FinishTurn { run: turn.run.clone(), answer });
        }
    }

    #[test]
    fn usage_counter_adds_new_turns_and_starts_again_at_midnight() {
        let directory = tempfile::tempdir().unwrap();
        let mut log = TestLog::start_session(directory.path(), 1000);
        let mut counter = UsageCounter::default();
        let mut check_count = |log: &TestLog, since: i64, turns: u64| {
            let found = counter.count_since(&log.0, Timestamp::from_millis(since)).unwrap();
            assert_eq!((found.turns, found.input_tokens), (turns, 10 * turns));
        };
        check_count(&log, 1000, 0);
        log.finish_turn(2000);
        check_count(&log, 1000, 1);
        log.add_task(3000);
        check_count(&log, 1000, 1);
        log.finish_turn(4000);
        log.finish_turn(5000);
        check_count(&log, 1000, 3);
        check_count(&log, 5000, 1);
        log.finish_turn(6000);
        check_count(&log, 5000, 2);
    }

    /// A front end loads a report again only after an event of these types.
    #[test]
    fn source_events_are_all_that_report_depends_on() {
        let directory = tempfile::tempdir().unwrap();
        let log = TestLog::start_session(directory.path(), 1000);
        let report = build_cost_report(&log.0, 1).unwrap();
        let of_states = ["task_created", "task_blocked", "task_unblocked", "task_completed", "task_reopened"];
        for name in of_states.into_iter().chain(["turn_finished", "hook_finished", "session_started"]) {
            assert!(report.source_events.contains(&name), "{name}: {:?}", report.source_events);
        }
        assert!(!report.source_events.contains(&"note_added"), "{:?}", report.source_events);
    }

    #[test]
    fn every_event_up_to_found_position_is_older() {
        let directory = tempfile::tempdir().unwrap();
        let mut log = TestLog::start_session(directory.path(), 1000);
        log.finish_turn(2000);
        log.add_task(3000);
        let records = log.0.store.read_events(&EventFilter::default(), Seq(0), EVENTS_PER_PAGE).unwrap();
        for moment in [0, 1000, 1001, 2000, 2500, 3000, 3001].map(Timestamp::from_millis) {
            let older = records.iter().rfind(|record| record.envelope.timestamp < moment);
            let expected = older.map_or(Seq(0), |record| record.seq);
            assert_eq!(find_position_before(&log.0, moment).unwrap(), expected, "{moment:?}");
        }
    }
}
