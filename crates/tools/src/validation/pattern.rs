//! Rules about texts that have to match a pattern, or must not.
//!
//! The time of a match grows with the size of the pattern times the size of the text, so both are bounded. A text beyond the bound
//! has not passed.

use regex_lite::Regex;
use windlass_engine::validation::{PatternRule, PatternTarget};
use windlass_hooks::SecretMask;

use super::{RuleFinding, ValidationInput, quote_excerpt};

/// Maximum size of the text.
const MAX_SEARCHED_BYTES: usize = 128 * 1024;

pub fn check_pattern(rule: &PatternRule, matter: ValidationInput<'_>, mask: &SecretMask) -> RuleFinding {
    let regex = match rule.build_regex() {
        Ok(regex) => regex,
        Err(error) => {
            let pattern = quote_excerpt(&rule.pattern);
            return RuleFinding::failed(format!("{pattern} is not a valid regular expression: {error}; correct it"));
        }
    };
    let finder = PatternFinder { regex, mask };
    match rule.target {
        PatternTarget::AgentOutput => check_agent_output(rule, &finder, matter.agent_output),
        PatternTarget::TaskNotes => check_task_notes(rule, &finder, matter.task_notes),
    }
}

fn check_agent_output(rule: &PatternRule, finder: &PatternFinder<'_>, output: Option<&str>) -> RuleFinding {
    let Some(output) = output else {
        return RuleFinding::failed("there is no agent output to search: give it as `agentOutput`");
    };
    if output.len() > MAX_SEARCHED_BYTES {
        return RuleFinding::failed(format!(
            "the agent's output has {} bytes, and at most {MAX_SEARCHED_BYTES} are searched: give the part that matters as `agentOutput`",
            output.len()
        ));
    }
    let pattern = quote_excerpt(&rule.pattern);
    match (finder.find_masked_line(output), rule.must_match()) {
        (Some(line), true) => RuleFinding::passed(format!("{pattern} is in the agent's output, in {line}")),
        (None, false) => RuleFinding::passed(format!("{pattern} is not in the agent's output")),
        (None, true) => {
            RuleFinding::failed(format!("{pattern} is not in the agent's output: it has to say something that matches"))
        }
        (Some(line), false) => RuleFinding::failed(format!(
            "{pattern} must not be in the agent's output, and is, in {line}: fix what it reports"
        )),
    }
}

fn check_task_notes(rule: &PatternRule, finder: &PatternFinder<'_>, notes: &[String]) -> RuleFinding {
    let pattern = quote_excerpt(&rule.pattern);
    let mut room = MAX_SEARCHED_BYTES;
    // The newest notes count most.
    let looked: Vec<&String> = notes
        .iter()
        .rev()
        .take_while(|note| {
            let fits = note.len() <= room;
            room = room.saturating_sub(note.len());
            fits
        })
        .collect();
    let line = looked.iter().find_map(|note| finder.find_masked_line(note));
    let left = notes.len() - looked.len();
    match (line, rule.must_match()) {
        (Some(line), true) => RuleFinding::passed(format!("{pattern} is in the task's notes: {line}")),
        (Some(line), false) => RuleFinding::failed(format!(
            "{pattern} must not be in the task's notes, and is: {line}. Fix what it reports"
        )),
        (None, _) if left > 0 => RuleFinding::failed(format!(
            "{pattern} is not in the newest {} notes, and the {left} older ones are too long to search: say it in a new \
             note, or use a rule over `agent_output`",
            looked.len()
        )),
        (None, false) => RuleFinding::passed(format!("{pattern} is not in the task's notes")),
        (None, true) if notes.is_empty() => RuleFinding::failed(format!(
            "{pattern} is not in the task's notes, because there are none: add one with `note_add`"
        )),
        (None, true) => {
            RuleFinding::failed(format!("{pattern} is not in the task's notes: add one that matches with `note_add`"))
        }
    }
}

struct PatternFinder<'a> {
    regex: Regex,
    mask: &'a SecretMask,
}

impl PatternFinder<'_> {
    /// Returns the line of the first match. It is masked before it is cut: half a secret is a secret, too.
    fn find_masked_line(&self, text: &str) -> Option<String> {
        let at = self.regex.find(text)?.start();
        let before = &text[..at];
        let start = before.rfind('\n').map_or(0, |end| end + 1);
        let line = text[start..].lines().next().unwrap_or_default();
        Some(format!("line {}: {}", before.matches('\n').count() + 1, quote_excerpt(&self.mask.mask_text(line))))
    }
}
