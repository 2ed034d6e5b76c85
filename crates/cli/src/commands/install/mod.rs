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
mod change;
mod place;
mod program;
mod record;
pub mod status;
pub mod uninstall;

use change::Change;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde_json::{Value, json};
use windlass_app::context::Context;
use windlass_app::project::Project;
use windlass_app::{Code, Failure};
use windlass_bridge::settings::{self, Scope, SettingsFile};
use windlass_bridge::{Agent, AgentHookEvent};
use windlass_text as text;

use crate::commands::confirm;
use crate::output::{Done, Output, Stop, Tone};
use crate::usage;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass install claude                 show what would be written, and ask
  windlass install codex --yes            write it without being asked
  windlass install gemini --mcp           the tools over MCP too
  windlass install kimi --scope user      in your own settings, for all projects
  windlass install copilot --dry-run      only show")]
pub struct Args {
    /// The agent that is to call
    #[arg(value_parser = usage::one_of::<Agent>(Agent::ALL.iter().map(|agent| agent.name())))]
    agent: Agent,
    /// Whose settings: the project's, or your own for all projects
    #[arg(long, value_parser = scope_parser(), default_value = "project")]
    scope: Scope,
    /// Have the agent start `windlass mcp` as an MCP server too
    #[arg(long)]
    mcp: bool,
    #[command(flatten)]
    consent: Consent,
}

fn scope_parser() -> impl TypedValueParser<Value = Scope> {
    PossibleValuesParser::new(["project", "user"])
        .map(|name| if name == Scope::User.name() { Scope::User } else { Scope::Project })
}

// Not a doc comment: clap would show it as the help text of the command.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct Consent {
    /// Write without being asked
    #[arg(long, conflicts_with = "dry_run")]
    yes: bool,
    /// Only show what would be written
    #[arg(long)]
    dry_run: bool,
}

impl Consent {
    /// Checks that the changes can be written, before they are shown or asked about.
    fn check(self, changes: &[Change]) -> Result<(), Failure> {
        if self.dry_run { Ok(()) } else { change::check_writable(changes) }
    }
}

/// An agent and the settings files of one scope.
#[derive(Debug)]
struct Target {
    agent: Agent,
    scope: Scope,
    project: Option<Project>,
    files: Vec<SettingsFile>,
}

impl Target {
    fn find(context: &Context, agent: Agent, scope: Scope, verb: &str) -> Result<Self, Failure> {
        let project = match scope {
            Scope::User => context.project().ok(),
            Scope::Project => Some(context.project().map_err(|failure| match failure.code {
                Code::NoProject => failure.hint(format!(
                    "`windlass init` makes one here, and `windlass {verb} {agent} --scope user` is for all projects"
                )),
                _ => failure,
            })?),
        };
        let files = settings::files(agent, scope);
        if files.is_empty() {
            let title = agent.title();
            return Err(Failure::new(Code::Usage, format!("{title} has no settings of a project"))
                .caused_by("it reads hooks from the settings of a person alone")
                .hint(format!("`windlass {verb} {agent} --scope user` is for all projects")));
        }
        Ok(Self { agent, scope, project, files })
    }

    /// Refuses an agent that already calls through the other scope: agents use both, and every stop would be judged twice.
    fn check_alone(&self) -> Result<(), Failure> {
        let Self { agent, project, .. } = self;
        let Some((other, path)) = status::calling_elsewhere(*agent, self.scope, project.as_ref()) else {
            return Ok(());
        };
        let title = agent.title();
        Err(Failure::new(Code::Usage, format!("{title} calls Windlass already, by `{}`", path.display()))
            .caused_by("with both it would call twice at every moment")
            .hint(format!("`windlass uninstall {agent} --scope {}` takes that away", other.name())))
    }
}

