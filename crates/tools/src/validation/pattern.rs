//! Rules about texts that have to match a pattern, or must not.
//!
//! The time of a match grows with the size of the pattern times the size of the text, so both are bounded. A text beyond the bound
//! has not passed.

use regex_lite::Regex;
use windlass_engine::validation::{PatternRule, Target};
use windlass_hooks::Mask;

use super::{Finding, Matter, quoted};

/// Maximum size of the text.
const MOST: usize = 128 * 1024;

pub fn look(rule: &PatternRule, matter: Matter<'_>, mask: &Mask) -> Finding {
    let regex = match rule.regex() {
        Ok(regex) => regex,
        Err(error) => {
            let pattern = quoted(&rule.pattern);
            return Finding::failed(format!(
                "{pattern} is no regular expression that can be used: {error}; correct it"
            ));
        }
    };
    let finder = Finder { regex, mask };
    match rule.target {
        Target::AgentOutput => in_output(rule, &finder, matter.agent_output),
        Target::TaskNotes => in_notes(rule, &finder, matter.task_notes),
    }
}

fn in_output(rule: &PatternRule, finder: &Finder<'_>, output: Option<&str>) -> Finding {
    let Some(output) = output else {
        return Finding::failed("there is no agent output to look at: give it as `agentOutput`");
    };
    if output.len() > MOST {
        return Finding::failed(format!(
            "the agent's output has {} bytes, and at most {MOST} are looked at: give the part that matters as `agentOutput`",
            output.len()
        ));
    }
    let pattern = quoted(&rule.pattern);
    match (finder.found(output), rule.must_match()) {
        (Some(line), true) => Finding::passed(format!("{pattern} is in the agent's output, in {line}")),
        (None, false) => Finding::passed(format!("{pattern} is not in the agent's output")),
        (None, true) => {
            Finding::failed(format!("{pattern} is not in the agent's output: it has to say something that matches"))
        }
        (Some(line), false) => Finding::failed(format!(
            "{pattern} must not be in the agent's output, and is, in {line}: see to what it says"
        )),
    }
}

fn in_notes(rule: &PatternRule, finder: &Finder<'_>, notes: &[String]) -> Finding {
    let pattern = quoted(&rule.pattern);
    let mut room = MOST;
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
    let line = looked.iter().find_map(|note| finder.found(note));
    let left = notes.len() - looked.len();
    match (line, rule.must_match()) {
        (Some(line), true) => Finding::passed(format!("{pattern} is in the task's notes: {line}")),
        (Some(line), false) => {
            Finding::failed(format!("{pattern} must not be in the task's notes, and is: {line}. See to what it says"))
        }
        (None, _) if left > 0 => Finding::failed(format!(
            "{pattern} is not in the newest {} notes, and the {left} older ones are too long to be looked at: say it in a new \
             note, or use a rule over `agent_output`",
            looked.len()
        )),
        (None, false) => Finding::passed(format!("{pattern} is not in the task's notes")),
        (None, true) if notes.is_empty() => Finding::failed(format!(
            "{pattern} is not in the task's notes, because there are none: add one with `note_add`"
        )),
        (None, true) => {
            Finding::failed(format!("{pattern} is not in the task's notes: add one that matches with `note_add`"))
        }
    }
}

struct Finder<'a> {
    regex: Regex,
    mask: &'a Mask,
}

impl Finder<'_> {
    /// Returns the line of the first match. It is masked before it is cut: half a secret is a secret, too.
    fn found(&self, text: &str) -> Option<String> {
        let at = self.regex.find(text)?.start();
        let before = &text[..at];
        let start = before.rfind('\n').map_or(0, |end| end + 1);
        let line = text[start..].lines().next().unwrap_or_default();
        Some(format!("line {}: {}", before.matches('\n').count() + 1, quoted(&self.mask.text(line))))
    }
}
