//! `windlass trust`: shows what a project's configuration would run, and records that a person allows it.

use serde_json::{Value, json};
use windlass_tools::validation::{AgentCommands, Standing};

use crate::commands::confirm;
use crate::config::{Config, Effect};
use crate::context::Context;
use crate::environment;
use crate::failure::{Code, Failure};
use crate::output::{Done, Output, Tone};
use crate::project::Project;
use crate::text;
use crate::trust::{self, Trust};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass trust             show what would run, and ask
  windlass trust --yes       trust without being asked
  windlass trust --show      only show what would run, and whether it is trusted
  windlass trust --revoke    forget the decision")]
pub struct Args {
    /// Trust without being asked
    #[arg(long, conflicts_with_all = ["show", "revoke"])]
    yes: bool,
    /// Show what would run and whether it is trusted; change nothing
    #[arg(long, conflicts_with = "revoke")]
    show: bool,
    /// Forget the decision
    #[arg(long)]
    revoke: bool,
}

pub fn run(context: &Context, args: Args, out: &mut Output) -> Done {
    let project = context.project()?;
    if args.revoke {
        return revoke(&project, out);
    }
    let config = Config::load(&project)?;
    let state = trust::state(&project, &config)?;
    if args.show {
        return show(&project, &config, state, out);
    }
    if state == Trust::Trusted {
        return finish(&project, state, "is trusted already", out);
    }
    if environment::run().is_some() || environment::debt().is_some() {
        return Err(refused("an agent or a hook asks, and only a person can trust")
            .hint("say it in a terminal of your own, outside the run")
            .into());
    }
    if !args.yes {
        ask(&project, &config, state, out)?;
    }
    trust::grant(&project, &config)?;
    finish(&project, Trust::Trusted, "is trusted", out)
}

fn revoke(project: &Project, out: &mut Output) -> Done {
    let sentence = if trust::revoke(project)? { "is no longer trusted" } else { "was not trusted" };
    finish(project, Trust::Never, sentence, out)
}

fn show(project: &Project, config: &Config, state: Trust, out: &mut Output) -> Done {
    if out.is_json() {
        return out.object(&json!({
            "project": project.root.to_string_lossy(),
            "trust": state.name(),
            "runs": config.effects().iter().map(as_json).collect::<Vec<_>>(),
            "workflows": config.workflows()?.iter().map(|workflow| &workflow.path).collect::<Vec<_>>(),
            "agent_commands": match agent_commands(config) {
                AgentCommands::Allow => "allow",
                AgentCommands::Named => "named",
                AgentCommands::Deny => "deny",
            },
        }));
    }
    describe(project, config, state, out)
}

/// Which commands of their own agents may have run.
fn agent_commands(config: &Config) -> AgentCommands {
    config.permission(Standing::Untrusted).agent_commands
}

fn as_json(effect: &Effect) -> Value {
    json!({"at": effect.place, "name": effect.name, "what": effect.what, "line": effect.line})
}

fn describe(project: &Project, config: &Config, state: Trust, out: &mut Output) -> Done {
    let root = project.root.to_string_lossy();
    let (tone, sentence) = match state {
        Trust::Trusted => (Tone::Good, "trusted"),
        Trust::Changed => (Tone::Warning, "changed since it was trusted"),
        Trust::Never => (Tone::Warning, "never trusted"),
    };
    out.line(format_args!("{}  {}", text::line(&root), out.paint(tone, sentence)))?;
    let effects = config.effects();
    let workflows = config.workflows()?;
    match effects.is_empty() && workflows.is_empty() {
        true => out.line("Its configuration runs nothing.")?,
        false => out.line("Its configuration would run:")?,
    }
    for effect in &effects {
        let title = effect.title();
        let line = effect.line.map(|line| format!(" (line {line})")).unwrap_or_default();
        out.line(format_args!("  {}{}", out.paint(Tone::Name, text::line(&title)), out.paint(Tone::Faint, line)))?;
        // All of it: what is cut off cannot be judged.
        out.line(format_args!("      {}", text::line(&effect.what)))?;
    }
    for workflow in &workflows {
        out.line(format_args!("  {} {}", out.paint(Tone::Name, "workflows"), text::line(&workflow.path)))?;
    }
    // Where it is said it is among what would run; but it is so without a word about it, too.
    let is_told = effects.iter().any(|effect| effect.place == "agent_commands");
    if agent_commands(config) == AgentCommands::Allow && !is_told {
        out.line(
            "Agents may have any command run that they supply (`agent_commands: allow`, as nothing else is said).",
        )?;
    }
    Ok(())
}

/// Goes on only if a person says yes.
fn ask(project: &Project, config: &Config, state: Trust, out: &mut Output) -> Done {
    if !confirm::can_ask(out) {
        return Err(refused("nobody can be asked here").hint("`windlass trust --yes` trusts without asking").into());
    }
    describe(project, config, state, out)?;
    match confirm::ask("Trust it?", out)? {
        true => Ok(()),
        false => Err(refused("the answer was no").into()),
    }
}

fn refused(cause: &str) -> Failure {
    Failure::new(Code::Trust, "the project stays untrusted").caused_by(cause)
}

fn finish(project: &Project, state: Trust, sentence: &str, out: &mut Output) -> Done {
    match out.is_json() {
        true => out.object(&json!({"project": project.root.to_string_lossy(), "trust": state.name()})),
        false => out.line(format_args!("{} {sentence}", text::line(&project.root.to_string_lossy()))),
    }
}
