//! `windlass trust`: shows the programs of a project's configuration and the holdings of a foreign store, and records that a
//! person trusts them.

mod foreign_store;
mod holdings;
mod runnable_workflow;

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};
use windlass_app::context::CommandContext;
use windlass_app::person::require_person;
use windlass_app::project::Project;
use windlass_app::store_records::{self, StoreMarks};
use windlass_app::trust::{self, TrustState};
use windlass_app::{Failure, FailureCode, hints, workflows};
use windlass_config::workflow::{WorkflowDefinition, WorkflowLibrary};
use windlass_config::{AgentCommandSetting, Config, ConfiguredEffect};
use windlass_store::{SqliteStore, StoreError};
use windlass_text as text;

use self::foreign_store::ForeignStore;
use self::holdings::StoreHolding;
use self::runnable_workflow::RunnableWorkflow;
use crate::commands::{self, confirmation};
use crate::output::{CommandResult, Output, TextTone};
use crate::show;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass trust             show what would run and what a foreign store holds
  windlass trust --yes       trust without asking
  windlass trust --show      only show what would run, and whether it is trusted
  windlass trust --revoke    forget the decision

The first command asks before it trusts.")]
pub struct Args {
    /// Trust without asking
    #[arg(long, conflicts_with_all = ["show", "revoke"])]
    yes: bool,
    /// Show what would run and whether it is trusted, and change nothing
    #[arg(long, conflicts_with = "revoke")]
    show: bool,
    /// Forget the decision
    #[arg(long)]
    revoke: bool,
}

pub fn run_trust(context: &CommandContext, args: Args, out: &mut Output) -> CommandResult {
    let project = context.find_project()?;
    if args.revoke {
        require_person(&project)?;
        return revoke_trust(&project, out);
    }
    let config = Config::load(&project.root)?;
    let state = trust::find_trust_state(&project, &config)?;
    let store = ForeignStore::inspect_store(&project)?;
    if args.show {
        return show_trust_state(&project, (&config, state), store.as_ref(), out);
    }
    if state == TrustState::Trusted && store.is_none() {
        return report_trust_state(&project, state, "is trusted already", out);
    }
    require_person(&project)?;
    // A workflow that can never run is an error, not a matter of trust.
    workflows::check_workflow_hooks(&project, &config)?;
    let seen = config.trust_digest()?;
    if !args.yes {
        ask_for_trust(&project, (&config, state), store.as_ref(), out)?;
    }
    trust::grant_trust(&project, &config, seen)?;
    store.map_or(Ok(()), |store| store.adopt_store(&project))?;
    report_trust_state(&project, TrustState::Trusted, "is trusted", out)
}

fn revoke_trust(project: &Project, out: &mut Output) -> CommandResult {
    let (configuration, store) = (trust::revoke_trust(project)?, store_records::revoke_store_trust(project)?);
    let sentence = if configuration || store { "is no longer trusted" } else { "was not trusted" };
    report_trust_state(project, TrustState::Never, sentence, out)
}

fn show_trust_state(
    project: &Project,
    (config, state): (&Config, TrustState),
    store: Option<&ForeignStore>,
    out: &mut Output,
) -> CommandResult {
    if out.is_json() {
        return out.print_json(&json!({
            "project": project.root.to_string_lossy(),
            "trust": state.state_name(),
            "runs": config.list_effects().iter().map(effect_to_json).collect::<Vec<_>>(),
            "sets": config.top_level_keys(),
            "workflows": RunnableWorkflow::load_runnable(project, config)?.iter().map(RunnableWorkflow::to_json).collect::<Vec<_>>(),
            "agent_commands": match allowed_agent_commands(config) {
                AgentCommandSetting::Allow => "allow",
                AgentCommandSetting::Named => "named",
                AgentCommandSetting::Deny => "deny",
            },
            "foreign_store": store.map(|store| json!({
                "tracked": store.tracked,
                "holds": store.holdings.iter().map(StoreHolding::to_json).collect::<Vec<_>>(),
            })),
        }));
    }
    describe_trust(project, config, state, out)?;
    store.map_or(Ok(()), |store| store.print_holdings(out))
}

