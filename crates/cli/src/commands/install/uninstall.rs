//! `windlass uninstall AGENT`: removes the entries of `install` from an agent's settings.

use serde_json::json;
use windlass_app::Failure;
use windlass_app::context::CommandContext;
use windlass_bridge::BridgeAgent;
use windlass_bridge::settings::{self, SettingsFile, SettingsScope};

use super::settings_change::SettingsChange;
use super::{
    InstallOutcome, InstallTarget, WriteConsent, build_install_report, confirm_and_write, installations, scope_parser,
};
use crate::commands::confirmation;
use crate::output::{CommandResult, Output, TextTone};
use crate::usage;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass uninstall claude               show the changes, and ask
  windlass uninstall codex --yes          remove the entries without asking
  windlass uninstall kimi --scope user    change your settings

A file without later changes is restored to the byte. From any other file, only the Windlass entries are \
removed.")]
pub struct Args {
    /// The agent to remove the entries from
    #[arg(value_parser = usage::name_parser::<BridgeAgent>(BridgeAgent::ALL.iter().map(|agent| agent.name())))]
    agent: BridgeAgent,
    /// The settings to change: of the project, or yours for all projects
    #[arg(long, value_parser = scope_parser(), default_value = "project")]
    scope: SettingsScope,
    #[command(flatten)]
    consent: WriteConsent,
}

pub fn run_uninstall(context: &CommandContext, args: &Args, out: &mut Output) -> CommandResult {
    let target = InstallTarget::find(context, args.agent, args.scope, "uninstall")?;
    let changes = plan_removals(&target)?;
    args.consent.check_changes_writable(&changes)?;
    let is_silent = !confirmation::can_ask_person(out);
    let done = confirm_and_write(&changes, args.consent, is_silent, out)?;
    if out.is_json() {
        return out.print_json(&build_install_report(&target, &changes, done, &json!({})));
    }
    let title = args.agent.title();
    match done {
        InstallOutcome::Shown => out.print_line("Nothing was written: this is a preview."),
        InstallOutcome::Nothing => {
            out.print_line(format_args!("{title} has no Windlass entries in its settings. Nothing was changed."))
        }
        InstallOutcome::Written => {
            let good = out.paint(TextTone::Good, "uninstalled");
            out.print_line(format_args!("{good}: {title} does not call Windlass any more"))
        }
    }
}

fn plan_removals(target: &InstallTarget) -> Result<Vec<SettingsChange>, Failure> {
    let removing = |server: bool| {
        let change =
            |file: &SettingsFile| SettingsChange::plan_removal(file, target.scope, target.project.as_ref(), server);
        target
            .files
            .iter()
            .filter(|file| !is_used_by_other_agent(target, file))
            .map(change)
            .collect::<Result<Vec<_>, _>>()
    };
    let changes = removing(false)?;
    // If any file has a record, a server of our name in a file without one is the person's own.
    if changes.iter().any(SettingsChange::has_record) { Ok(changes) } else { removing(true) }
}

/// Returns whether another agent that calls Windlass reads the same file.
fn is_used_by_other_agent(target: &InstallTarget, file: &SettingsFile) -> bool {
    let sharers = settings::agents_sharing_file(file, target.scope);
    sharers.into_iter().any(|agent| installations::has_installed_hooks(agent, target.scope, target.project.as_ref()))
}
