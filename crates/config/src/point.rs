//! The spellings of hook points in configurations: our names, and those of agents' own hook systems.

use std::collections::BTreeSet;

use windlass_engine::{EventType, HookPoint};
use windlass_expr::to_snake_case;

/// Names that are not merely another case of a point's own.
const POINT_ALIASES: &[(&str, HookPoint)] = &[
    ("before_tool", HookPoint::PreToolUse),
    ("after_tool", HookPoint::PostToolUse),
    ("before_agent", HookPoint::UserPromptSubmit),
    ("before_submit_prompt", HookPoint::UserPromptSubmit),
    ("after_agent", HookPoint::Stop),
    ("agent_stop", HookPoint::Stop),
    ("pre_compress", HookPoint::PreCompact),
];

/// Parses a point in any agent's spelling: `stop`, `Stop`, `PreToolUse`, `pre-tool-use`. A name with a dot is a fact type of the
/// project: `review.passed`.
pub fn parse_hook_point(name: &str) -> Option<HookPoint> {
    if name.contains('.') {
        return name.parse().ok();
    }
    let name = to_snake_case(name);
    let alias = POINT_ALIASES.iter().find(|(alias, _)| *alias == name).map(|(_, point)| point.clone());
    alias.or_else(|| name.parse().ok())
}

/// Returns the points that may stand under `hooks`, without facts. Notices have their own section.
pub fn hook_points() -> impl Iterator<Item = HookPoint> {
    let named = HookPoint::NAMED.into_iter().filter(|point| *point != HookPoint::Notify);
    named.chain(EventType::ALL.iter().map(|event| HookPoint::Event(*event)))
}

/// Returns the names of [`hook_points`].
pub fn hook_point_names() -> Vec<String> {
    hook_points().map(|point| point.to_string()).collect()
}

/// Returns every spelling of a point: `pre_tool_use`, `PreToolUse`, `preToolUse`, and other agents' names for it.
pub fn hook_point_spellings() -> BTreeSet<String> {
    let names = hook_point_names().into_iter().chain(POINT_ALIASES.iter().map(|(alias, _)| (*alias).to_owned()));
    names.flat_map(|name| [to_pascal_case(&name), to_camel_case(&name), name]).collect()
}

fn to_pascal_case(name: &str) -> String {
    name.split('_').map(|word| word[..1].to_ascii_uppercase() + &word[1..]).collect()
}

fn to_camel_case(name: &str) -> String {
    let pascal = to_pascal_case(name);
    pascal[..1].to_ascii_lowercase() + &pascal[1..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_spellings_are_the_same_points() {
        let check = |name: &str, point: HookPoint| assert_eq!(parse_hook_point(name), Some(point), "{name}");
        check("stop", HookPoint::Stop);
        check("Stop", HookPoint::Stop);
        check("PreToolUse", HookPoint::PreToolUse);
        check("preToolUse", HookPoint::PreToolUse);
        check("SubagentStop", HookPoint::SubagentStop);
        check("SessionStart", HookPoint::SessionStart);
        check("BeforeTool", HookPoint::PreToolUse);
        check("AfterAgent", HookPoint::Stop);
        check("task_completed", HookPoint::Event(EventType::TaskCompleted));
        for wrong in ["pre_iterations", "", "Review.Passed", "review.", ".passed", "review..passed", "review.pas sed"] {
            assert_eq!(parse_hook_point(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn every_published_spelling_is_read() {
        for name in hook_point_spellings() {
            assert!(parse_hook_point(&name).is_some(), "{name}");
        }
    }
}
