//! The findings of an import from another system, as a person sees them.

use std::path::Path;

use serde_json::{Value, json};
use windlass_app::{Code, Failure};
use windlass_config::Config;
use windlass_config::edit::{EditObstacle, HookField};
use windlass_config::import::{
    self, Additions, Dialect, HookChange, HookImport, ImportRemark, ImportedAction, ImportedHook, ImportedSetting,
    ImportedTuning,
};
use windlass_text as text;

use crate::commands::confirm;
use crate::output::{Done, Messages, Output, Stop, Tone};

/// The hooks of a foreign file, and the additions to the configuration that they lead to.
pub struct ImportFindings<'a> {
    pub file: &'a Path,
    pub config: &'a Config,
    pub import: &'a HookImport,
    pub additions: &'a Additions,
}

impl ImportFindings<'_> {
    /// Returns a heading that names the origin of the hooks and the unit of their timeouts.
    fn head(&self) -> String {
        let file = self.file.to_string_lossy();
        let from = self.import.from;
        match from {
            Dialect::Automation => format!("{file}: {}", from.title()),
            _ => format!("{file}: hooks of {}; a `timeout` there is in {}", from.title(), from.unit().title()),
        }
    }

    fn left_out(&self) -> Vec<&ImportRemark> {
        let mut left_out: Vec<_> = self.import.left_out.iter().chain(&self.additions.left_out).collect();
        left_out.sort_by_key(|remark| remark.line);
        left_out
    }

    fn remarks(&self) -> impl Iterator<Item = &ImportRemark> {
        self.import.notes.iter().chain(&self.additions.notes)
    }

    /// Prints the YAML to standard output, and everything else to standard error.
    pub fn print(&self, out: &mut Output) -> Done {
        if out.is_json() {
            return out.object(&self.as_json(false));
        }
        let mut messages = Messages::new();
        messages.note(&self.head());
        for remark in self.left_out() {
            messages.warning(&format!("left out: {}", placed(remark)));
        }
        for remark in self.remarks() {
            messages.note(&placed(remark));
        }
        for change in &self.additions.changes {
            messages.note(&format!("line {}: would be changed: {}", change.line, changed(change)));
        }
        if self.additions.is_empty() {
            messages.note(&self.nothing());
        }
        if self.additions.is_no_more() {
            return Ok(());
        }
        self.lines(&import::fragment(self.additions), out)
    }

    fn lines(&self, yaml: &str, out: &mut Output) -> Done {
        yaml.lines().try_for_each(|line| out.line(text::lines(line)))
    }

    pub fn show(&self, out: &mut Output) -> Done {
        out.line(text::line(&self.head()))?;
        let file = self.config.file().to_string_lossy().into_owned();
        if !self.additions.is_no_more() {
            out.line(format_args!("to be added to {}:", text::line(&file)))?;
            out.line("")?;
            self.lines(&import::fragment(self.additions), out)?;
        }
        if !self.additions.changes.is_empty() {
            if !self.additions.is_no_more() {
                out.line("")?;
            }
            out.line(format_args!("to be changed in {}:", text::line(&file)))?;
        }
        for change in &self.additions.changes {
            out.line(format_args!("  {}", text::line(&changed(change))))?;
        }
        let left_out = self.left_out();
        if !left_out.is_empty() {
            out.line("")?;
            out.line(out.paint(Tone::Warning, "left out:"))?;
        }
        for remark in left_out {
            out.line(format_args!("  {}", text::line(&placed(remark))))?;
        }
        let notes: Vec<String> = self.remarks().map(placed).collect();
        if !notes.is_empty() {
            out.line("")?;
        }
        notes
            .iter()
            .try_for_each(|note| out.line(format_args!("{}: {}", out.paint(Tone::Faint, "note"), text::line(note))))?;
        Ok(())
    }

    /// Shows the additions and continues only if a person agrees.
    pub fn ask(&self, out: &mut Output) -> Done {
        if !out.is_json() {
            self.show(out)?;
            out.line("")?;
        }
        if !confirm::can_ask(out) {
            let refused = unwritten("nobody can be asked here");
            return Err(refused.hint("`--yes` adds it without asking, `--dry-run` only prints it").into());
        }
        let question = if self.additions.changes.is_empty() { "Add it?" } else { "Write it?" };
        match confirm::ask(question, out)? {
            true => Ok(()),
            false => Err(unwritten("the answer was no").into()),
        }
    }

    /// Shows the additions that cannot be written, and returns the failure.
    pub fn refuse(&self, obstacle: &EditObstacle, out: &mut Output) -> Stop {
        let file = self.config.file().display();
        let failure = Failure::new(Code::Config, format!("cannot add to `{file}`: {obstacle}"));
        if out.is_json() {
            return failure.hint("`--dry-run` prints what to add by hand").into();
        }
        match self.show(out) {
            Err(stop) => stop,
            Ok(()) => failure.hint("add the lines above by hand; nothing was written").into(),
        }
    }

    /// Counts the hooks of the file that the configuration already has.
    fn present(&self) -> usize {
        self.additions.present.len() + self.additions.settled.len()
    }

    fn nothing(&self) -> String {
        let is_none = self.import.hooks.is_empty() && self.import.tuned.is_empty() && self.import.left_out.is_empty();
        match (self.present(), is_none) {
            (0, true) => "there are no hooks in it, and nothing was added".to_owned(),
            (0, false) => "nothing was added".to_owned(),
            (1, _) => "the hook is in the configuration already; nothing was added".to_owned(),
            (count, _) => format!("{count} hooks are in the configuration already; nothing was added"),
        }
    }

    pub fn finish(&self, written: bool, out: &mut Output) -> Done {
        if out.is_json() {
            return out.object(&self.as_json(written));
        }
        if !written {
            self.show(out)?;
            return out.line(self.nothing());
        }
        out.line("")?;
        let count = match (self.additions.hooks.len(), self.present()) {
            (0, _) => "settings alone; the hooks were there already".to_owned(),
            (1, 0) => "1 hook".to_owned(),
            (count, 0) => format!("{count} hooks"),
            (count, present) => format!("{count} of {} hooks; the others were there already", count + present),
        };
        let file = self.config.file().to_string_lossy().into_owned();
        if !self.additions.is_no_more() {
            out.line(format_args!("{} to {}: {count}", out.paint(Tone::Good, "added"), text::line(&file)))?;
        }
        let hooks = match self.additions.changes.len() {
            0 => None,
            1 => Some("1 hook".to_owned()),
            count => Some(format!("{count} hooks")),
        };
        if let Some(hooks) = hooks {
            out.line(format_args!("{} in {}: {hooks}", out.paint(Tone::Good, "changed"), text::line(&file)))?;
        }
        let file = self.file.to_string_lossy();
        if let Some(agent) = self.import.from.agent() {
            out.line(text::line(&format!(
                "They still stand in {file}, and {} runs them. Take them out there when you `windlass install {agent}`, or they run twice.",
                agent.title()
            )))?;
        }
        out.line("Nothing of the configuration runs until you have trusted it as it is now: `windlass trust`.")
    }

    fn as_json(&self, written: bool) -> Value {
        let remarks = |remarks: &[&ImportRemark]| -> Value {
            remarks.iter().map(|remark| json!({"line": remark.line, "text": remark.text})).collect()
        };
        let settings: serde_json::Map<_, _> = self.additions.settings.iter().map(setting).collect();
        json!({
            "file": self.file.to_string_lossy(),
            "from": self.import.from.name(),
            "unit": (self.import.from != Dialect::Automation).then(|| self.import.from.unit().title()),
            "config": self.config.file().to_string_lossy(),
            "written": written,
            "added": self.additions.hooks.iter().map(hook).collect::<Vec<_>>(),
            "changed": self.additions.changes.iter().map(change).collect::<Vec<_>>(),
            "present": self.additions.present.iter().map(hook).chain(self.additions.settled.iter().map(settled)).collect::<Vec<_>>(),
            "settings": settings,
            "leftOut": remarks(&self.left_out()),
            "notes": remarks(&self.remarks().collect::<Vec<_>>()),
            "yaml": import::fragment(self.additions),
        })
    }
}

