//! `windlass hooks enable` and `windlass hooks disable`: switch a hook on or off in the project's configuration.
//!
//! Invariants:
//! - Only a person switches hooks, because hooks judge what agents do.
//! - The command changes whether this hook runs and nothing else in the file.
//! - It never trusts the result: a person reviews it first, as after any other change.

use serde_json::{Value, json};
use windlass_app::config_file::replace_config_file;
use windlass_app::context::CommandContext;
use windlass_app::hook_switch::{SwitchableHook, refuse_agent_caller};
use windlass_app::trust::{self, TrustState};
use windlass_app::{Failure, FailureCode};
use windlass_config::Config;
use windlass_engine::HookId;
use windlass_text as text;

use super::stop_hooks;
use crate::output::{CommandResult, Output, TextTone};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass hooks disable lint                       keep it, but do not run it
  windlass hooks disable \"stop[0]\"                  a hook without a name
  windlass hooks disable run_tests --dry-run        only show the change
  windlass hooks enable auto-label-by-keyword       a built-in, off by default
  windlass hooks enable HOOK-12                     a stop hook of a task

Only the `enabled` key of this hook changes in the project's configuration. Afterwards, trust the \
configuration again: `windlass trust`. A running session keeps the configuration that it started with.")]
pub struct Args {
    /// The hook: its name in `windlass hooks list`, a built-in, or HOOK-12
    #[arg(value_name = "NAME")]
    name: String,
    /// Show the change, but do not write it
    #[arg(long)]
    dry_run: bool,
}

/// Switches a hook on or off.
pub fn run_hooks_switch(context: &CommandContext, which: &Args, on: bool, out: &mut Output) -> CommandResult {
    // Stop hooks that are registered for tasks are in the log, not in the configuration.
    if let Ok(hook) = which.name.parse::<HookId>() {
        if which.dry_run {
            return Err(Failure::new(FailureCode::Usage, format!("{hook} is in no file: there is nothing to show"))
                .with_hint("leave --dry-run out; `windlass hooks list --task ID` shows the stop hooks of a task")
                .into());
        }
        return stop_hooks::switch_stop_hook(context, hook, on, out);
    }
    let project = context.find_project()?;
    refuse_agent_caller(context, &project, "switch hooks on and off")?;
    let config = Config::load(&project.root)?;
    let hook = SwitchableHook::find_by_name(&config, &which.name, on)?;
    let mut told =
        SwitchReport { config: &config, name: hook.name(&config), on, change: None, written: false, trust: None };
    if hook.is_enabled(&config) == on {
        return told.print_report(out);
    }
    let edited =
        hook.edit_config(&config, on).map_err(|obstacle| hook.explain_edit_obstacle(&config, on, &obstacle))?;
    told.change = Some(TextDifference::between(config.text(), edited.text()));
    if !which.dry_run {
        replace_config_file(&project, &config, edited.text())?;
        told.written = true;
        told.trust = Some(trust::find_trust_state(&project, &Config::load(&project.root)?)?);
    }
    told.print_report(out)
}

fn on_off_word(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

/// The lines in which two texts differ.
struct TextDifference {
    /// The number of the first line that differs.
    line: usize,
    removed: Vec<String>,
    added: Vec<String>,
}

impl TextDifference {
    fn between(old: &str, new: &str) -> Self {
        let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
        let same = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
        let (old, new) = (&old[same..], &new[same..]);
        let after = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
        let lines = |lines: &[&str]| lines[..lines.len() - after].iter().map(|line| (*line).to_owned()).collect();
        Self { line: same + 1, removed: lines(old), added: lines(new) }
    }

    fn show_difference(&self, out: &mut Output) -> CommandResult {
        let show = |sign: &str, tone, lines: &[String], out: &mut Output| {
            lines.iter().enumerate().try_for_each(|(index, line)| {
                let line =
                    out.paint(tone, format!("{sign} {}", text::clean_line(line)).trim_end().to_owned()).to_string();
                out.print_line(format_args!("{:>5} {line}", self.line + index))
            })
        };
        show("-", TextTone::Bad, &self.removed, out)?;
        show("+", TextTone::Good, &self.added, out)
    }
}

/// The result of the command.
struct SwitchReport<'c> {
    config: &'c Config,
    name: String,
    on: bool,
    /// `None` if the hook was in the wanted state already.
    change: Option<TextDifference>,
    written: bool,
    trust: Option<TrustState>,
}

impl SwitchReport<'_> {
    fn print_report(&self, out: &mut Output) -> CommandResult {
        if out.is_json() {
            return out.print_json(&self.to_json());
        }
        let (name, on) = (text::clean_line(&self.name), on_off_word(self.on));
        let Some(change) = &self.change else {
            return out.print_line(format_args!("`{name}` is {on} already; nothing was written"));
        };
        let file = self.config.file().to_string_lossy();
        let would = if self.written { "is" } else { "would be" };
        out.print_line(format_args!("`{name}` {would} switched {on} in {}:", text::clean_line(&file)))?;
        change.show_difference(out)?;
        if self.trust.is_some_and(|trust| trust != TrustState::Trusted) {
            out.print_line("Nothing of the configuration runs until you trust it again: `windlass trust`.")?;
        }
        Ok(())
    }

    fn to_json(&self) -> Value {
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
            "trust": self.trust.map(TrustState::state_name),
        })
    }
}
