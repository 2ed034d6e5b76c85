//! `windlass config import`: adds hooks of other systems to the project's configuration.
//!
//! Invariants:
//! - The command shows its additions before it writes them, and writes only after a yes or with `--yes`.
//! - It only reads the imported file, and changes nothing in the configuration but `enabled` and `priority` of
//!   hooks that the file names.
//! - It never trusts the result: the person who trusts has not seen the new content yet.

mod findings;

use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use windlass_app::config_file::replace_config_file;
use windlass_app::context::CommandContext;
use windlass_app::{Failure, FailureCode};
use windlass_config as config;
use windlass_config::import::{self, ConfigAdditions, HookImport, ImportDialect};
use windlass_config::{Config, ConfigError};

use self::findings::ImportFindings;
use crate::output::{CommandResult, Output};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass config import .claude/settings.json             show them, and ask
  windlass config import .claude/settings.json --dry-run   only print the YAML
  windlass config import ~/.codex/hooks.json --yes         add without asking
  windlass config import hooks.json --from gemini          name the system

Entries that would behave differently here are left out and listed. The imported file is not changed. \
Afterwards, trust the configuration again: `windlass trust`.")]
pub struct Args {
    /// The file to read: agent settings, codemie or `automation-hooks.json`
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The system that the hooks are for [default: guessed from the file]
    #[arg(long, value_name = "SYSTEM", value_parser = dialect_parser())]
    from: Option<ImportDialect>,
    /// Add the hooks without asking
    #[arg(long)]
    yes: bool,
    /// Print the YAML to add, and change nothing
    #[arg(long, visible_alias = "print", conflicts_with = "yes")]
    dry_run: bool,
}

pub fn run_config_import(context: &CommandContext, args: Args, out: &mut Output) -> CommandResult {
    let file = context.directory.join(&args.file);
    let import = read_hook_import(&file, args.from)?;
    let project = match context.find_project() {
        // `--dry-run` works outside of a project, too.
        Err(failure) if args.dry_run && failure.code == FailureCode::NoProject => None,
        found => Some(found?),
    };
    let config = match &project {
        Some(project) => Config::load(&project.root)?,
        None => Config::without_file(&context.directory),
    };
    let additions = ConfigAdditions::from_import(&import, &config);
    let found = ImportFindings { file: &args.file, config: &config, import: &import, additions: &additions };
    let (Some(project), false) = (project, args.dry_run) else {
        return found.print_yaml_fragment(out);
    };
    if additions.is_empty() {
        return found.report_result(false, out);
    }
    let edited = additions.apply_to_config(&config).map_err(|obstacle| found.report_obstacle(&obstacle, out))?;
    if !args.yes {
        found.ask_for_consent(out)?;
    } else if !out.is_json() {
        found.show_additions(out)?;
    }
    replace_config_file(&project, &config, edited.text())?;
    found.report_result(true, out)
}

/// Returns a parser for the names of systems, with their descriptions.
fn dialect_parser() -> impl TypedValueParser<Value = ImportDialect> {
    let names = ImportDialect::ALL.map(|dialect| PossibleValue::new(dialect.name()).help(dialect.description()));
    PossibleValuesParser::new(names).map(|name| {
        let named = ImportDialect::ALL.into_iter().find(|dialect| dialect.name() == name);
        named.expect("the parser takes these names alone")
    })
}

fn read_hook_import(file: &Path, from: Option<ImportDialect>) -> Result<HookImport, Failure> {
    if file.extension().is_some_and(|extension| extension == "toml") {
        return Err(Failure::new(
            FailureCode::Config,
            format!("{}: hooks are read from JSON, and this is TOML", file.display()),
        )
        .with_hint(
            "Codex also reads `hooks.json` beside its `config.toml`; write them there, or write the hooks by hand",
        ));
    }
    let text = config::read_text(file)?;
    import::import_hooks(file, &text, from).map_err(|problem| ConfigError::from_problem(file, &text, problem).into())
}
