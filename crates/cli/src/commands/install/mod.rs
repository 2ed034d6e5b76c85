//! `windlass install AGENT`: makes an agent's own hook system call Windlass.
//!
//! ```text
//! files of the agent ─► a change for each ─► shown ─► a person agrees ─► the old text is recorded ─► written
//! ```
//!
//! Invariants:
//! - The command writes nothing that it has not shown, unless `--yes` is given.
//! - It writes all files, or none.
//! - It refuses an agent that already calls through the settings of the other scope, so that no agent calls twice.
//!
//! Not here: the text of the entries (`bridge::settings`).

mod advice;
pub mod installations;
mod program;
mod settings_change;
mod settings_location;
mod settings_record;
pub mod uninstall;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde_json::{Value, json};
use settings_change::SettingsChange;
use windlass_app::context::CommandContext;
use windlass_app::project::Project;
use windlass_app::{Failure, FailureCode};
use windlass_bridge::settings::{self, SettingsFile, SettingsScope};
use windlass_bridge::{AgentHookEvent, BridgeAgent};
use windlass_text as text;

use crate::commands::confirmation;
use crate::output::{CommandResult, EarlyExit, Output, TextTone};
use crate::usage;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass install claude                 show the changes, and ask
  windlass install codex --yes            write without asking
  windlass install gemini --mcp           also set up the tools over MCP
  windlass install kimi --scope user      write your settings, for all projects
  windlass install copilot --dry-run      only show the changes")]
pub struct Args {
    /// The agent to set up
    #[arg(value_parser = usage::name_parser::<BridgeAgent>(BridgeAgent::ALL.iter().map(|agent| agent.name())))]
    agent: BridgeAgent,
    /// The settings to write: of the project, or yours for all projects
    #[arg(long, value_parser = scope_parser(), default_value = "project")]
    scope: SettingsScope,
    /// Also set up `windlass mcp` as an MCP server
    #[arg(long)]
    mcp: bool,
    #[command(flatten)]
    consent: WriteConsent,
}

fn scope_parser() -> impl TypedValueParser<Value = SettingsScope> {
    PossibleValuesParser::new(["project", "user"])
        .map(|name| if name == SettingsScope::User.name() { SettingsScope::User } else { SettingsScope::Project })
}

// Not a doc comment: clap would show it as the help text of the command.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct WriteConsent {
    /// Write without asking
    #[arg(long, conflicts_with = "dry_run")]
    yes: bool,
    /// Show the changes, but do not write them
    #[arg(long)]
    dry_run: bool,
}

impl WriteConsent {
    /// Checks that the changes can be written, before they are shown or asked about.
    fn check_changes_writable(self, changes: &[SettingsChange]) -> Result<(), Failure> {
        if self.dry_run { Ok(()) } else { settings_change::check_writable(changes) }
    }
}

/// An agent and the settings files of one scope.
#[derive(Debug)]
struct InstallTarget {
    agent: BridgeAgent,
    scope: SettingsScope,
    project: Option<Project>,
    files: Vec<SettingsFile>,
}

impl InstallTarget {
    fn find(context: &CommandContext, agent: BridgeAgent, scope: SettingsScope, verb: &str) -> Result<Self, Failure> {
        let project = match scope {
            SettingsScope::User => context.find_project().ok(),
            SettingsScope::Project => Some(context.find_project().map_err(|failure| match failure.code {
                FailureCode::NoProject => failure.with_hint(format!(
                    "`windlass init` makes one here, and `windlass {verb} {agent} --scope user` is for all projects"
                )),
                _ => failure,
            })?),
        };
        let files = settings::settings_files(agent, scope);
        if files.is_empty() {
            let title = agent.title();
            return Err(Failure::new(FailureCode::Usage, format!("{title} has no project settings"))
                .with_cause("it reads hooks only from user settings")
                .with_hint(format!("`windlass {verb} {agent} --scope user` is for all projects")));
        }
        Ok(Self { agent, scope, project, files })
    }

    /// Refuses an agent that already calls through the other scope: agents use both, and every stop would be judged twice.
    fn check_other_scope(&self) -> Result<(), Failure> {
        let Self { agent, project, .. } = self;
        let Some((other, path)) = installations::find_other_scope_install(*agent, self.scope, project.as_ref()) else {
            return Ok(());
        };
        let title = agent.title();
        Err(Failure::new(FailureCode::Usage, format!("{title} calls Windlass already, by `{}`", path.display()))
            .with_cause("with both, it would call twice at every event")
            .with_hint(format!("`windlass uninstall {agent} --scope {}` removes that", other.name())))
    }
}

