//! The hooks of the configuration: where each is defined, whether it can run, and how its last runs ended.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use windlass_config::Config;
use windlass_config::listing::{WorkSubject, list_planned_hooks};
use windlass_store::EventFilter;

use crate::context::OpenedProject;
use crate::event_text::describe_run_outcome;
use crate::hook_runs::{HookMetrics, HookRunRecord, find_newest_runs};
use crate::tone::Tone;
use crate::{Failure, trust};

/// The number of runs that the figures cover; the newest count.
const MAX_COUNTED_RUNS: usize = 2000;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookSummary {
    pub point: String,
    pub name: String,
    pub kind: String,
    /// Its command, URL or rules, in one line.
    pub effect: String,
    pub defined_in: String,
    /// The reason why it never runs.
    pub inactive_reason: Option<String>,
    pub is_enabled: bool,
    pub runs: usize,
    pub failures: usize,
    pub p50_ms: Option<u64>,
    pub p95_ms: Option<u64>,
    pub last_outcome: Option<String>,
    pub last_tone: Tone,
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

/// Loads the hooks for a task without a type, with the figures of their newest runs.
pub fn load_hook_page(opened: &OpenedProject) -> Result<HookPage, Failure> {
    let config = Config::load(&opened.project.root)?;
    let state = trust::find_trust_state(&opened.project, &config)?;
    let runs = find_newest_runs(opened, EventFilter::default(), MAX_COUNTED_RUNS, &mut |_| Ok(true))?;
    let mut figures: BTreeMap<&str, (HookMetrics, Option<&HookRunRecord>)> = BTreeMap::new();
    for run in &runs {
        let Some(name) = &run.hook else { continue };
        let (metrics, last) = figures.entry(name).or_default();
        metrics.count_run(run);
        *last = Some(run);
    }
    let planned = list_planned_hooks(&config, &WorkSubject::default()).map_err(Failure::from)?;
    let mut hooks = Vec::new();
    for listing in &planned {
        for row in &listing.rows {
            let found = figures.get(row.name());
            let last = found.and_then(|(_, last)| *last);
            let outcome = last.map(|run| describe_run_outcome(run.outcome));
            let inactive_reason = row.inactive_reason(&listing.point);
            hooks.push(HookSummary {
                point: listing.point.name().to_owned(),
                name: row.name().to_owned(),
                kind: row.kind().to_owned(),
                effect: row.describe_effect(),
                defined_in: row.describe_place(),
                is_enabled: inactive_reason.is_none(),
                inactive_reason,
                runs: found.map_or(0, |(metrics, _)| metrics.count_ended_runs()),
                failures: found.map_or(0, |(metrics, _)| metrics.failure + metrics.timed_out + metrics.errors),
                p50_ms: found.and_then(|(metrics, _)| metrics.duration_percentile(50)),
                p95_ms: found.and_then(|(metrics, _)| metrics.duration_percentile(95)),
                last_outcome: outcome.map(|(_, word)| word.to_owned()),
                last_tone: outcome.map_or(Tone::Faint, |(tone, _)| tone),
                last_at: last.and_then(HookRunRecord::start_or_end_time).map(|at| at.millis()),
            });
        }
    }
    Ok(HookPage {
        trust: state.state_name().to_owned(),
        is_trusted: trust::is_config_effective(&opened.project, &config, opened.trust)?,
        hooks,
    })
}
