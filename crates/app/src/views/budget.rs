//! Budgets: the limits of cost and tokens that sessions have, and what the open ones have used of theirs.

use schemars::JsonSchema;
use serde::Serialize;
use windlass_config::{Config, plan};
use windlass_engine::SessionTerms;

use super::usage::UsageTotals;
use crate::context::OpenedProject;
use crate::{Failure, hints};

/// The most sessions of a report.
const MAX_SESSIONS: usize = 200;

/// The most that a session may use; without a limit if absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BudgetLimits {
    /// In US dollars.
    pub cost_usd: Option<f64>,
    /// Tokens, read and written.
    pub tokens: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionBudget {
    pub session: String,
    pub task: Option<String>,
    pub agent: String,
    /// The limits that the session was started with.
    pub limits: BudgetLimits,
    pub usage: UsageTotals,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BudgetReport {
    /// The limits of the next session, as the configuration has them.
    pub limits: BudgetLimits,
    /// The open sessions with a limit, newest first.
    pub sessions: Vec<SessionBudget>,
}

impl BudgetLimits {
    #[expect(clippy::cast_precision_loss, reason = "millionths of a dollar fit far beyond any budget")]
    fn from_terms(terms: &SessionTerms) -> Self {
        Self { cost_usd: terms.cost.map(|cost| cost.0 as f64 / 1e6), tokens: terms.tokens }
    }

    fn is_empty(self) -> bool {
        self == Self::default()
    }
}

/// Loads the budgets. A configuration that cannot be read sets none.
pub(super) fn load_budget_report(opened: &OpenedProject) -> Result<BudgetReport, Failure> {
    let config = Config::load(&opened.project.root).ok();
    let limits = config.map(|config| BudgetLimits::from_terms(&plan::session_terms(&config, None)));
    let snapshot = opened.store.begin_snapshot().map_err(hints::store_failure)?;
    let open = snapshot.open_sessions().map_err(hints::store_failure)?;
    let budgets = open.into_iter().map(|session| SessionBudget {
        session: session.name.to_string(),
        task: session.task.map(|task| task.to_string()),
        limits: BudgetLimits::from_terms(&session.terms),
        usage: UsageTotals::from_usage(session.watch.used, session.iteration.into()),
        agent: session.agent,
    });
    Ok(BudgetReport {
        limits: limits.unwrap_or_default(),
        sessions: budgets.filter(|budget| !budget.limits.is_empty()).take(MAX_SESSIONS).collect(),
    })
}
