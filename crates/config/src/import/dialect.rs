//! The dialects of imported files, and their differences: units, defaults, matchers.

use std::path::Path;
use std::time::Duration;

use windlass_bridge::{AgentHookEvent, BridgeAgent};

use super::json_fields::{self, find_entry};
use crate::{ConfigNode, ConfigProblem, NodeValue, parse_hook_point};

/// The system whose file is imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportDialect {
    Claude,
    Codemie,
    Codex,
    Gemini,
    Qwen,
    Automation,
}

/// The unit of a timeout without one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeoutUnit {
    Seconds,
    Milliseconds,
    /// Seconds, and from 1000 on milliseconds.
    Either,
}

/// The directories in which agents keep settings with hooks.
const DIALECT_DIRECTORIES: &[(&str, ImportDialect)] = &[
    (".claude", ImportDialect::Claude),
    (".codemie", ImportDialect::Codemie),
    (".codex", ImportDialect::Codex),
    (".gemini", ImportDialect::Gemini),
    (".qwen", ImportDialect::Qwen),
];

/// Gemini CLI's names of events that differ from Claude Code's.
const GEMINI_EVENTS: &[(&str, AgentHookEvent)] = &[
    ("BeforeTool", AgentHookEvent::PreToolUse),
    ("AfterTool", AgentHookEvent::PostToolUse),
    ("BeforeAgent", AgentHookEvent::UserPromptSubmit),
    ("AfterAgent", AgentHookEvent::Stop),
    ("PreCompress", AgentHookEvent::PreCompact),
];

impl ImportDialect {
    pub const ALL: [Self; 6] = [Self::Claude, Self::Codemie, Self::Codex, Self::Gemini, Self::Qwen, Self::Automation];

    /// Returns the system with its file, for help texts.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code: `.claude/settings.json`",
            Self::Codemie => "codemie: `.codemie/codemie-cli.config.json`",
            Self::Codex => "Codex: `.codex/hooks.json`",
            Self::Gemini => "Gemini CLI: `.gemini/settings.json`",
            Self::Qwen => "Qwen Code: `.qwen/settings.json`",
            Self::Automation => "A list of named hooks with event types: `automation-hooks.json`",
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codemie => "codemie",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Qwen => "qwen",
            Self::Automation => "automation",
        }
    }

    /// Returns the name of the system for messages.
    pub fn title(self) -> &'static str {
        match self {
            Self::Codemie => "codemie",
            Self::Automation => "automation hooks",
            _ => self.bridge_agent().map_or("", BridgeAgent::title),
        }
    }

    /// Returns the agent whose bridge can call Windlass.
    pub fn bridge_agent(self) -> Option<BridgeAgent> {
        match self {
            Self::Claude => Some(BridgeAgent::Claude),
            Self::Codex => Some(BridgeAgent::Codex),
            Self::Gemini => Some(BridgeAgent::Gemini),
            Self::Qwen => Some(BridgeAgent::Qwen),
            Self::Codemie | Self::Automation => None,
        }
    }

    pub const fn timeout_unit(self) -> TimeoutUnit {
        match self {
            Self::Claude | Self::Codex | Self::Automation => TimeoutUnit::Seconds,
            Self::Codemie | Self::Gemini => TimeoutUnit::Milliseconds,
            Self::Qwen => TimeoutUnit::Either,
        }
    }

    /// Returns the timeout of a command without one.
    pub const fn default_timeout(self) -> Duration {
        match self {
            Self::Claude | Self::Codex | Self::Automation => Duration::from_mins(10),
            Self::Codemie | Self::Gemini | Self::Qwen => Duration::from_mins(1),
        }
    }

    /// Returns the hook event for an event's name in this dialect.
    pub fn find_event(self, event: &str) -> Option<AgentHookEvent> {
        let usual = || AgentHookEvent::ALL.iter().copied().find(|moment| moment.claude_event_name() == event);
        if self != Self::Gemini {
            return usual();
        }
        let shared = ["SessionStart", "SessionEnd", "Notification"].contains(&event);
        GEMINI_EVENTS
            .iter()
            .find(|(name, _)| *name == event)
            .map(|(_, moment)| *moment)
            .or_else(|| usual().filter(|_| shared))
    }

    /// Returns whether the model reads the output of a hook at this event.
    pub fn shows_output_to_model(self, moment: AgentHookEvent) -> bool {
        let speaks = matches!(moment, AgentHookEvent::SessionStart | AgentHookEvent::UserPromptSubmit);
        speaks && matches!(self, Self::Claude | Self::Codex | Self::Codemie)
    }

    /// Returns whether the dialect uses a matcher at this event.
    pub fn uses_matcher(self, moment: AgentHookEvent) -> bool {
        match (self, moment) {
            (_, AgentHookEvent::PreToolUse | AgentHookEvent::PostToolUse) | (Self::Codemie, _) => true,
            (_, AgentHookEvent::Stop | AgentHookEvent::UserPromptSubmit)
            | (Self::Codex, AgentHookEvent::PreCompact) => false,
            _ => true,
        }
    }
}

