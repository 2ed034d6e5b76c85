//! `windlass hooks enable` and `windlass hooks disable`: switch a hook on or off in the project's configuration.
//!
//! Invariants:
//! - Only a person switches hooks, because hooks judge what agents do.
//! - The command changes whether this hook runs and nothing else in the file.
//! - It never trusts the result: a person reviews it first, as after any other change.

use serde_json::{Value, json};
use windlass_app::context::Context;
use windlass_app::hook_switch::{SwitchableHook, refuse_agent};
use windlass_app::trust::{self, Trust};
use windlass_app::{Code, Failure};
use windlass_config::Config;
use windlass_engine::HookId;
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
    // Stop hooks that are registered for tasks are in the log, not in the configuration.
    if let Ok(hook) = which.name.parse::<HookId>() {
        if which.dry_run {
            return Err(Failure::new(Code::Usage, format!("{hook} is in no file: there is nothing to show"))
                .hint("leave --dry-run out; `windlass hooks list --task ID` shows the stop hooks of a task")
                .into());
        }
        return registered::switch(context, hook, on, out);
    }
    let project = context.project()?;
    refuse_agent(context, &project)?;
    let config = Config::load(&project.root)?;
    let hook = SwitchableHook::find(&config, &which.name, on)?;
    let mut told = Told { config: &config, name: hook.name(&config), on, change: None, written: false, trust: None };
    if hook.is_on(&config) == on {
        return told.print(out);
    }
    let edited = hook.edited(&config, on).map_err(|obstacle| hook.refusal(&config, on, &obstacle))?;
    told.change = Some(Change::between(config.text(), edited.text()));
    if !which.dry_run {
        rewrite::write(&project, &config, edited.text())?;
        told.written = true;
        told.trust = Some(trust::state(&project, &Config::load(&project.root)?)?);
    }
    told.print(out)
}

fn word(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

/// The lines in which two texts differ.
struct Change {
    /// The number of the first line that differs.
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

/// The result of the command.
struct Told<'c> {
    config: &'c Config,
    name: String,
    on: bool,
    /// `None` if the hook was in the wanted state already.
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
