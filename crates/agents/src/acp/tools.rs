//! The tool uses of a turn, from updates that each carry a part.
//!
//! Invariant: memory is bounded, however many tool uses there are.

use serde::Deserialize;
use serde_json::Value;

use super::permissions::ToolKind;

/// How many tool uses are tracked at a time. The oldest are dropped first.
const KNOWN: usize = 256;
/// The longest title that is kept.
const TITLE: usize = 400;

/// A tool use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tool {
    pub title: String,
    pub kind: ToolKind,
    pub status: Status,
}

impl Tool {
    /// Merges an update. Fields that the update leaves out keep their value.
    fn describe(&mut self, call: &Value) {
        if let Some(title) = call["title"].as_str().filter(|title| !title.trim().is_empty()) {
            self.title = title[..title.floor_char_boundary(TITLE)].to_owned();
        }
        self.kind = call["kind"].as_str().and_then(ToolKind::named).unwrap_or(self.kind);
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    #[default]
    Pending,
    InProgress,
    Completed,
    Failed,
}

impl Status {
    pub fn is_end(self) -> bool {
        matches!(self, Self::Completed | Self::Failed)
    }
}

#[derive(Debug, Default)]
pub struct Tools {
    known: Vec<(String, Tool)>,
    /// How many tools were used in this turn.
    used: u64,
}

/// The change that an update made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The tool use is new.
    Began(Tool),
    /// The tool use has ended, successfully or not.
    Ended(Tool),
}

impl Tools {
    pub fn begin_turn(&mut self) {
        *self = Self::default();
    }

    pub fn used(&self) -> u64 {
        self.used
    }

    /// Applies an update, which holds all fields or only the changed ones.
    pub fn heed(&mut self, call: &Value) -> Option<Change> {
        let id = call["toolCallId"].as_str().unwrap_or_default();
        let index = self.known.iter().position(|(known, _)| known == id);
        let mut tool = index.map(|index| self.known[index].1.clone()).unwrap_or_default();
        let before = tool.status;
        tool.describe(call);
        tool.status = Status::deserialize(&call["status"]).unwrap_or(tool.status);
        match index {
            Some(index) => self.known[index].1 = tool.clone(),
            None => {
                if self.known.len() == KNOWN {
                    self.known.remove(0);
                }
                self.known.push((id.to_owned(), tool.clone()));
                self.used += 1;
            }
        }
        if tool.status.is_end() && !before.is_end() {
            return Some(Change::Ended(tool));
        }
        index.is_none().then_some(Change::Began(tool))
    }

    /// Returns the tool use that a permission request is about: the fields of the request, and the tracked ones.
    pub fn asked(&self, call: &Value) -> Tool {
        let id = call["toolCallId"].as_str().unwrap_or_default();
        let mut tool =
            self.known.iter().find(|(known, _)| known == id).map(|(_, tool)| tool.clone()).unwrap_or_default();
        tool.describe(call);
        tool
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tool_is_told_of_when_it_begins_and_when_it_ends() {
        let mut tools = Tools::default();
        let tool = |title: &str, kind, status| Tool { title: title.to_owned(), kind, status };
        let mut check = |call: Value, expected| assert_eq!(tools.heed(&call), expected, "{call}");
        let began = Change::Began(tool("Run", ToolKind::Execute, Status::Pending));
        check(json!({"toolCallId": "1", "title": "Run", "kind": "execute"}), Some(began));
        check(json!({"toolCallId": "1", "title": "Run ls", "status": "in_progress"}), None);
        let ended = Change::Ended(tool("Run ls", ToolKind::Execute, Status::Failed));
        check(json!({"toolCallId": "1", "status": "failed"}), Some(ended));
        check(json!({"toolCallId": "1", "status": "completed"}), None);
        let at_once = Change::Ended(tool("Read a", ToolKind::Other, Status::Completed));
        check(json!({"toolCallId": "2", "title": "Read a", "kind": "novel", "status": "completed"}), Some(at_once));
        assert_eq!(tools.used(), 2);
        assert_eq!(tools.asked(&json!({"toolCallId": "1"})).kind, ToolKind::Execute);
        assert_eq!(tools.asked(&json!({"toolCallId": "1", "kind": "edit"})).kind, ToolKind::Edit);
        assert_eq!(tools.asked(&json!({"toolCallId": "9"})), Tool::default());
    }

    #[test]
    fn they_do_not_pile_up() {
        let mut tools = Tools::default();
        for number in 0..10_000 {
            tools.heed(&json!({"toolCallId": number.to_string(), "title": "x".repeat(TITLE * 2)}));
        }
        assert_eq!((tools.known.len(), tools.used()), (KNOWN, 10_000));
        assert!(tools.known.iter().all(|(_, tool)| tool.title.len() == TITLE));
    }
}
