//! Catalogue of the tools.

use windlass_expr::nearest_name;

use crate::error::{ToolError, ToolErrorCode};
use crate::tool::ToolDefinition;
use crate::{checkpoint, hook, iteration, note, session, task, text_excerpt};

/// Returns every tool, in the order of the list.
pub fn tool_catalogue() -> &'static [ToolDefinition] {
    TOOLS
}

const TOOLS: &[ToolDefinition] = &[
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
pub fn find_tool(name: &str) -> Result<&'static ToolDefinition, ToolError> {
    TOOLS.iter().find(|tool| tool.name == name).ok_or_else(|| {
        let names: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
        let hint = match nearest_name(name, &names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are {}", names.join(", ")),
        };
        ToolError::new(ToolErrorCode::UnknownTool, format!("there is no tool `{}`", shown::text(name))).with_hint(hint)
    })
}
