//! `windlass hooks enable` and `windlass hooks disable`: whether a hook runs, changed in the project's configuration.
//!
//! Invariants:
//! - Only a person switches hooks: they judge what agents do.
//! - The file is changed in nothing but whether this hook runs, or not at all.
//! - It is never trusted here: a person looks at it first, as after any other change.

use serde_json::{Value, json};
use windlass_app::caller::Inside;
use windlass_app::context::Context;
use windlass_app::person::ConcernedSessions;
use windlass_app::project::Project;
use windlass_app::trust::{self, Trust};
use windlass_app::{Code, Failure, environment, hints};
use windlass_config::edit::{EditObstacle, HookField};
use windlass_config::{Builtin, Config, HookKind, HookSpec, edit as config_edit, plan};
use windlass_engine::{HookId, HookPoint, Refusal, Registry};
use windlass_expr::nearest;
use windlass_text as text;

use super::registered;
use crate::commands::config::rewrite;
use crate::output::{Done, Output, Tone};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass hooks disable lint                       keep it in the configuration, and do not run it
  windlass hooks disable \"stop[0]\"                  one without a name, as `hooks list` shows it
  windlass hooks disable run_tests --dry-run        show what would change, and change nothing
  windlass hooks enable auto-label-by-keyword       a built-in that is off by default
  windlass hooks enable HOOK-12                     a stop hook that is registered for a task

Only the `enabled` of this hook changes in the project's configuration. Afterwards it has to be
trusted again: `windlass trust`. A session that is under way keeps the one it began with.")]
pub struct Args {
    /// Its name, as `windlass hooks list` shows it; a built-in's own name where it is used once; or HOOK-12
    #[arg(value_name = "NAME")]
    name: String,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
}

/// Switches a hook on or off.
pub fn run(context: &Context, which: &Args, on: bool, out: &mut Output) -> Done {
    // Stop hooks that are registered for tasks are in the log, and not in the configuration.
    if let Ok(hook) = which.name.parse::<HookId>() {
        if which.dry_run {
            return Err(Failure::new(Code::Usage, format!("{hook} is in no file: there is nothing to show"))
                .hint("leave --dry-run out; `windlass hooks list --task ID` shows the stop hooks of a task")
                .into());
        }
        return registered::switch(context, hook, on, out);
    }
    let project = context.project()?;
    refuse_inside(context, &project)?;
    let config = Config::load(&project.root)?;
    let meant = Meant::of(&config, &which.name, on)?;
    let mut told = Told { config: &config, name: meant.name(&config), on, change: None, written: false, trust: None };
    if meant.is_on(&config) == on {
        return told.print(out);
    }
    let edited = meant.edited(&config, on).map_err(|obstacle| meant.refusal(&config, on, &obstacle))?;
    told.change = Some(Change::between(config.text(), edited.text()));
    if !which.dry_run {
        rewrite::write(&project, &config, edited.text())?;
        told.written = true;
        told.trust = Some(trust::state(&project, &Config::load(&project.root)?)?);
    }
    told.print(out)
}

/// An agent can take variables away, but not its parents.
fn refuse_inside(context: &Context, project: &Project) -> Result<(), Failure> {
    let named = environment::run().is_some() || environment::effect().is_some() || environment::is_judging();
    // Nothing runs where there is no store.
    let inside = named
        || project.store_file().exists() && {
            let inside = Inside::look_for_person(&context.open_to_read()?, ConcernedSessions::Every(None))?;
            inside.run.is_some() || inside.via.is_some()
        };
    match inside {
        true => Err(hints::refusal(&Refusal::NoPerson { what: "switch hooks on and off" })),
        false => Ok(()),
    }
}

/// The hook that a name stands for.
enum Meant {
    /// One of the configuration, by its number.
    Written(usize),
    /// One of the registry that the configuration says nothing about.
    Registered(Builtin),
    /// What holds for work in worktrees where nothing is written.
    Usual,
}