impl TimeoutUnit {
    /// Returns the unit's name for messages.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Seconds => "seconds",
            Self::Milliseconds => "milliseconds",
            Self::Either => "seconds, and milliseconds from 1000 on",
        }
    }

    /// Converts a number in this unit to a duration.
    pub fn to_duration(self, number: f64) -> Option<Duration> {
        let seconds = match self {
            Self::Seconds => number,
            Self::Milliseconds => number / 1000.0,
            Self::Either if number >= 1000.0 => number / 1000.0,
            Self::Either => number,
        };
        let time = Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero())?;
        // No program ends in less than a millisecond.
        Some(time.max(Duration::from_millis(1)))
    }
}

/// Detects the dialect of a file from its content and its path.
pub fn detect_dialect(path: &Path, tree: &ConfigNode) -> Result<ImportDialect, ConfigProblem> {
    let unknown = |message: &str| {
        ConfigProblem::new(message).with_suggestion(
            "name the agent: `--from claude`, `codemie`, `codex`, `gemini`, `qwen` or `automation`".to_owned(),
        )
    };
    json_fields::expect_object(tree, "the file")?;
    let hooks = find_entry(tree, "hooks").map(|(_, hooks)| hooks);
    if matches!(hooks, Some(ConfigNode { value: NodeValue::List(_), .. })) {
        return Ok(ImportDialect::Automation);
    }
    // The innermost directory counts.
    let folders = path.components().rev().filter_map(|part| part.as_os_str().to_str());
    let place = folders.filter_map(|part| DIALECT_DIRECTORIES.iter().find(|(name, _)| *name == part)).next();
    if let Some((_, dialect)) = place {
        return Ok(*dialect);
    }
    let file = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if file.starts_with("codemie") || find_entry(tree, "maxHookRetries").is_some() || has_profiles(tree) {
        return Ok(ImportDialect::Codemie);
    }
    let Some(ConfigNode { value: NodeValue::Map(events), .. }) = hooks else {
        return Err(unknown("there are no `hooks` in this file"));
    };
    let has =
        |names: &dyn Fn(&str) -> bool| events.iter().any(|(event, _)| json_fields::key_text(event).is_some_and(names));
    if has(&|event| GEMINI_EVENTS.iter().any(|(name, _)| *name == event)) {
        return Ok(ImportDialect::Gemini);
    }
    match has(&|event| parse_hook_point(event).is_some() && event.starts_with(|first: char| first.is_ascii_uppercase()))
    {
        true => Ok(ImportDialect::Claude),
        false => Err(unknown("cannot tell which agent these hooks belong to")),
    }
}

/// Returns whether the file holds profiles, as codemie's own file does.
fn has_profiles(tree: &ConfigNode) -> bool {
    find_entry(tree, "activeProfile").is_some() && find_entry(tree, "profiles").is_some()
}

#[cfg(test)]
mod tests {
    use super::super::json;
    use super::*;

    #[test]
    fn files_are_known_by_their_content_and_their_place() {
        let check = |path: &str, text: &str, expected: ImportDialect| {
            assert_eq!(
                detect_dialect(Path::new(path), &json::parse_json(text).unwrap()),
                Ok(expected),
                "{path} {text}"
            );
        };
        let stop = r#"{"hooks": {"Stop": []}}"#;
        check(".claude/settings.json", stop, ImportDialect::Claude);
        check(".claude/settings.local.json", "{}", ImportDialect::Claude);
        check("/home/ann/.codex/hooks.json", stop, ImportDialect::Codex);
        check(".qwen/settings.json", stop, ImportDialect::Qwen);
        check(".gemini/settings.json", stop, ImportDialect::Gemini);
        check(".codemie/codemie-cli.config.json", stop, ImportDialect::Codemie);
        check("codemie-cli.config.json", stop, ImportDialect::Codemie);
        check("x.json", r#"{"maxHookRetries": 3}"#, ImportDialect::Codemie);
        check("x.json", r#"{"activeProfile": "work", "profiles": {}}"#, ImportDialect::Codemie);
        check("x.json", r#"{"hooks": {"AfterAgent": []}}"#, ImportDialect::Gemini);
        check("x.json", stop, ImportDialect::Claude);
        check("data/automation-hooks.json", r#"{"hooks": []}"#, ImportDialect::Automation);
        // The innermost directory counts.
        check("/home/.claude/x/.qwen/settings.json", stop, ImportDialect::Qwen);
        for (path, text) in [("package.json", r#"{"name": "x"}"#), ("x.json", r#"{"hooks": {"pre-commit": []}}"#)] {
            assert!(detect_dialect(Path::new(path), &json::parse_json(text).unwrap()).is_err(), "{path}");
        }
        assert!(detect_dialect(Path::new("x.json"), &json::parse_json("[]").unwrap()).is_err());
    }

    #[test]
    fn numbers_have_the_units_of_their_agent() {
        let check = |unit: TimeoutUnit, number: f64, millis: u64| {
            assert_eq!(unit.to_duration(number), Some(Duration::from_millis(millis)), "{unit:?} {number}");
        };
        check(TimeoutUnit::Seconds, 30.0, 30_000);
        check(TimeoutUnit::Seconds, 0.5, 500);
        check(TimeoutUnit::Milliseconds, 1500.0, 1500);
        check(TimeoutUnit::Milliseconds, 0.2, 1);
        check(TimeoutUnit::Either, 999.0, 999_000);
        check(TimeoutUnit::Either, 1000.0, 1000);
        for none in [0.0, -1.0, f64::INFINITY, 1e300] {
            assert_eq!(TimeoutUnit::Seconds.to_duration(none), None);
        }
    }
}
