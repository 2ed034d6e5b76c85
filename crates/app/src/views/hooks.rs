//! The hooks of the configuration: where each is defined, whether it can run, and how its last runs ended.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;
use windlass_config::listing::{ListedHook, WorkSubject, list_planned_hooks};
use windlass_config::{Config, HookSpec};
use windlass_engine::{HookPoint, HookScope};
use windlass_store::EventFilter;

use crate::context::OpenedProject;
use crate::event_text::describe_run_outcome;
use crate::hook_runs::{HookMetrics, HookRunRecord, find_newest_runs};
use crate::tone::TextTone;
use crate::{Failure, trust};

/// The number of runs that the figures cover; the newest count.
const MAX_COUNTED_RUNS: usize = 2000;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookSummary {
    pub point: String,
    pub name: String,
    /// The task types that it is bound to; empty if tasks without a type have it too.
    pub types: Vec<String>,
    /// The agent that it is bound to.
    pub agent: Option<String>,
    pub kind: String,
    /// Its command, URL or rules, in one line.
    pub effect: String,
    pub defined_in: String,
    /// The reason why it never runs.
    pub inactive_reason: Option<String>,
    pub is_enabled: bool,
    pub runs: usize,
    /// The runs that found something wrong with the work.
    pub blocks: usize,
    /// The runs that failed themselves, with those that timed out or could not start.
    pub errors: usize,
    pub p50_ms: Option<u64>,
    pub p95_ms: Option<u64>,
    pub last_outcome: Option<String>,
    pub last_tone: TextTone,
    pub last_at: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookPage {
    /// The trust in the configuration, in one word.
    pub trust: String,
    pub is_trusted: bool,
    pub hooks: Vec<HookSummary>,
}

/// The figures of a hook, and its last run.
type HookFigures<'r> = (HookMetrics, Option<&'r HookRunRecord>);

/// Loads the hooks for tasks of every type and of none, and for every agent, with the figures of their newest runs.
pub fn load_hook_page(opened: &OpenedProject) -> Result<HookPage, Failure> {
    let config = Config::load(&opened.project.root)?;
    let state = trust::find_trust_state(&opened.project, &config)?;
    let runs = find_newest_runs(opened, EventFilter::default(), MAX_COUNTED_RUNS, &mut |_| Ok(true))?;
    let mut figures: BTreeMap<&str, HookFigures<'_>> = BTreeMap::new();
    for run in &runs {
        let Some(name) = &run.hook else { continue };
        let (metrics, last) = figures.entry(name).or_default();
        metrics.count_run(run);
        *last = Some(run);
    }
    let mut hooks: Vec<HookSummary> = Vec::new();
    for subject in list_work_subjects(&config) {
        let planned = list_planned_hooks(&config, &subject).map_err(Failure::from)?;
        for (listing, row) in planned.iter().flat_map(|listing| listing.rows.iter().map(move |row| (listing, row))) {
            let known = hooks.iter_mut().find(|known| {
                known.point == listing.point.name()
                    && known.name == row.name()
                    && known.defined_in == row.describe_place()
                    && known.effect == row.describe_effect()
            });
            if let Some(known) = known {
                if !known.types.is_empty() {
                    known.types.extend(subject.kind.clone());
                }
                continue;
            }
            // The hooks of a point stay together.
            let last_of_point = hooks.iter().rposition(|known| known.point == listing.point.name());
            let place = last_of_point.map_or(hooks.len(), |place| place + 1);
            let types = subject.kind.clone().into_iter().collect();
            hooks.insert(place, summarize_hook(&listing.point, row, types, figures.get(row.name())));
        }
    }
    Ok(HookPage {
        trust: state.state_name().to_owned(),
        is_trusted: trust::is_config_effective(&opened.project, &config, opened.trust)?,
        hooks,
    })
}

/// Lists the work that can have hooks of its own: of no type, of each type, and of each agent with hooks.
fn list_work_subjects(config: &Config) -> Vec<WorkSubject> {
    let types = config.task_types().map(|(name, _)| WorkSubject { kind: Some(name.to_owned()), agent: None });
    let agents: BTreeSet<&str> = config.hooks.iter().filter_map(bound_agent).collect();
    let agents = agents.into_iter().map(|name| WorkSubject { kind: None, agent: Some(name.to_owned()) });
    std::iter::once(WorkSubject::default()).chain(types).chain(agents).collect()
}

/// Returns the agent that a hook is bound to.
fn bound_agent(hook: &HookSpec) -> Option<&str> {
    if let HookScope::Agent(name) = &hook.scope { Some(name) } else { None }
}

fn summarize_hook(
    point: &HookPoint,
    row: &ListedHook<'_>,
    types: Vec<String>,
    figures: Option<&HookFigures<'_>>,
) -> HookSummary {
    let metrics = figures.map(|(metrics, _)| metrics);
    let last = figures.and_then(|(_, last)| *last);
    let outcome = last.map(|run| describe_run_outcome(run.outcome));
    let inactive_reason = row.inactive_reason(point);
    let agent = if let ListedHook::Configured(hook) = row { bound_agent(hook) } else { None };
    HookSummary {
        point: point.name().to_owned(),
        name: row.name().to_owned(),
        types,
        agent: agent.map(str::to_owned),
        kind: row.kind().to_owned(),
        effect: row.describe_effect(),
        defined_in: row.describe_place(),
        is_enabled: inactive_reason.is_none(),
        inactive_reason,
        runs: metrics.map_or(0, HookMetrics::count_ended_runs),
        blocks: metrics.map_or(0, |metrics| metrics.block),
        errors: metrics.map_or(0, |metrics| metrics.failure + metrics.timed_out + metrics.errors),
        p50_ms: metrics.and_then(|metrics| metrics.duration_percentile(50)),
        p95_ms: metrics.and_then(|metrics| metrics.duration_percentile(95)),
        last_outcome: outcome.map(|(_, word)| word.to_owned()),
        last_tone: outcome.map_or(TextTone::Faint, |(tone, _)| tone),
        last_at: last.and_then(HookRunRecord::start_or_end_time).map(|at| at.millis()),
    }
}