/// Describes the fields of an existing hook that the import changes.
fn changed(change: &HookChange) -> String {
    let fields: Vec<String> = change.fields.iter().map(|field| format!("`{field}`")).collect();
    format!("{} (line {}): {}", change.name, change.at, fields.join(", "))
}

fn change(change: &HookChange) -> Value {
    let mut shown = json!({"name": change.name, "line": change.line, "at": change.at});
    for field in &change.fields {
        match field {
            HookField::Enabled(on) => shown["enabled"] = json!(on),
            HookField::Priority(priority) => shown["priority"] = json!(priority),
        }
    }
    shown
}

fn settled(tuned: &ImportedTuning) -> Value {
    json!({"name": tuned.name, "line": tuned.line})
}

fn unwritten(cause: &str) -> Failure {
    Failure::new(Code::Usage, "nothing was written").caused_by(cause)
}

fn placed(remark: &ImportRemark) -> String {
    match remark.line {
        Some(line) => format!("line {line}: {}", remark.text),
        None => remark.text.clone(),
    }
}

fn setting(setting: &ImportedSetting) -> (String, Value) {
    let (name, value) = match setting {
        ImportedSetting::MaxHookRetries(most) => ("max_hook_retries", json!(most)),
        ImportedSetting::NotStrict => ("strict", json!(false)),
        ImportedSetting::CompleteAtLimit => ("on_retry_limit", json!("complete")),
    };
    (name.to_owned(), value)
}

fn hook(hook: &ImportedHook) -> Value {
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
