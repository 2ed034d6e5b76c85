//! The findings of an import from another system, as a person sees them.

use std::path::Path;

use serde_json::{Value, json};
use windlass_app::{Failure, FailureCode};
use windlass_config::Config;
use windlass_config::edit::{EditObstacle, HookField};
use windlass_config::import::{
    self, ConfigAdditions, HookChange, HookImport, ImportDialect, ImportRemark, ImportedAction, ImportedHook,
    ImportedSetting, ImportedTuning,
};
use windlass_text as text;

use crate::commands::confirmation;
use crate::output::{CommandResult, EarlyExit, MessageWriter, Output, TextTone};

/// The hooks of a foreign file, and the additions to the configuration that they lead to.
pub struct ImportFindings<'a> {
    pub file: &'a Path,
    pub config: &'a Config,
    pub import: &'a HookImport,
    pub additions: &'a ConfigAdditions,
}

impl ImportFindings<'_> {
    /// Returns a heading that names the origin of the hooks and the unit of their timeouts.
    fn format_heading(&self) -> String {
        let file = self.file.to_string_lossy();
        let from = self.import.from;
        match from {
            ImportDialect::Automation => format!("{file}: {}", from.title()),
            _ => format!("{file}: hooks of {}; a `timeout` there is in {}", from.title(), from.timeout_unit().title()),
        }
    }

    fn collect_left_out(&self) -> Vec<&ImportRemark> {
        let mut left_out: Vec<_> = self.import.left_out.iter().chain(&self.additions.left_out).collect();
        left_out.sort_by_key(|remark| remark.line);
        left_out
    }

    fn iter_remarks(&self) -> impl Iterator<Item = &ImportRemark> {
        self.import.notes.iter().chain(&self.additions.notes)
    }

    /// Prints the YAML to standard output, and everything else to standard error.
    pub fn print_yaml_fragment(&self, out: &mut Output) -> CommandResult {
        if out.is_json() {
            return out.print_json(&self.to_json(false));
        }
        let mut messages = MessageWriter::new();
        messages.print_note(&self.format_heading());
        for remark in self.collect_left_out() {
            messages.print_warning(&format!("left out: {}", format_remark(remark)));
        }
        for remark in self.iter_remarks() {
            messages.print_note(&format_remark(remark));
        }
        for change in &self.additions.changes {
            messages.print_note(&format!("line {}: would be changed: {}", change.line, describe_hook_change(change)));
        }
        if self.additions.is_empty() {
            messages.print_note(&self.describe_unchanged_config());
        }
        if self.additions.adds_nothing() {
            return Ok(());
        }
        self.print_yaml_lines(&import::write_fragment(self.additions), out)
    }

    fn print_yaml_lines(&self, yaml: &str, out: &mut Output) -> CommandResult {
        yaml.lines().try_for_each(|line| out.print_line(text::clean_lines(line)))
    }

    pub fn show_additions(&self, out: &mut Output) -> CommandResult {
        out.print_line(text::clean_line(&self.format_heading()))?;
        let file = self.config.file().to_string_lossy().into_owned();
        if !self.additions.adds_nothing() {
            out.print_line(format_args!("to be added to {}:", text::clean_line(&file)))?;
            out.print_line("")?;
            self.print_yaml_lines(&import::write_fragment(self.additions), out)?;
        }
        if !self.additions.changes.is_empty() {
            if !self.additions.adds_nothing() {
                out.print_line("")?;
            }
            out.print_line(format_args!("to be changed in {}:", text::clean_line(&file)))?;
        }
        for change in &self.additions.changes {
            out.print_line(format_args!("  {}", text::clean_line(&describe_hook_change(change))))?;
        }
        let left_out = self.collect_left_out();
        if !left_out.is_empty() {
            out.print_line("")?;
            out.print_line(out.paint(TextTone::Warning, "left out:"))?;
        }
        for remark in left_out {
            out.print_line(format_args!("  {}", text::clean_line(&format_remark(remark))))?;
        }
        let notes: Vec<String> = self.iter_remarks().map(format_remark).collect();
        if !notes.is_empty() {
            out.print_line("")?;
        }
        notes.iter().try_for_each(|note| {
            out.print_line(format_args!("{}: {}", out.paint(TextTone::Faint, "note"), text::clean_line(note)))
        })?;
        Ok(())
    }

    /// Shows the additions and continues only if a person agrees.
    pub fn ask_for_consent(&self, out: &mut Output) -> CommandResult {
        if !out.is_json() {
            self.show_additions(out)?;
            out.print_line("")?;
        }
        if !confirmation::can_ask_person(out) {
            let refused = nothing_written_failure("there is no terminal to ask on");
            return Err(refused.with_hint("`--yes` adds it without asking, `--dry-run` only prints it").into());
        }
        let question = if self.additions.changes.is_empty() { "Add it?" } else { "Write it?" };
        match confirmation::ask_yes_or_no(question, out)? {
            true => Ok(()),
            false => Err(nothing_written_failure("the answer was no").into()),
        }
    }

    /// Shows the additions that cannot be written, and returns the failure.
    pub fn report_obstacle(&self, obstacle: &EditObstacle, out: &mut Output) -> EarlyExit {
        let file = self.config.file().display();
        let failure = Failure::new(FailureCode::Config, format!("cannot add to `{file}`: {obstacle}"));
        if out.is_json() {
            return failure.with_hint("`--dry-run` prints what to add by hand").into();
        }
        match self.show_additions(out) {
            Err(stop) => stop,
            Ok(()) => failure.with_hint("add the lines above by hand; nothing was written").into(),
        }
    }

    /// Counts the hooks of the file that the configuration already has.
    fn count_present_hooks(&self) -> usize {
        self.additions.present.len() + self.additions.unchanged.len()
    }

    fn describe_unchanged_config(&self) -> String {
        let is_none = self.import.hooks.is_empty() && self.import.tuned.is_empty() && self.import.left_out.is_empty();
        match (self.count_present_hooks(), is_none) {
            (0, true) => "there are no hooks in it, and nothing was added".to_owned(),
            (0, false) => "nothing was added".to_owned(),
            (1, _) => "the hook is in the configuration already; nothing was added".to_owned(),
            (count, _) => format!("{count} hooks are in the configuration already; nothing was added"),
        }
    }

    pub fn report_result(&self, written: bool, out: &mut Output) -> CommandResult {
        if out.is_json() {
            return out.print_json(&self.to_json(written));
        }
        if !written {
            self.show_additions(out)?;
            return out.print_line(self.describe_unchanged_config());
        }
        out.print_line("")?;
        let count = match (self.additions.hooks.len(), self.count_present_hooks()) {
            (0, _) => "settings alone; the hooks were there already".to_owned(),
            (1, 0) => "1 hook".to_owned(),
            (count, 0) => format!("{count} hooks"),
            (count, present) => format!("{count} of {} hooks; the others were there already", count + present),
        };
        let file = self.config.file().to_string_lossy().into_owned();
        if !self.additions.adds_nothing() {
            out.print_line(format_args!(
                "{} to {}: {count}",
                out.paint(TextTone::Good, "added"),
                text::clean_line(&file)
            ))?;
        }
        let hooks = match self.additions.changes.len() {
            0 => None,
            1 => Some("1 hook".to_owned()),
            count => Some(format!("{count} hooks")),
        };
        if let Some(hooks) = hooks {
            out.print_line(format_args!(
                "{} in {}: {hooks}",
                out.paint(TextTone::Good, "changed"),
                text::clean_line(&file)
            ))?;
        }
        let file = self.file.to_string_lossy();
        if let Some(agent) = self.import.from.bridge_agent() {
            out.print_line(text::clean_line(&format!(
                "They are still in {file}, and {} runs them. If you run `windlass install {agent}`, remove them there, or they run twice.",
                agent.title()
            )))?;
        }
        out.print_line("Nothing of the configuration runs until you trust it again: `windlass trust`.")
    }

    fn to_json(&self, written: bool) -> Value {
        let remarks = |remarks: &[&ImportRemark]| -> Value {
            remarks.iter().map(|remark| json!({"line": remark.line, "text": remark.text})).collect()
        };
        let settings: serde_json::Map<_, _> = self.additions.settings.iter().map(setting_to_json).collect();
        json!({
            "file": self.file.to_string_lossy(),
            "from": self.import.from.name(),
            "unit": (self.import.from != ImportDialect::Automation).then(|| self.import.from.timeout_unit().title()),
            "config": self.config.file().to_string_lossy(),
            "written": written,
            "added": self.additions.hooks.iter().map(hook_to_json).collect::<Vec<_>>(),
            "changed": self.additions.changes.iter().map(hook_change_to_json).collect::<Vec<_>>(),
            "present": self.additions.present.iter().map(hook_to_json).chain(self.additions.unchanged.iter().map(tuning_to_json)).collect::<Vec<_>>(),
            "settings": settings,
            "leftOut": remarks(&self.collect_left_out()),
            "notes": remarks(&self.iter_remarks().collect::<Vec<_>>()),
            "yaml": import::write_fragment(self.additions),
        })
    }
}

