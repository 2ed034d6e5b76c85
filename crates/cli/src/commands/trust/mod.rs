//! `windlass trust`: shows the programs of a project's configuration and the holdings of a foreign store, and records that a
//! person trusts them.

mod holdings;

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};
use windlass_app::context::Context;
use windlass_app::person::require_person;
use windlass_app::project::Project;
use windlass_app::store_records::{self, StoreMarks};
use windlass_app::trust::{self, Trust};
use windlass_app::{Code, Failure, hints, workflows};
use windlass_config::workflow::{WorkflowDefinition, WorkflowLibrary};
use windlass_config::{AgentCommands, Config, ConfiguredEffect};
use windlass_store::{Sqlite, StoreError};
use windlass_text as text;

use self::holdings::StoreHolding;
use crate::commands::{self, confirm};
use crate::output::{Done, Output, Tone};
use crate::show;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass trust             show what would run and what a foreign store holds, and ask
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

/// A store that this machine did not make, as a person sees it.
struct ForeignStore {
    seen: Option<StoreMarks>,
    identity: Option<String>,
    holdings: Vec<StoreHolding>,
    /// The files of the store that git tracks.
    tracked: Vec<String>,
}

impl ForeignStore {
    /// Inspects the store. Returns `None` if there is no store, or if this machine made it.
    fn look(project: &Project) -> Result<Option<Self>, Failure> {
        if !store_records::is_foreign(project)? {
            return Ok(None);
        }
        // The marks come before the reading, so that a store that replaces this one is not adopted unseen.
        let seen = StoreMarks::of(project);
        let survey = Sqlite::survey(&project.store_file()).map_err(hints::store)?;
        let holdings = holdings::list(&survey).map_err(hints::store)?;
        let identity = survey.store.identity().map_err(hints::store)?;
        Ok(Some(Self { seen, identity, holdings, tracked: windlass_app::changes::tracked_store(project) }))
    }

    fn describe(&self, out: &mut Output) -> Done {
        out.line(out.paint(Tone::Warning, "Its store was not made on this machine, or was replaced."))?;
        if !self.tracked.is_empty() {
            let files = self.tracked.join(", ");
            out.line(format_args!("It came with the repository: git tracks {}.", text::line(&files)))?;
        }
        match self.holdings.is_empty() {
            true => out.line("The store holds nothing that can act."),
            false => out.line("The store holds:"),
        }?;
        self.holdings.iter().try_for_each(|holding| holding.show(out))
    }

    fn adopt(self, project: &Project) -> Result<(), Failure> {
        let Some(seen) = &self.seen else {
            return Err(hints::store(StoreError::Missing(project.store_file())));
        };
        store_records::adopt(project, seen, self.identity)
    }
}

pub fn run(context: &Context, args: Args, out: &mut Output) -> Done {
    let project = context.project()?;
    if args.revoke {
        require_person(&project)?;
        return revoke(&project, out);
    }
    let config = Config::load(&project.root)?;
    let state = trust::state(&project, &config)?;
    let store = ForeignStore::look(&project)?;
    if args.show {
        return show_all(&project, (&config, state), store.as_ref(), out);
    }
    if state == Trust::Trusted && store.is_none() {
        return finish(&project, state, "is trusted already", out);
    }
    require_person(&project)?;
    // A workflow that can never run is an error, not a matter of trust.
    workflows::check_hooks(&project, &config)?;
    let seen = config.digest()?;
    if !args.yes {
        ask(&project, (&config, state), store.as_ref(), out)?;
    }
    trust::grant(&project, &config, seen)?;
    store.map_or(Ok(()), |store| store.adopt(&project))?;
    finish(&project, Trust::Trusted, "is trusted", out)
}

fn revoke(project: &Project, out: &mut Output) -> Done {
    let (configuration, store) = (trust::revoke(project)?, store_records::revoke(project)?);
    let sentence = if configuration || store { "is no longer trusted" } else { "was not trusted" };
    finish(project, Trust::Never, sentence, out)
}

fn show_all(
    project: &Project,
    (config, state): (&Config, Trust),
    store: Option<&ForeignStore>,
    out: &mut Output,
) -> Done {
    if out.is_json() {
        return out.object(&json!({
            "project": project.root.to_string_lossy(),
            "trust": state.name(),
            "runs": config.effects().iter().map(as_json).collect::<Vec<_>>(),
            "sets": config.keys(),
            "workflows": Run::all(project, config)?.iter().map(Run::as_json).collect::<Vec<_>>(),
            "agent_commands": match agent_commands(config) {
                AgentCommands::Allow => "allow",
                AgentCommands::Named => "named",
                AgentCommands::Deny => "deny",
            },
            "foreign_store": store.map(|store| json!({
                "tracked": store.tracked,
                "holds": store.holdings.iter().map(StoreHolding::to_json).collect::<Vec<_>>(),
            })),
        }));
    }
    describe(project, config, state, out)?;
    store.map_or(Ok(()), |store| store.describe(out))
}