impl Meant {
    fn of(config: &Config, name: &str, on: bool) -> Result<Self, Failure> {
        if let Some(index) = config.hooks.iter().position(|hook| hook.name == name) {
            return Ok(Self::Written(index));
        }
        let is_usual = !config.has_own_list(&HookPoint::BeforeSubmit);
        if name == plan::USUAL && is_usual {
            return Ok(Self::Usual);
        }
        let Some(builtin) = Builtin::parse(name) else { return Err(unknown(config, name)) };
        let numbered = config.hooks.iter().enumerate();
        let using: Vec<usize> = numbered.filter(|(_, hook)| uses(hook, builtin)).map(|(index, _)| index).collect();
        match (using.as_slice(), is_usual && builtin == Builtin::CreatePr) {
            ([], true) => Ok(Self::Usual),
            ([], false) if builtin.is_registered() => Ok(Self::Registered(builtin)),
            ([], false) => {
                let unused = Failure::new(Code::NotFound, format!("no hook uses `{builtin}`"));
                Err(match on {
                    true => {
                        unused.hint(format!("write `- {builtin}` under the point of `hooks` at which it is to run"))
                    }
                    false => unused.hint("`windlass hooks list` shows what runs"),
                })
            }
            ([index], false) => Ok(Self::Written(*index)),
            (several, usual) => Err(ambiguous(config, builtin, several, usual)),
        }
    }

    fn name(&self, config: &Config) -> String {
        match self {
            Self::Written(index) => config.hooks[*index].name.clone(),
            Self::Registered(builtin) => builtin.to_string(),
            Self::Usual => plan::USUAL.to_owned(),
        }
    }

    fn is_on(&self, config: &Config) -> bool {
        match self {
            Self::Written(index) => config.hooks[*index].enabled(),
            Self::Registered(builtin) => Registry::with_builtins().get(builtin.name()).is_some_and(|hook| hook.enabled),
            Self::Usual => true,
        }
    }

    fn edited(&self, config: &Config, on: bool) -> Result<Config, EditObstacle> {
        match self.addition() {
            Ok((builtin, point)) => {
                let fragment = format!("hooks:\n  {point}:\n    - use: {builtin}\n      enabled: {on}\n");
                config_edit::append_fragment(config, &fragment)
            }
            Err(index) => config_edit::set_hook_field(config, index, HookField::Enabled(on)),
        }
    }

    /// Returns the built-in to add and its point, or the index of the hook that is there.
    fn addition(&self) -> Result<(Builtin, HookPoint), usize> {
        match self {
            Self::Written(index) => Err(*index),
            Self::Registered(builtin) => {
                let registry = Registry::with_builtins();
                let event = registry.get(builtin.name()).and_then(|hook| hook.events.first());
                Ok((*builtin, HookPoint::Event(*event.expect("a built-in hook has an event"))))
            }
            Self::Usual => Ok((Builtin::CreatePr, HookPoint::BeforeSubmit)),
        }
    }

    /// Says what a person can write, and where.
    fn refusal(&self, config: &Config, on: bool, obstacle: &EditObstacle) -> Failure {
        let file = config.file().display();
        let name = self.name(config);
        let failure = Failure::new(
            Code::Config,
            format!("cannot switch `{}` {} in `{file}`: {obstacle}", text::line(&name), word(on)),
        );
        let by_hand = match (self.addition(), obstacle) {
            (_, EditObstacle::Invalid(_)) => "what it names has to change first".to_owned(),
            (Err(index), EditObstacle::Layout) => {
                let hook = &config.hooks[index];
                let (place, line) = (hook.place(), hook.line);
                let entry = match hook.kind {
                    HookKind::Builtin(builtin) => format!("{{use: {builtin}, enabled: {on}}}"),
                    _ => format!("enabled: {on}"),
                };
                format!("write `{entry}` to the hook of {place} at {file}:{line} by hand, without an anchor")
            }
            (Ok((builtin, point)), EditObstacle::Layout) => {
                format!("write `- {{use: {builtin}, enabled: {on}}}` under `{point}` of `hooks` in {file} by hand")
            }
        };
        failure.hint(format!("{by_hand}; nothing was written"))
    }
}

