//! The holdings of a store that can act: programs to run, agents to start, prompts to send, paths to touch.

mod prompts;
mod recorded_configs;

use serde_json::{Value, json};
use windlass_engine::{EffectKind, Event, PendingEffect, RowChange, Seq, Session, StopHook, Task};
use windlass_store::{StoreError, StoreSurvey};
use windlass_text as text;

use crate::output::{CommandResult, Output, TextTone};

/// A holding: one thing in a store that can act.
pub struct StoreHolding {
    kind: &'static str,
    /// The task, session or event that it belongs to.
    about: String,
    what: String,
}

impl StoreHolding {
    pub fn to_json(&self) -> Value {
        json!({"kind": self.kind, "about": self.about, "what": self.what})
    }

    pub fn print_holding(&self, out: &mut Output) -> CommandResult {
        let title = format!("{} {}", self.kind, text::clean_line(&self.about));
        out.print_line(format_args!("  {}", out.paint(TextTone::Name, title)))?;
        // The text is not cut, because a person has to judge all of it.
        out.print_line(format_args!("      {}", text::clean_line(&self.what)))
    }
}

/// Lists everything in a store that can act.
pub fn list_holdings(survey: &StoreSurvey) -> Result<Vec<StoreHolding>, StoreError> {
    let mut holdings = Vec::new();
    let mut conversations = 0_usize;
    for row in &survey.rows {
        match row {
            RowChange::PutTask(task) => add_task_holdings(survey, task, &mut holdings)?,
            RowChange::PutSession(session) => holdings.extend(session_holding(session)),
            RowChange::PutEffect(effect) => holdings.push(effect_holding(effect)),
            RowChange::PutConversation(_) => conversations += 1,
            _ => {}
        }
    }
    holdings.extend(recorded_configs::list_recorded_configs(&survey.rows));
    holdings.extend(prompts::list_prompt_texts(survey)?);
    if conversations > 0 {
        let what = "send-backs of agents that call by their own hooks".to_owned();
        holdings.push(StoreHolding { kind: "conversations", about: conversations.to_string(), what });
    }
    Ok(holdings)
}

fn add_task_holdings(survey: &StoreSurvey, task: &Task, holdings: &mut Vec<StoreHolding>) -> Result<(), StoreError> {
    let id = task.id;
    for hook in &task.evaluation.hooks {
        let registered = survey.store.read_event(Seq(hook.id.0))?.map(|record| record.envelope.event);
        let Some(Event::HookRegistered(registered)) = registered else { continue };
        let what = match &registered.hook {
            StopHook::Command { command } => command.clone(),
            other => serde_json::to_string(other).unwrap_or_else(|_| other.to_string()),
        };
        let off = if hook.enabled { "" } else { " (disabled)" };
        holdings.push(StoreHolding { kind: "stop hook", about: format!("{} of {id}{off}", hook.id), what });
    }
    if let Some(series) = &task.evaluation.series {
        let started = survey.store.read_event(Seq(series.id.0))?.map(|record| record.envelope.event);
        let rules = match started {
            Some(Event::SeriesStarted(started)) => started.validation_rules,
            _ => Vec::new(),
        };
        holdings.extend(rules.iter().map(|rule| StoreHolding {
            kind: "validation rule",
            about: format!("{} of {id}", rule.name),
            what: serde_json::to_string(rule).unwrap_or_default(),
        }));
    }
    holdings.extend(task.workspace.iter().chain(&task.former_workspaces).map(|place| StoreHolding {
        kind: "worktree",
        about: format!("of {id}"),
        what: format!(".windlass/worktrees/{}, branch {}, for {}", place.name, place.branch, place.base),
    }));
    Ok(())
}

fn session_holding(session: &Session) -> Option<StoreHolding> {
    let what = format!("agent {}; {}", session.agent, session.goal.as_deref().unwrap_or("tasks of the store"));
    (!session.is_over()).then(|| StoreHolding { kind: "session to resume", about: session.name.to_string(), what })
}

fn effect_holding(effect: &PendingEffect) -> StoreHolding {
    let about = format!("of event {}", effect.id.seq);
    match &effect.kind {
        EffectKind::Turn { session, .. } => {
            StoreHolding { kind: "turn under way", about, what: format!("of the session {session}") }
        }
        EffectKind::Hook(hook) => {
            let kind = if effect.progress.is_some() { "workflow under way" } else { "pending hook" };
            let asked = serde_json::to_string(&effect.carried).unwrap_or_default();
            let asked = if effect.carried.is_empty() { String::new() } else { format!("; asked for {asked}") };
            StoreHolding { kind, about, what: format!("{} at {}{asked}", hook.hook, hook.point) }
        }
    }
}