/// The keys whose values the description shows, or that start nothing.
const DESCRIBED_KEYS: &[&str] = &[
    "version",
    "hooks",
    "agent",
    "agents",
    "prompt",
    "prompt_file",
    "validation",
    "validators",
    "agent_commands",
    "briefs",
    "test_command",
    "notify",
    "secrets",
];

/// Returns the agents' own commands that the configuration allows.
fn allowed_agent_commands(config: &Config) -> AgentCommandSetting {
    config.agent_command_policy()
}

fn effect_to_json(effect: &ConfiguredEffect) -> Value {
    json!({"at": effect.place, "name": effect.name, "what": effect.what, "line": effect.line})
}

fn describe_trust(project: &Project, config: &Config, state: TrustState, out: &mut Output) -> CommandResult {
    let root = project.root.to_string_lossy();
    let (tone, sentence) = match state {
        TrustState::Trusted => (TextTone::Good, "trusted"),
        TrustState::Changed => (TextTone::Warning, "changed since it was trusted"),
        TrustState::Never => (TextTone::Warning, "never trusted"),
    };
    out.print_line(format_args!("{}  {}", text::clean_line(&root), out.paint(tone, sentence)))?;
    let effects = config.list_effects();
    let workflows = RunnableWorkflow::load_runnable(project, config)?;
    match effects.is_empty() && workflows.is_empty() {
        true => out.print_line("Its configuration runs nothing.")?,
        false => out.print_line("Its configuration would run:")?,
    }
    for effect in &effects {
        let title = effect.display_title();
        let line = effect.line.map(|line| format!(" (line {line})")).unwrap_or_default();
        out.print_line(format_args!(
            "  {}{}",
            out.paint(TextTone::Name, text::clean_line(&title)),
            out.paint(TextTone::Faint, line)
        ))?;
        // The text is not cut, because a person has to judge all of it.
        out.print_line(format_args!("      {}", text::clean_line(&effect.what)))?;
    }
    workflows.iter().try_for_each(|workflow| workflow.print_workflow(out))?;
    let silent: Vec<String> =
        config.top_level_keys().into_iter().filter(|key| !DESCRIBED_KEYS.contains(&key.as_str())).collect();
    if !silent.is_empty() {
        out.print_line(format_args!("It also sets {}.", text::clean_line(&silent.join(", "))))?;
    }
    // A configured `agent_commands` is among the effects. The default allows commands too, and is named here.
    let is_told = effects.iter().any(|effect| effect.place == "agent_commands");
    if allowed_agent_commands(config) == AgentCommandSetting::Allow && !is_told {
        out.print_line("Agents may run any command that they supply (`agent_commands: allow`, the default).")?;
    }
    Ok(())
}

/// Shows everything and continues only if a person agrees.
fn ask_for_trust(
    project: &Project,
    (config, state): (&Config, TrustState),
    store: Option<&ForeignStore>,
    out: &mut Output,
) -> CommandResult {
    if !confirmation::can_ask_person(out) {
        return Err(untrusted_failure("there is no terminal to ask on")
            .with_hint("`windlass trust --show` shows what would run, `windlass trust --yes` trusts it")
            .into());
    }
    describe_trust(project, config, state, out)?;
    store.map_or(Ok(()), |store| store.print_holdings(out))?;
    match confirmation::ask_yes_or_no("Trust it?", out)? {
        true => Ok(()),
        false => Err(untrusted_failure("the answer was no").into()),
    }
}

fn untrusted_failure(cause: &str) -> Failure {
    Failure::new(FailureCode::Trust, "the project stays untrusted").with_cause(cause)
}

fn report_trust_state(project: &Project, state: TrustState, sentence: &str, out: &mut Output) -> CommandResult {
    match out.is_json() {
        true => out.print_json(&json!({"project": project.root.to_string_lossy(), "trust": state.state_name()})),
        false => out.print_line(format_args!("{} {sentence}", text::clean_line(&project.root.to_string_lossy()))),
    }
}
