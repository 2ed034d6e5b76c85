//! `windlass hooks list`: prints the hooks that would run at each point.

use serde_json::json;
use windlass_app::context::CommandContext;
use windlass_app::{Failure, FailureCode};
use windlass_config::Config;
use windlass_config::listing::{HookListing, WorkSubject, list_planned_hooks};
use windlass_engine::{EventType, HookPoint, HookScope, TaskId};
use windlass_expr::nearest_name;
use windlass_text as text;

use crate::output::{CommandResult, Output, TextTone};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass hooks list                          hooks for a task without a type
  windlass hooks list --type product           hooks for a task of this type
  windlass hooks list --point stop --json
  windlass hooks list --task T3                stop hooks of this task

Hooks of the registry run inside the commit of their event, all others after it; both in order of priority, \
lowest first. A hook that can never run is marked with the reason.")]
pub struct Args {
    /// Show only this point
    #[arg(long, value_name = "POINT", value_parser = super::parse_point_argument)]
    point: Option<HookPoint>,
    /// Show the hooks for a task of this type
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// Show the hooks while this agent works
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Show only the stop hooks of this task
    #[arg(long, value_name = "ID", conflicts_with_all = ["point", "kind", "agent"])]
    pub task: Option<TaskId>,
}

pub fn run_hooks_list(context: &CommandContext, args: Args, out: &mut Output) -> CommandResult {
    let project = context.find_project()?;
    let config = Config::load(&project.root)?;
    let who = WorkSubject {
        kind: check_known_name(args.kind, "task type", &task_type_names(&config))?,
        agent: check_known_name(args.agent, "agent", &agent_names(&config))?,
    };
    let mut all = list_planned_hooks(&config, &who).map_err(Failure::from)?;
    all.retain(|planned| args.point.as_ref().is_none_or(|point| planned.point == *point));
    if out.is_json() {
        return all.iter().try_for_each(|planned| out.print_json(&hook_listing_to_json(planned)));
    }
    if all.is_empty() {
        out.print_line("nothing would run")?;
    }
    for planned in &all {
        show_hook_listing(planned, out)?;
    }
    show_other_listings(&config, &who, out)
}

fn task_type_names(config: &Config) -> Vec<&str> {
    config.task_types().map(|(name, _)| name).collect()
}

pub(super) fn agent_names(config: &Config) -> Vec<&str> {
    config.settings.agents.keys().map(String::as_str).collect()
}

/// Checks that the configuration knows a name.
pub(super) fn check_known_name(name: Option<String>, what: &str, names: &[&str]) -> Result<Option<String>, Failure> {
    let Some(name) = name else { return Ok(None) };
    if names.contains(&name.as_str()) {
        return Ok(Some(name));
    }
    let failure =
        Failure::new(FailureCode::NotFound, format!("the configuration has no {what} `{}`", text::clean_line(&name)));
    Err(match (nearest_name(&name, names), names) {
        (Some(near), _) => failure.with_hint(format!("did you mean `{near}`?")),
        (None, []) => failure.with_hint(format!("it has no {what}s at all")),
        (None, names) => failure.with_hint(format!("it has {}", names.join(", "))),
    })
}

fn hook_listing_to_json(planned: &HookListing<'_>) -> serde_json::Value {
    json!({
        "point": planned.point.name(),
        "event": planned.event.map(|event| event.name()),
        "gate": planned.point.is_gate(),
        "bridge": planned.point.event_types().contains(&EventType::BridgeCalled),
        "hooks": planned.rows.iter().map(|row| row.to_json(&planned.point)).collect::<Vec<_>>(),
    })
}

fn show_hook_listing(planned: &HookListing<'_>, out: &mut Output) -> CommandResult {
    let gate = match planned.event {
        _ if planned.point.is_gate() => " (gate)",
        Some(EventType::BridgeCalled) => " (where an agent's own hook system calls)",
        _ => "",
    };
    out.print_line(format_args!(
        "{}{}",
        out.paint(TextTone::Name, planned.point.name()),
        out.paint(TextTone::Faint, gate)
    ))?;
    let width = planned.rows.iter().map(|row| text::clean_line(row.name()).chars().count()).max().unwrap_or(0).min(32);
    for row in &planned.rows {
        let (name, place) =
            (text::pad_to_width(&text::clean_line(row.name()), width), format!("({})", row.describe_place()));
        let (what, place) = (text::clean_line(&row.describe_effect()).into_owned(), out.paint(TextTone::Faint, place));
        let priority = row.priority().map(|priority| priority.to_string()).unwrap_or_default();
        out.print_line(format_args!("  {priority:>4}  {name}  {what}  {place}"))?;
        if let Some(silence) = row.inactive_reason(&planned.point) {
            let silence = out.paint(TextTone::Warning, format!("never runs: {silence}"));
            out.print_line(format_args!("        {}  {silence}", text::pad_to_width("", width)))?;
        }
    }
    Ok(())
}

/// Names the task types and agents that have hooks of their own.
fn show_other_listings(config: &Config, who: &WorkSubject, out: &mut Output) -> CommandResult {
    let of_type = |kind: &&str| config.task_type_overrides().any(|(owner, _)| owner == *kind);
    let kinds: Vec<&str> = task_type_names(config).into_iter().filter(of_type).collect();
    if !kinds.is_empty() && who.kind.is_none() {
        let line = format!("Types of tasks with hooks of their own: {} (--type)", kinds.join(", "));
        out.print_line(out.paint(TextTone::Faint, line))?;
    }
    let of_agent = |name: &&str| config.hooks.iter().any(|hook| hook.scope == HookScope::Agent((*name).to_owned()));
    let agents: Vec<&str> = agent_names(config).into_iter().filter(of_agent).collect();
    if !agents.is_empty() && who.agent.is_none() {
        let line = format!("Agents with hooks of their own: {} (--agent)", agents.join(", "));
        out.print_line(out.paint(TextTone::Faint, line))?;
    }
    Ok(())
}
