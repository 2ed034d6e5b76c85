//! Tools as commands of the command line: the same call, told to a person.

use serde::Deserialize as _;
use serde_json::Value;
use windlass_engine::Timestamp;
use windlass_tools::{self as tools, Control, Desk, Effect, ToolError, catalogue};

use crate::context::Context;
use crate::dispatch;
use crate::failure::{Code, Failure};
use crate::ground::ProjectGround;
use crate::{remedy, show};

/// Calls a tool. What it answers is what a program is shown of it.
pub fn call(context: &Context, tool: &str, arguments: Value) -> Result<Value, Failure> {
    let only_reads = catalogue().iter().any(|known| known.name == tool && known.effect == Effect::ReadOnly);
    let opened = if only_reads { context.open_to_read()? } else { context.open()? };
    let mut desk = Desk::new(ProjectGround::new(opened));
    let given = named(&arguments);
    if desk.is_quick(tool, &arguments) {
        return desk.call(tool, arguments, &Control::new()).map_err(|error| told(error, &given));
    }
    let (control, received) = dispatch::listen()?;
    desk.call(tool, arguments, &control).map_err(|error| told(error, &given).by(received.first()))
}

/// Texts that were given and name a tool, longest first: where an error repeats one, it stays as it is.
fn named(arguments: &Value) -> Vec<String> {
    fn collect(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::String(text) if catalogue().iter().any(|tool| text.contains(tool.name)) => found.push(text.clone()),
            Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
            Value::Object(fields) => fields.values().for_each(|field| collect(field, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    collect(arguments, &mut found);
    found.sort_by_key(|text| std::cmp::Reverse(text.len()));
    found
}

/// A text of an answer, as a line for people.
pub fn text(value: &Value) -> String {
    crate::text::line(value.as_str().unwrap_or_default()).into_owned()
}

/// A moment of an answer, as people tell the time.
pub fn moment(value: &Value) -> String {
    let at = Timestamp::deserialize(value);
    at.map_or_else(|_| text(value), |at| show::moment(at).to_string())
}

/// A tool's error, in the words of the command line. Causes are not in the words of the tools: programs and systems gave them.
fn told(error: ToolError, given: &[String]) -> Failure {
    let code = match error.code {
        tools::Code::UnknownTool | tools::Code::Invalid => Code::Usage,
        tools::Code::NotFound => Code::NotFound,
        tools::Code::Refused => Code::Refused,
        tools::Code::Trust => Code::Trust,
        tools::Code::Config => Code::Config,
        tools::Code::Store => Code::Store,
        tools::Code::System => Code::System,
        tools::Code::Interrupted => Code::Interrupted(remedy::SIGINT),
    };
    let (message, hint) = (around(&error.message, given), error.hint.map(|hint| around(&hint, given)));
    Failure { code, message, causes: error.causes, hint, picture: None }
}

/// A text in the words of the command line, but for what in it was given.
fn around(text: &str, given: &[String]) -> String {
    match given {
        [] => words(text),
        [first, others @ ..] => {
            let parts: Vec<_> = text.split(first.as_str()).map(|part| around(part, others)).collect();
            parts.join(first)
        }
    }
}

/// Where one tool is several commands, or takes another word.
const OWN: [(&str, &str); 3] = [
    ("`task_list` shows the tasks", "`windlass task list --all` shows every task"),
    ("to blocked with `task_update`", "to blocked with `windlass task block`"),
    ("`task_update` with state ready", "`windlass task unblock`"),
];

/// Tools whose hints name a task, with the command around its id.
const WITH_TASK: [(&str, &str, &str); 2] = [
    ("`hook_clear` with taskId ", "`windlass hooks clear ", "`"),
    ("`note_add` with taskId ", "`windlass note add --task ", " TEXT`"),
];

/// Returns the text with the command of a tool in place of the tool and the id of its task.
fn with_task(text: &str, (tool, command, end): (&str, &str, &str)) -> String {
    let mut parts = text.split(tool);
    let mut told = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (id, rest) = part.split_at(part.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(part.len()));
        told.extend([command, id, end, rest]);
    }
    told
}

/// A person calls commands, and no tools.
pub fn words(text: &str) -> String {
    let text = WITH_TASK.iter().fold(text.to_owned(), |text, named| with_task(&text, *named));
    let text = OWN.iter().fold(text, |text, (tool, command)| text.replace(tool, command));
    catalogue().iter().fold(text, |text, tool| {
        let command = format!("`{}`", tool.twin);
        text.replace(&format!("`{}`", tool.name), &command).replace(tool.name, &command)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only what we say ourselves is put in other words.
    #[test]
    fn what_was_given_stays_as_it_was() {
        let given = named(&serde_json::json!({"goal": "ask task_get", "labels": ["task_get", "other"]}));
        assert_eq!(given, ["ask task_get", "task_get"]);
        let message = "labels[0]: `task_get` is no label, nor is ask task_get; `task_list` shows them";
        let expected = "labels[0]: `task_get` is no label, nor is ask task_get; `windlass task list` shows them";
        let error = ToolError { causes: vec!["task_get".to_owned()], ..ToolError::new(tools::Code::Invalid, message) };
        let failure = told(error.hint("`task_next`"), &given);
        assert_eq!(failure.message, expected);
        assert_eq!(failure.causes, ["task_get"]);
        assert_eq!(failure.hint.as_deref(), Some("`windlass task next`"));
    }

    #[test]
    fn tools_are_called_by_their_commands() {
        assert_eq!(words("`task_get` or task_next"), "`windlass task show` or `windlass task next`");
        let notes = "`note_add` with taskId T2 tells that run; `hook_clear` with taskId T1";
        assert_eq!(words(notes), "`windlass note add --task T2 TEXT` tells that run; `windlass hooks clear T1`");
        assert_eq!(words("`task_list` shows the tasks"), "`windlass task list --all` shows every task");
        assert_eq!(words("`task_update` with state ready unblocks it"), "`windlass task unblock` unblocks it");
        let stuck = "set T1 to blocked with `task_update`, for a person";
        assert_eq!(words(stuck), "set T1 to blocked with `windlass task block`, for a person");
    }
}
