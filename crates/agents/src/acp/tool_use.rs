//! The tool uses of a turn, from updates that each carry a part.
//!
//! Invariant: memory is bounded, however many tool uses there are.

use serde::Deserialize;
use serde_json::Value;

use super::permissions::ToolKind;

/// How many tool uses are tracked at a time. The oldest are dropped first.
const MAX_TRACKED_TOOL_USES: usize = 256;
/// The longest title that is kept.
const MAX_TITLE_LENGTH: usize = 400;

/// A tool use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolUse {
    pub title: String,
    pub kind: ToolKind,
    pub status: ToolUseStatus,
}

impl ToolUse {
    /// Merges an update. Fields that the update leaves out keep their value.
    fn merge_description(&mut self, call: &Value) {
        if let Some(title) = call["title"].as_str().filter(|title| !title.trim().is_empty()) {
            self.title = title[..title.floor_char_boundary(MAX_TITLE_LENGTH)].to_owned();
        }
        self.kind = call["kind"].as_str().and_then(ToolKind::from_name).unwrap_or(self.kind);
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolUseStatus {
    #[default]
    Pending,
    InProgress,
    Completed,
    Failed,
}

impl ToolUseStatus {
    pub fn is_finished(self) -> bool {
        matches!(self, Self::Completed | Self::Failed)
    }
}

#[derive(Debug, Default)]
pub struct ToolUseTracker {
    known: Vec<(String, ToolUse)>,
    /// How many tools were used in this turn.
    used: u64,
}

/// The change that an update made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolUseChange {
    /// The tool use is new.
    Began(ToolUse),
    /// The tool use has ended, successfully or not.
    Ended(ToolUse),
}

impl ToolUseTracker {
    pub fn begin_turn(&mut self) {
        *self = Self::default();
    }

    pub fn used_count(&self) -> u64 {
        self.used
    }

    /// Applies an update, which holds all fields or only the changed ones.
    pub fn apply_update(&mut self, call: &Value) -> Option<ToolUseChange> {
        let id = call["toolCallId"].as_str().unwrap_or_default();
        let index = self.known.iter().position(|(known, _)| known == id);
        let mut tool = index.map(|index| self.known[index].1.clone()).unwrap_or_default();
        let before = tool.status;
        tool.merge_description(call);
        tool.status = ToolUseStatus::deserialize(&call["status"]).unwrap_or(tool.status);
        match index {
            Some(index) => self.known[index].1 = tool.clone(),
            None => {
                if self.known.len() == MAX_TRACKED_TOOL_USES {
                    self.known.remove(0);
                }
                self.known.push((id.to_owned(), tool.clone()));
                self.used += 1;
            }
        }
        if tool.status.is_finished() && !before.is_finished() {
            return Some(ToolUseChange::Ended(tool));
        }
        index.is_none().then_some(ToolUseChange::Began(tool))
    }

    /// Returns the tool use that a permission request is about: the fields of the request, and the tracked ones.
    pub fn find_asked_tool(&self, call: &Value) -> ToolUse {
        let id = call["toolCallId"].as_str().unwrap_or_default();
        let mut tool =
            self.known.iter().find(|(known, _)| known == id).map(|(_, tool)| tool.clone()).unwrap_or_default();
        tool.merge_description(call);
        tool
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tool_use_is_reported_at_its_start_and_end() {
        let mut tools = ToolUseTracker::default();
        let tool = |title: &str, kind, status| ToolUse { title: title.to_owned(), kind, status };
        let mut check = |call: Value, expected| assert_eq!(tools.heed(&call), expected, "{call}");
        let began = ToolUseChange::Began(tool("Run", ToolKind::Execute, ToolUseStatus::Pending));
        check(json!({"toolCallId": "1", "title": "Run", "kind": "execute"}), Some(began));
        check(json!({"toolCallId": "1", "title": "Run ls", "status": "in_progress"}), None);
        let ended = ToolUseChange::Ended(tool("Run ls", ToolKind::Execute, ToolUseStatus::Failed));
        check(json!({"toolCallId": "1", "status": "failed"}), Some(ended));
        check(json!({"toolCallId": "1", "status": "completed"}), None);
        let at_once = ToolUseChange::Ended(tool("Read a", ToolKind::Other, ToolUseStatus::Completed));
        check(json!({"toolCallId": "2", "title": "Read a", "kind": "novel", "status": "completed"}), Some(at_once));
        assert_eq!(tools.used(), 2);
        assert_eq!(tools.asked(&json!({"toolCallId": "1"})).kind, ToolKind::Execute);
        assert_eq!(tools.asked(&json!({"toolCallId": "1", "kind": "edit"})).kind, ToolKind::Edit);
        assert_eq!(tools.asked(&json!({"toolCallId": "9"})), Tool::default());
    }

    #[test]
    fn tracked_tool_uses_are_bounded() {
        let mut tools = ToolUseTracker::default();
        for number in 0..10_000 {
            tools.apply_update(&json!({"toolCallId": number.to_string(), "title": "x".repeat(MAX_TITLE_LENGTH * 2)}));
        }
        assert_eq!((tools.known.len(), tools.used()), (KNOWN, 10_000));
        assert!(tools.known.iter().all(|(_, tool)| tool.title.len() == MAX_TITLE_LENGTH));
    }
}