fn uses(hook: &HookSpec, builtin: Builtin) -> bool {
    match hook.kind {
        HookKind::Builtin(other) => other == builtin,
        HookKind::Gatekeeper(_) => builtin == Builtin::Gatekeeper,
        _ => false,
    }
}

fn ambiguous(config: &Config, builtin: Builtin, using: &[usize], usual: bool) -> Failure {
    let file = config.file().display();
    let written = using.iter().map(|index| &config.hooks[*index]);
    let written = written.map(|hook| format!("`{}` ({file}:{})", text::line(&hook.name), hook.line));
    let places: Vec<String> = written.chain(usual.then(|| format!("`{}`", plan::USUAL))).collect();
    Failure::new(Code::Usage, format!("several hooks use `{builtin}`"))
        .hint(format!("say which one: {}", places.join(", ")))
}

fn unknown(config: &Config, name: &str) -> Failure {
    let registry = Registry::with_builtins();
    let mut names: Vec<&str> = config.hooks.iter().map(|hook| hook.name.as_str()).collect();
    names.extend(registry.hooks().map(|hook| hook.name.as_str()));
    names.extend(Builtin::names());
    // A built-in's place alone is not its name.
    let placed = format!("{name}:");
    let near = names.iter().find(|other| other.starts_with(&placed)).copied().or_else(|| nearest(name, &names));
    let failure = Failure::new(Code::NotFound, format!("there is no hook `{}`", text::line(name)));
    failure.hint(match near {
        Some(near) => format!("did you mean `{}`?", text::line(near)),
        None => super::how_to_list(name),
    })
}

fn word(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

/// The lines in which two texts differ.
struct Change {
    /// The first of them.
    line: usize,
    removed: Vec<String>,
    added: Vec<String>,
}

impl Change {
    fn between(old: &str, new: &str) -> Self {
        let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
        let same = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
        let (old, new) = (&old[same..], &new[same..]);
        let after = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
        let lines = |lines: &[&str]| lines[..lines.len() - after].iter().map(|line| (*line).to_owned()).collect();
        Self { line: same + 1, removed: lines(old), added: lines(new) }
    }

    fn show(&self, out: &mut Output) -> Done {
        let show = |sign: &str, tone, lines: &[String], out: &mut Output| {
            lines.iter().enumerate().try_for_each(|(index, line)| {
                let line = out.paint(tone, format!("{sign} {}", text::line(line)).trim_end().to_owned()).to_string();
                out.line(format_args!("{:>5} {line}", self.line + index))
            })
        };
        show("-", Tone::Bad, &self.removed, out)?;
        show("+", Tone::Good, &self.added, out)
    }
}

/// What is to be said in the end.
struct Told<'c> {
    config: &'c Config,
    name: String,
    on: bool,
    /// `None` where it was so already.
    change: Option<Change>,
    written: bool,
    trust: Option<Trust>,
}

impl Told<'_> {
    fn print(&self, out: &mut Output) -> Done {
        if out.is_json() {
            return out.object(&self.as_json());
        }
        let (name, on) = (text::line(&self.name), word(self.on));
        let Some(change) = &self.change else {
            return out.line(format_args!("`{name}` is {on} already; nothing was written"));
        };
        let file = self.config.file().to_string_lossy();
        let would = if self.written { "is" } else { "would be" };
        out.line(format_args!("`{name}` {would} switched {on} in {}:", text::line(&file)))?;
        change.show(out)?;
        if self.trust.is_some_and(|trust| trust != Trust::Trusted) {
            out.line("What the configuration runs needs your trust as it is now: `windlass trust`.")?;
        }
        Ok(())
    }

    fn as_json(&self) -> Value {
        let change = self.change.as_ref();
        json!({
            "hook": self.name,
            "enabled": self.on,
            "changed": change.is_some(),
            "written": self.written,
            "config": self.config.file().to_string_lossy(),
            "line": change.map(|change| change.line),
            "removed": change.map_or(&[][..], |change| &change.removed),
            "added": change.map_or(&[][..], |change| &change.added),
            "trust": self.trust.map(Trust::name),
        })
    }
}