/// The keys whose values the description shows, or that start nothing.
const SHOWN: &[&str] = &[
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
fn agent_commands(config: &Config) -> AgentCommands {
    config.agent_commands()
}

fn as_json(effect: &ConfiguredEffect) -> Value {
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
    let workflows = Run::all(project, config)?;
    match effects.is_empty() && workflows.is_empty() {
        true => out.line("Its configuration runs nothing.")?,
        false => out.line("Its configuration would run:")?,
    }
    for effect in &effects {
        let title = effect.title();
        let line = effect.line.map(|line| format!(" (line {line})")).unwrap_or_default();
        out.line(format_args!("  {}{}", out.paint(Tone::Name, text::line(&title)), out.paint(Tone::Faint, line)))?;
        // The text is not cut, because a person has to judge all of it.
        out.line(format_args!("      {}", text::line(&effect.what)))?;
    }
    workflows.iter().try_for_each(|workflow| workflow.show(out))?;
    let silent: Vec<String> = config.keys().into_iter().filter(|key| !SHOWN.contains(&key.as_str())).collect();
    if !silent.is_empty() {
        out.line(format_args!("It also sets {}.", text::line(&silent.join(", "))))?;
    }
    // A configured `agent_commands` is among the effects. The default allows commands too, and is named here.
    let is_told = effects.iter().any(|effect| effect.place == "agent_commands");
    if agent_commands(config) == AgentCommands::Allow && !is_told {
        out.line(
            "Agents may have any command run that they supply (`agent_commands: allow`, as nothing else is said).",
        )?;
    }
    Ok(())
}

/// A file under `workflows/`, or a built-in workflow that a hook runs.
struct Run {
    path: String,
    what: Result<WorkflowDefinition, Option<Failure>>,
}

impl Run {
    fn all(project: &Project, config: &Config) -> Result<Vec<Self>, Failure> {
        let WorkflowLibrary { definitions: found, unusable: mut wrong } = WorkflowLibrary::load(Some(&project.root))?;
        let directory = workflows::directory(project);
        let real = |file: &Path| file.canonicalize().unwrap_or(file.to_owned());
        let mut runs = Vec::new();
        for file in config.workflows()? {
            let place = directory.join(&file.path);
            let defined = found.iter().find(|defined| defined.file.as_ref() == Some(&real(&place)));
            let failure = wrong.iter().position(|wrong| real(&wrong.file) == real(&place));
            let what = match (defined, failure) {
                (Some(defined), _) => Ok(defined.clone()),
                (None, at) => Err(at.map(|at| wrong.swap_remove(at).into())),
            };
            runs.push(Self { path: file.path, what });
        }
        let named = config.named_workflows().into_iter().filter(|(hook, _)| hook.enabled());
        let named: BTreeSet<&str> = named.map(|(_, id)| id.as_str()).collect();
        let ours = found.into_iter().filter(|defined| defined.file.is_none());
        let ours = ours.filter(|defined| named.contains(defined.workflow.id.as_str()));
        runs.extend(ours.map(|defined| Self { path: defined.workflow.id.clone(), what: Ok(defined) }));
        Ok(runs)
    }

    fn show(&self, out: &mut Output) -> Done {
        let path = text::line(&self.path);
        let label = out.paint(Tone::Name, "workflows");
        match &self.what {
            Ok(defined) => {
                let whose = if defined.file.is_some() { "" } else { "  (comes along)" };
                out.line(format_args!("  {label} {path}{}", out.paint(Tone::Faint, whose)))?;
                commands::workflow::steps(defined, 6, out)
            }
            Err(None) => out.line(format_args!("  {label} {path}  (no workflow: nothing of it runs)")),
            Err(Some(failure)) => {
                let wrong = out.paint(Tone::Bad, "wrong, and nothing of it runs");
                out.line(format_args!("  {label} {path}  {wrong}: {}", text::line(&failure.message)))
            }
        }
    }

    fn as_json(&self) -> Value {
        match &self.what {
            Ok(defined) => {
                json!({"path": self.path, "id": defined.workflow.id, "steps": show::workflow::steps(defined)})
            }
            Err(failure) => json!({"path": self.path, "error": failure.as_ref().map(|failure| &failure.message)}),
        }
    }
}

/// Shows everything and continues only if a person agrees.
fn ask(project: &Project, (config, state): (&Config, Trust), store: Option<&ForeignStore>, out: &mut Output) -> Done {
    if !confirm::can_ask(out) {
        return Err(refused("there is no terminal to ask on")
            .hint("`windlass trust --show` shows what would run, `windlass trust --yes` trusts it")
            .into());
    }
    describe(project, config, state, out)?;
    store.map_or(Ok(()), |store| store.describe(out))?;
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
