//! `windlass uninstall AGENT`: removes the entries of `install` from an agent's settings.

use serde_json::json;
use windlass_app::Failure;
use windlass_app::context::Context;
use windlass_bridge::Agent;
use windlass_bridge::settings::{self, Scope, SettingsFile};

use super::change::Change;
use super::{Consent, Outcome, Target, report, scope_parser, settle, status};
use crate::commands::confirm;
use crate::output::{Done, Output, Tone};
use crate::usage;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass uninstall claude               show what would be taken away, and ask
  windlass uninstall codex --yes          take it away without being asked
  windlass uninstall kimi --scope user    out of your own settings

A file without later changes is restored to the byte; from any other only our entries are removed.")]
pub struct Args {
    /// The agent that is not to call any more
    #[arg(value_parser = usage::one_of::<Agent>(Agent::ALL.iter().map(|agent| agent.name())))]
    agent: Agent,
    /// Whose settings: the project's, or your own for all projects
    #[arg(long, value_parser = scope_parser(), default_value = "project")]
    scope: Scope,
    #[command(flatten)]
    consent: Consent,
}

pub fn run(context: &Context, args: &Args, out: &mut Output) -> Done {
    let target = Target::find(context, args.agent, args.scope, "uninstall")?;
    let changes = plan(&target)?;
    args.consent.check(&changes)?;
    let is_silent = !confirm::can_ask(out);
    let done = settle(&changes, args.consent, is_silent, out)?;
    if out.is_json() {
        return out.object(&report(&target, &changes, done, &json!({})));
    }
    let title = args.agent.title();
    match done {
        Outcome::Shown => out.line("Nothing was written: this is what it would be."),
        Outcome::Nothing => out.line(format_args!("{title} has nothing of ours in its settings. Nothing was changed.")),
        Outcome::Written => {
            let good = out.paint(Tone::Good, "uninstalled");
            out.line(format_args!("{good}: {title} does not call Windlass any more"))
        }
    }
}

fn plan(target: &Target) -> Result<Vec<Change>, Failure> {
    let removing = |server: bool| {
        let change = |file: &SettingsFile| Change::removing(file, target.scope, target.project.as_ref(), server);
        target.files.iter().filter(|file| !is_needed(target, file)).map(change).collect::<Result<Vec<_>, _>>()
    };
    let changes = removing(false)?;
    // If any file has a record, a server of our name in a file without one is the person's own.
    if changes.iter().any(Change::is_known) { Ok(changes) } else { removing(true) }
}

/// Returns whether another agent that calls Windlass reads the same file.
fn is_needed(target: &Target, file: &SettingsFile) -> bool {
    let sharers = settings::sharers(file, target.scope);
    sharers.into_iter().any(|agent| status::calls(agent, target.scope, target.project.as_ref()))
}
