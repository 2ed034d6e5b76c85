//! Catalogue of the tools.

use windlass_expr::nearest;

use crate::error::{Code, ToolError};
use crate::tool::Tool;
use crate::{checkpoint, hook, iteration, note, session, shown, task};

/// Returns every tool, in the order of the list.
pub fn catalogue() -> &'static [Tool] {
    TOOLS
}

const TOOLS: &[Tool] = &[
    iteration::START,
    iteration::VALIDATE,
    iteration::NEXT,
    iteration::COMPLETE,
    hook::REGISTER,
    hook::EVALUATE,
    hook::LIST,
    hook::CLEAR,
    checkpoint::CREATE,
    checkpoint::LIST,
    checkpoint::RESUME,
    task::CREATE,
    task::GET,
    task::LIST,
    task::UPDATE,
    task::NEXT,
    note::ADD,
    session::COMPLETE,
];

/// Returns the tool of a name.
pub fn find(name: &str) -> Result<&'static Tool, ToolError> {
    TOOLS.iter().find(|tool| tool.name == name).ok_or_else(|| {
        let names: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
        let hint = match nearest(name, &names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are {}", names.join(", ")),
        };
        ToolError::new(Code::UnknownTool, format!("there is no tool `{}`", shown::text(name))).hint(hint)
    })
}