/// Describes the fields of an existing hook that the import changes.
fn describe_hook_change(change: &HookChange) -> String {
    let fields: Vec<String> = change.fields.iter().map(|field| format!("`{field}`")).collect();
    format!("{} (line {}): {}", change.name, change.at, fields.join(", "))
}

fn hook_change_to_json(change: &HookChange) -> Value {
    let mut shown = json!({"name": change.name, "line": change.line, "at": change.at});
    for field in &change.fields {
        match field {
            HookField::Enabled(on) => shown["enabled"] = json!(on),
            HookField::Priority(priority) => shown["priority"] = json!(priority),
        }
    }
    shown
}

fn tuning_to_json(tuned: &ImportedTuning) -> Value {
    json!({"name": tuned.name, "line": tuned.line})
}

fn nothing_written_failure(cause: &str) -> Failure {
    Failure::new(FailureCode::Usage, "nothing was written").with_cause(cause)
}

fn format_remark(remark: &ImportRemark) -> String {
    match remark.line {
        Some(line) => format!("line {line}: {}", remark.text),
        None => remark.text.clone(),
    }
}

fn setting_to_json(setting: &ImportedSetting) -> (String, Value) {
    let (name, value) = match setting {
        ImportedSetting::MaxHookRetries(most) => ("max_hook_retries", json!(most)),
        ImportedSetting::NotStrict => ("strict", json!(false)),
        ImportedSetting::CompleteAtLimit => ("on_retry_limit", json!("complete")),
    };
    (name.to_owned(), value)
}

fn hook_to_json(hook: &ImportedHook) -> Value {
    let (kind, what) = match &hook.what {
        ImportedAction::Command(command) => ("command", command.as_str()),
        ImportedAction::Use(builtin) => ("use", builtin.name()),
    };
    json!({
        "point": hook.point.name(),
        "name": hook.name,
        "line": hook.line,
        kind: what,
        "matcher": hook.matcher,
        "timeout": hook.timeout.map(|timeout| timeout.as_secs_f64()),
        "pipeOutput": hook.pipe_output,
        "enabled": hook.enabled.unwrap_or(true),
    })
}
