//! `windlass trust`: shows the programs of a project's configuration and the holdings of a foreign store, and records that a
//! person trusts them.

mod holdings;

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

use self::holdings::StoreHolding;
use crate::commands::{self, confirmation};
use crate::output::{CommandResult, Output, Tone};
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
    fn inspect_store(project: &Project) -> Result<Option<Self>, Failure> {
        if !store_records::is_store_foreign(project)? {
            return Ok(None);
        }
        // The marks come before the reading, so that a store that replaces this one is not adopted unseen.
        let seen = StoreMarks::read_marks(project);
        let survey = SqliteStore::survey_foreign(&project.store_file()).map_err(hints::store_failure)?;
        let holdings = holdings::list_holdings(&survey).map_err(hints::store_failure)?;
        let identity = survey.store.read_identity().map_err(hints::store_failure)?;
        Ok(Some(Self { seen, identity, holdings, tracked: windlass_app::changes::list_tracked_store_files(project) }))
    }

    fn print_holdings(&self, out: &mut Output) -> CommandResult {
        out.print_line(out.paint(Tone::Warning, "Its store was not made on this machine, or was replaced."))?;
        if !self.tracked.is_empty() {
            let files = self.tracked.join(", ");
            out.print_line(format_args!("It came with the repository: git tracks {}.", text::clean_line(&files)))?;
        }
        match self.holdings.is_empty() {
            true => out.print_line("The store holds nothing that can act."),
            false => out.print_line("The store holds:"),
        }?;
        self.holdings.iter().try_for_each(|holding| holding.print_holding(out))
    }

    fn adopt_store(self, project: &Project) -> Result<(), Failure> {
        let Some(seen) = &self.seen else {
            return Err(hints::store_failure(StoreError::Missing(project.store_file())));
        };
        store_records::adopt_store(project, seen, self.identity)
    }
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
        TrustState::Trusted => (Tone::Good, "trusted"),
        TrustState::Changed => (Tone::Warning, "changed since it was trusted"),
        TrustState::Never => (Tone::Warning, "never trusted"),
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
            out.paint(Tone::Name, text::clean_line(&title)),
            out.paint(Tone::Faint, line)
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

/// A file under `workflows/`, or a built-in workflow that a hook runs.
struct RunnableWorkflow {
    path: String,
    what: Result<WorkflowDefinition, Option<Failure>>,
}

impl RunnableWorkflow {
    fn load_runnable(project: &Project, config: &Config) -> Result<Vec<Self>, Failure> {
        let WorkflowLibrary { definitions: found, unusable: mut wrong } = WorkflowLibrary::load(Some(&project.root))?;
        let directory = workflows::project_workflow_directory(project);
        let real = |file: &Path| file.canonicalize().unwrap_or(file.to_owned());
        let mut runs = Vec::new();
        for file in config.workflow_files()? {
            let place = directory.join(&file.path);
            let defined = found.iter().find(|defined| defined.file.as_ref() == Some(&real(&place)));
            let failure = wrong.iter().position(|wrong| real(&wrong.file) == real(&place));
            let what = match (defined, failure) {
                (Some(defined), _) => Ok(defined.clone()),
                (None, at) => Err(at.map(|at| wrong.swap_remove(at).into())),
            };
            runs.push(Self { path: file.path, what });
        }
        let named = config.workflow_hooks().into_iter().filter(|(hook, _)| hook.is_enabled());
        let named: BTreeSet<&str> = named.map(|(_, id)| id.as_str()).collect();
        let ours = found.into_iter().filter(|defined| defined.file.is_none());
        let ours = ours.filter(|defined| named.contains(defined.workflow.id.as_str()));
        runs.extend(ours.map(|defined| Self { path: defined.workflow.id.clone(), what: Ok(defined) }));
        Ok(runs)
    }

    fn print_workflow(&self, out: &mut Output) -> CommandResult {
        let path = text::clean_line(&self.path);
        let label = out.paint(Tone::Name, "workflows");
        match &self.what {
            Ok(defined) => {
                let whose = if defined.file.is_some() { "" } else { "  (built-in)" };
                out.print_line(format_args!("  {label} {path}{}", out.paint(Tone::Faint, whose)))?;
                commands::workflow::print_steps(defined, 6, out)
            }
            Err(None) => out.print_line(format_args!("  {label} {path}  (no workflow: nothing of it runs)")),
            Err(Some(failure)) => {
                let wrong = out.paint(Tone::Bad, "wrong, and nothing of it runs");
                out.print_line(format_args!("  {label} {path}  {wrong}: {}", text::clean_line(&failure.message)))
            }
        }
    }

    fn to_json(&self) -> Value {
        match &self.what {
            Ok(defined) => {
                json!({"path": self.path, "id": defined.workflow.id, "steps": show::workflow::steps_to_json(defined)})
            }
            Err(failure) => json!({"path": self.path, "error": failure.as_ref().map(|failure| &failure.message)}),
        }
    }
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
