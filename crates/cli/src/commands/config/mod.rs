//! `windlass config`: checks the configuration and adds to it. It never runs any of it.

mod forge;
mod import;

use std::path::PathBuf;

use clap::Subcommand;
use serde_json::{Value, json};
use windlass_app::context::CommandContext;
use windlass_app::project::Project;
use windlass_app::{Failure, workflows};
use windlass_config as config;
use windlass_config::workflow::WorkflowLibrary;
use windlass_config::{Config, ConfigWarning, plan};
use windlass_engine::HookPoint;
use windlass_runner::test_command;
use windlass_text as text;

use crate::output::{CommandResult, Output, TextTone};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass config check                      check the project's configuration
  windlass config check other.yaml           check another file
  windlass config schema > windlass.json     a JSON Schema, for your editor
  windlass config import .claude/settings.json  import an agent's hooks")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check the configuration without running anything
    #[command(after_help = "Examples:
  windlass config check                      check the project's configuration
  windlass config check other.yaml           check another file")]
    Check {
        /// The file to check [default: the project's]
        file: Option<PathBuf>,
    },
    /// Print the JSON Schema of the configuration
    #[command(after_help = "Examples:
  windlass config schema > windlass.json     for your editor")]
    Schema,
    /// Import hooks from agent settings or another system
    Import(import::Args),
}

pub fn run_config_command(context: &CommandContext, args: Args, out: &mut Output) -> CommandResult {
    match args.command {
        Command::Check { file: Some(file) } => {
            let config = Config::read_file(&context.directory.join(file)).map_err(Failure::from)?;
            report_config_check(&config, config.find_warnings(), out)
        }
        Command::Check { file: None } => {
            let project = context.find_project()?;
            let config = Config::load(&project.root)?;
            let mut warnings = config.find_warnings();
            warnings.extend(forge::check_forge_remote(&project, &config)?);
            warnings.extend(find_open_gates(&project, &config));
            check_workflows(&project, &config)?;
            report_config_check(&config, warnings, out)
        }
        Command::Import(args) => import::run_config_import(context, args, out),
        Command::Schema if out.is_json() => out.print_json(&config::config_schema()),
        Command::Schema => {
            let schema = serde_json::to_string_pretty(&config::config_schema()).expect("a schema has string keys");
            out.print_line(schema)
        }
    }
}

/// Fails with the first workflow that cannot be used, and names the others.
fn check_workflows(project: &Project, config: &Config) -> Result<(), Failure> {
    workflows::check_workflow_hooks(project, config)?;
    let mut wrong = WorkflowLibrary::load(Some(&project.root))?.unusable.into_iter().map(Failure::from);
    let Some(first) = wrong.next() else { return Ok(()) };
    Err(wrong.fold(first, |first, other| first.with_cause(format!("also wrong: {}", other.message))))
}

/// Returns a warning for each gate whose only checks are `run_tests`, where the project has no tests to run.
fn find_open_gates(project: &Project, config: &Config) -> Vec<ConfigWarning> {
    if config.settings.test_command.is_some() || test_command::detect_test_command(&project.root).is_some() {
        return Vec::new();
    }
    let warning = |(point, task_type): (HookPoint, Option<&str>)| {
        let whose = task_type.map(|name| format!(" for tasks of the type `{name}`")).unwrap_or_default();
        let message = format!(
            "nothing is checked at `{point}`{whose}: `run_tests` finds no tests in this project and can only skip"
        );
        let suggestion = Some("set `test_command` to the command that runs them".to_owned());
        ConfigWarning { place: None, message, suggestion }
    };
    config.find_test_gates().into_iter().map(warning).collect()
}

fn report_config_check(config: &Config, warnings: Vec<ConfigWarning>, out: &mut Output) -> CommandResult {
    config.prompt_template()?;
    if out.is_json() {
        return out.print_json(&config_to_json(config, warnings));
    }
    print_config_summary(config, out)?;
    for ConfigWarning { place, message, suggestion } in warnings {
        out.print_line("")?;
        let label = out.paint(TextTone::Warning, "warning");
        let place = place.map(|(line, column)| format!("line {line}, column {column}: ")).unwrap_or_default();
        out.print_line(format_args!("{label}  {place}{}", text::clean_line(&message)))?;
        if let Some(suggestion) = suggestion {
            out.print_line(format_args!("         {}", out.paint(TextTone::Faint, text::clean_line(&suggestion))))?;
        }
    }
    Ok(())
}