pub fn run(context: &Context, args: &Args, out: &mut Output) -> Done {
    let target = Target::find(context, args.agent, args.scope, "install")?;
    target.check_alone()?;
    let named = program::name()?;
    let plan = |server: bool| -> Result<Vec<Change>, Failure> {
        let wanted = target.files.iter().filter(|file| server || file.has_hooks());
        let project = target.project.as_ref();
        wanted.map(|file| Change::adding(file, target.scope, project, &named.program, server)).collect()
    };
    let mut changes = plan(args.mcp)?;
    args.consent.check(&changes)?;
    let is_silent = !confirm::can_ask(out);
    if !args.mcp && !is_silent && !args.consent.yes && !args.consent.dry_run {
        let more = plan(true)?;
        let question = "Have it start the MCP server `windlass mcp` too, for tasks and iterations?";
        if differs(&changes, &more) && confirm::ask(question, out)? {
            args.consent.check(&more)?;
            changes = more;
        }
    }
    let title = args.agent.title();
    if !out.is_json() && !changes.iter().all(Change::is_nothing) {
        out.line(format_args!("{title} will call `{}`: {}", text::line(&named.program.word), text::line(&named.why)))?;
        out.line("")?;
    }
    let done = settle(&changes, args.consent, is_silent, out)?;
    let next = if done == Outcome::Shown {
        Vec::new()
    } else {
        let server = changes.iter().any(|change| change.new.as_deref().is_some_and(|text| has_server(&target, text)));
        advice::next(&target, &named.program, done == Outcome::Written, server)
    };
    let moments = AgentHookEvent::ALL.iter().filter(|moment| settings::event(args.agent, **moment).is_some());
    let moments: Vec<_> = moments.map(|moment| moment.point().name()).collect();
    if out.is_json() {
        let more = json!({"program": named.program.word, "why": named.why, "moments": moments, "next": next});
        return out.object(&report(&target, &changes, done, &more));
    }
    match done {
        Outcome::Shown => return out.line("Nothing was written: this is what it would be."),
        Outcome::Nothing => out.line(format_args!("{title} is set up already. Nothing was changed."))?,
        Outcome::Written => {
            let good = out.paint(Tone::Good, "installed");
            out.line(format_args!("{good}: {title} calls Windlass at {}", moments.join(", ")))?;
        }
    }
    next.iter().try_for_each(|step| out.line(format_args!("  {}", text::line(step))))
}

/// Returns whether `text`, of one of the target's files, has our MCP server.
fn has_server(target: &Target, text: &str) -> bool {
    target.files.iter().any(|file| file.has_our_server(text))
}

/// Returns whether two lists of changes write different texts.
fn differs(some: &[Change], more: &[Change]) -> bool {
    let texts = |changes: &[Change]| -> Vec<_> {
        let real = changes.iter().filter(|change| !change.is_nothing());
        real.map(|change| (change.place.real.clone(), change.new.clone())).collect()
    };
    texts(some) != texts(more)
}

/// The result of an installation or a removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Nothing,
    Shown,
    Written,
}

/// Shows the changes, asks, and writes them.
fn settle(changes: &[Change], consent: Consent, is_silent: bool, out: &mut Output) -> Result<Outcome, Stop> {
    if changes.iter().all(Change::is_nothing) {
        return Ok(Outcome::Nothing);
    }
    if !out.is_json() {
        changes.iter().filter(|change| !change.is_nothing()).try_for_each(|change| change.show(out))?;
    }
    if consent.dry_run {
        return Ok(Outcome::Shown);
    }
    if !consent.yes {
        let refused = |cause: &str| Failure::new(Code::Usage, "nothing was written").caused_by(cause);
        if is_silent {
            let hint = "--yes writes without asking, and --dry-run only shows";
            return Err(refused("nobody can be asked here").hint(hint).into());
        }
        if !confirm::ask("Write it?", out)? {
            return Err(refused("the answer was no").into());
        }
    }
    change::carry_out(changes)?;
    Ok(Outcome::Written)
}

fn report(target: &Target, changes: &[Change], outcome: Outcome, more: &Value) -> Value {
    let file = |change: &Change| {
        let diff: Vec<_> = change.diff().into_iter().map(|(_, row)| row).collect();
        json!({"path": change.place.path.to_string_lossy(), "change": change.name(), "diff": diff})
    };
    let mut report = json!({
        "agent": target.agent.name(),
        "scope": target.scope.name(),
        "written": outcome == Outcome::Written,
        "files": changes.iter().map(file).collect::<Vec<_>>(),
    });
    if let (Some(report), Some(more)) = (report.as_object_mut(), more.as_object()) {
        report.extend(more.clone());
    }
    report
}