pub fn run_install(context: &CommandContext, args: &Args, out: &mut Output) -> CommandResult {
    let target = InstallTarget::find(context, args.agent, args.scope, "install")?;
    target.check_other_scope()?;
    let named = program::choose_program_reference()?;
    let plan = |server: bool| -> Result<Vec<SettingsChange>, Failure> {
        let wanted = target.files.iter().filter(|file| server || file.has_hooks());
        let project = target.project.as_ref();
        wanted
            .map(|file| SettingsChange::plan_installation(file, target.scope, project, &named.program, server))
            .collect()
    };
    let mut changes = plan(args.mcp)?;
    args.consent.check_changes_writable(&changes)?;
    let is_silent = !confirmation::can_ask_person(out);
    if !args.mcp && !is_silent && !args.consent.yes && !args.consent.dry_run {
        let more = plan(true)?;
        let question = "Have it start the MCP server `windlass mcp` too, for tasks and iterations?";
        if differ_in_effect(&changes, &more) && confirmation::ask_yes_or_no(question, out)? {
            args.consent.check_changes_writable(&more)?;
            changes = more;
        }
    }
    let title = args.agent.title();
    if !out.is_json() && !changes.iter().all(SettingsChange::is_unchanged) {
        out.print_line(format_args!(
            "{title} will call `{}`: {}",
            text::clean_line(&named.program.word),
            text::clean_line(&named.why)
        ))?;
        out.print_line("")?;
    }
    let done = confirm_and_write(&changes, args.consent, is_silent, out)?;
    let next = if done == InstallOutcome::Shown {
        Vec::new()
    } else {
        let server =
            changes.iter().any(|change| change.new.as_deref().is_some_and(|text| has_mcp_server(&target, text)));
        advice::list_next_steps(&target, &named.program, done == InstallOutcome::Written, server)
    };
    let moments =
        AgentHookEvent::ALL.iter().filter(|moment| settings::settings_event_name(args.agent, **moment).is_some());
    let moments: Vec<_> = moments.map(|moment| moment.point_name().name()).collect();
    if out.is_json() {
        let more = json!({"program": named.program.word, "why": named.why, "moments": moments, "next": next});
        return out.print_json(&build_install_report(&target, &changes, done, &more));
    }
    match done {
        InstallOutcome::Shown => return out.print_line("Nothing was written: this is a preview."),
        InstallOutcome::Nothing => out.print_line(format_args!("{title} is set up already. Nothing was changed."))?,
        InstallOutcome::Written => {
            let good = out.paint(TextTone::Good, "installed");
            out.print_line(format_args!("{good}: {title} calls Windlass at {}", moments.join(", ")))?;
        }
    }
    next.iter().try_for_each(|step| out.print_line(format_args!("  {}", text::clean_line(step))))
}

/// Returns whether `text`, of one of the target's files, has our MCP server.
fn has_mcp_server(target: &InstallTarget, text: &str) -> bool {
    target.files.iter().any(|file| file.has_our_server(text))
}

/// Returns whether two lists of changes write different texts.
fn differ_in_effect(some: &[SettingsChange], more: &[SettingsChange]) -> bool {
    let texts = |changes: &[SettingsChange]| -> Vec<_> {
        let real = changes.iter().filter(|change| !change.is_unchanged());
        real.map(|change| (change.place.real.clone(), change.new.clone())).collect()
    };
    texts(some) != texts(more)
}

/// The result of an installation or a removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InstallOutcome {
    Nothing,
    Shown,
    Written,
}

/// Shows the changes, asks, and writes them.
fn confirm_and_write(
    changes: &[SettingsChange],
    consent: WriteConsent,
    is_silent: bool,
    out: &mut Output,
) -> Result<InstallOutcome, EarlyExit> {
    if changes.iter().all(SettingsChange::is_unchanged) {
        return Ok(InstallOutcome::Nothing);
    }
    if !out.is_json() {
        changes.iter().filter(|change| !change.is_unchanged()).try_for_each(|change| change.print_diff(out))?;
    }
    if consent.dry_run {
        return Ok(InstallOutcome::Shown);
    }
    if !consent.yes {
        let refused = |cause: &str| Failure::new(FailureCode::Usage, "nothing was written").with_cause(cause);
        if is_silent {
            let hint = "--yes writes without asking, and --dry-run only shows";
            return Err(refused("there is no terminal to ask on").with_hint(hint).into());
        }
        if !confirmation::ask_yes_or_no("Write it?", out)? {
            return Err(refused("the answer was no").into());
        }
    }
    settings_change::write_all_changes(changes)?;
    Ok(InstallOutcome::Written)
}

fn build_install_report(
    target: &InstallTarget,
    changes: &[SettingsChange],
    outcome: InstallOutcome,
    more: &Value,
) -> Value {
    let file = |change: &SettingsChange| {
        let diff: Vec<_> = change.diff_lines().into_iter().map(|(_, row)| row).collect();
        json!({"path": change.place.path.to_string_lossy(), "change": change.change_kind(), "diff": diff})
    };
    let mut report = json!({
        "agent": target.agent.name(),
        "scope": target.scope.name(),
        "written": outcome == InstallOutcome::Written,
        "files": changes.iter().map(file).collect::<Vec<_>>(),
    });
    if let (Some(report), Some(more)) = (report.as_object_mut(), more.as_object()) {
        report.extend(more.clone());
    }
    report
}