fn config_to_json(config: &Config, warnings: Vec<ConfigWarning>) -> Value {
    let warning = |ConfigWarning { place, message, suggestion }: ConfigWarning| {
        let (line, column) = place.unzip();
        json!({"line": line, "column": column, "message": message, "suggestion": suggestion})
    };
    let warnings: Vec<Value> = warnings.into_iter().map(warning).collect();
    let points: serde_json::Map<_, _> =
        config.count_hooks_by_point().into_iter().map(|(point, count)| (point.to_string(), count.into())).collect();
    json!({
        "file": config.file().to_string_lossy(),
        "ok": true,
        "exists": config.has_file(),
        "hooks": config.hooks.len(),
        "points": points,
        "taskTypes": config.task_types().map(|(name, _)| name).collect::<Vec<_>>(),
        "agent": config.settings.agent.as_ref().map(|agent| agent.as_str()),
        "agents": config.settings.agents.keys().collect::<Vec<_>>(),
        "validators": config.settings.validators.keys().collect::<Vec<_>>(),
        "effectfulHooks": config.effectful_hooks().len(),
        "warnings": warnings,
    })
}

fn print_config_summary(config: &Config, out: &mut Output) -> CommandResult {
    let file = config.file().to_string_lossy();
    let note = if config.has_file() { "" } else { " (no such file: every setting has its default)" };
    out.print_line(format_args!("{}  {}{note}", out.paint(TextTone::Good, "ok"), text::clean_line(&file)))?;
    let points: Vec<_> =
        config.count_hooks_by_point().into_iter().map(|(point, count)| format!("{count} at {point}")).collect();
    let task_types: Vec<_> = config.task_types().map(|(name, _)| text::clean_line(name).into_owned()).collect();
    let agents: Vec<_> = config.settings.agents.keys().map(|name| text::clean_line(name).into_owned()).collect();
    let agent: Vec<_> =
        config.settings.agent.iter().map(|agent| text::clean_line(agent.as_str()).into_owned()).collect();
    let rows = [("hooks", points), ("task types", task_types), ("agent", agent), ("agents", agents)];
    for (label, items) in rows.into_iter().filter(|(label, items)| *label != "agents" || !items.is_empty()) {
        let items = if items.is_empty() { "none".to_owned() } else { items.join(", ") };
        out.print_line(format_args!("    {} {items}", text::pad_to_width(label, 11)))?;
    }
    let rules = config.validation_rules();
    let rules: Vec<_> = rules.all_rules().map(|rule| text::clean_line(&rule.name)).collect();
    if !rules.is_empty() {
        out.print_line(format_args!("    {} {}", text::pad_to_width("validation", 11), rules.join(", ")))?;
    }
    let validators: Vec<_> = config.settings.validators.keys().map(|name| text::clean_line(name)).collect();
    if !validators.is_empty() {
        let unused = if config.runs_validators() { "" } else { " (never run: `agent_commands: deny`)" };
        out.print_line(format_args!("    {} {}{unused}", text::pad_to_width("validators", 11), validators.join(", ")))?;
    }
    let unused: Vec<&str> = plan::find_inactive_hooks(config).map(|hook| hook.name.as_str()).collect();
    if unused.is_empty() {
        return Ok(());
    }
    out.print_line("")?;
    out.print_line("these do not run, or only at some of their points:")?;
    let columns = out.columns().map_or(usize::MAX, |columns| columns.saturating_sub(4).max(20));
    for effect in config.effectful_hooks().iter().filter(|effect| unused.contains(&effect.name.as_str())) {
        out.print_line(format_args!("  {}", text::clean_line(&effect.display_title())))?;
        out.print_line(format_args!("    {}", out.paint(TextTone::Faint, text::fit_to_width(&effect.what, columns))))?;
    }
    Ok(())
}
