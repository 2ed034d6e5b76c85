//! Tools as commands of the command line: the same call, told to a person.

use serde::Deserialize as _;
use serde_json::Value;
use windlass_engine::Timestamp;
use windlass_tools::{self as tools, Control, Desk, ToolError, catalogue};

use crate::context::Context;
use crate::dispatch;
use crate::failure::{Code, Failure};
use crate::ground::ProjectGround;
use crate::{remedy, show};

/// Calls a tool. What it answers is what a program is shown of it.
pub fn call(context: &Context, tool: &str, arguments: Value) -> Result<Value, Failure> {
    let mut desk = Desk::new(ProjectGround::new(context.open()?));
    if desk.is_quick(tool, &arguments) {
        return desk.call(tool, arguments, &Control::new()).map_err(told);
    }
    let (control, received) = dispatch::listen()?;
    desk.call(tool, arguments, &control).map_err(|error| told(error).by(received.first()))
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

/// A tool's error, in the words of the command line.
fn told(error: ToolError) -> Failure {
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
    let causes = error.causes.iter().map(|cause| words(cause)).collect();
    Failure { code, message: words(&error.message), causes, hint: error.hint.as_deref().map(words), picture: None }
}

/// Where one tool is several commands, or takes another word.
const OWN: [(&str, &str); 3] = [
    ("`task_list` shows the tasks", "`windlass task list --all` shows every task"),
    ("to blocked with `task_update`", "to blocked with `windlass task block`"),
    ("`task_update` with state ready", "`windlass task unblock`"),
];

/// A person calls commands, and no tools.
pub fn words(text: &str) -> String {
    let text = OWN.iter().fold(text.to_owned(), |text, (tool, command)| text.replace(tool, command));
    catalogue().iter().fold(text, |text, tool| {
        let command = format!("`{}`", tool.twin);
        text.replace(&format!("`{}`", tool.name), &command).replace(tool.name, &command)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_called_by_their_commands() {
        assert_eq!(words("`task_get` or task_next"), "`windlass task show` or `windlass task next`");
        assert_eq!(words("`task_list` shows the tasks"), "`windlass task list --all` shows every task");
        assert_eq!(words("`task_update` with state ready unblocks it"), "`windlass task unblock` unblocks it");
        let stuck = "set T1 to blocked with `task_update`, for a person";
        assert_eq!(words(stuck), "set T1 to blocked with `windlass task block`, for a person");
    }
}
