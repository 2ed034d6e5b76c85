//! What an agent repeats of its prompt.
//!
//! | the prompt | what of it is an echo |
//! | --- | --- |
//! | what it says itself, and what a hook printed | a line beside the same neighbour; a line with a tag and more than the tag by itself |
//! | what it quotes otherwise: what the agent said before | the same, where a line announces it ("I said:"): else it is meant again |
//!
//! A line that the prompt asks for ("end with this line:") is no echo by itself.
//!
//! Not here: what the lines claim (`promise`).

use std::collections::BTreeSet;

use crate::promise::{CLOSE, OPEN, TAKEN_APART, joined, plain};
use crate::saying;
use crate::speech::{self, Line};

/// The lines of a prompt that are no claim where they are repeated.
pub struct Echoes {
    /// What the prompt says, and what hooks said.
    told: Lines,
    /// What the agent said before.
    quoted: Lines,
    /// The lines of the message; none where there is nothing on it.
    message: Vec<Option<String>>,
    /// For each of them, whether it is introduced by the line before it, or by the one before those of the prompt above it.
    announced: Vec<bool>,
}

#[derive(Default)]
struct Lines {
    /// Each line with the one after it.
    pairs: BTreeSet<(String, String)>,
    /// Those with a tag and more than the tag.
    single: BTreeSet<String>,
}

impl Echoes {
    pub fn of(prompt: &str, message: &[Line<'_>]) -> Self {
        // As the message is read: whoever repeats a prompt repeats how it is written too.
        let prompt = joined(&plain(prompt));
        let lines: Vec<&str> = prompt.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let by_hooks = by_hooks(&lines);
        let (mut told, mut quoted) = (Lines::default(), Lines::default());
        for (at, line) in lines.iter().enumerate() {
            let above = at.checked_sub(1).map(|above| lines[above]);
            let is_quoted = |line: &str| line.to_lowercase().contains(TAKEN_APART) && !by_hooks[at];
            if let Some(above) = above {
                let set = if is_quoted(above) || is_quoted(line) { &mut quoted } else { &mut told };
                set.pairs.insert((alike(above), alike(line)));
            }
            let line_alike = alike(line);
            let is_asked_for = above.is_some_and(|above| saying::announces_it(&above.to_lowercase()));
            if has_more_than_a_tag(&line_alike) && !is_asked_for {
                let set = if is_quoted(line) { &mut quoted } else { &mut told };
                set.single.insert(line_alike);
            }
        }
        let known: BTreeSet<String> = lines.into_iter().map(alike).collect();
        let message: Vec<_> = message.iter().map(|line| (!line.text.is_empty()).then(|| alike(line.text))).collect();
        let announced = announced(&message, &known);
        Self { told, quoted, message, announced }
    }

    /// Whether a line stands in the prompt too, beside one of the lines that it stands beside here, or with enough on it.
    pub fn has(&self, at: usize) -> bool {
        let own = self.message[at].clone().unwrap_or_default();
        let before = self.message[..at].iter().rev().find_map(Clone::clone);
        let after = self.message[at + 1..].iter().find_map(Clone::clone);
        let beside = [before.map(|before| (before, own.clone())), after.map(|after| (own.clone(), after))];
        let found = |lines: &Lines| {
            lines.single.contains(&own) || beside.iter().flatten().any(|pair| lines.pairs.contains(pair))
        };
        // Whoever says the same as before means it again, unless it is announced as something that was said.
        found(&self.told) || (found(&self.quoted) && self.announced[at])
    }
}

/// Which lines of a prompt a hook or another agent wrote: those in a block below a line that names it.
fn by_hooks(lines: &[&str]) -> Vec<bool> {
    let mut fence = None;
    let mut is_hook = false;
    let mut found = Vec::with_capacity(lines.len());
    for (at, line) in lines.iter().enumerate() {
        match (fence, speech::fence_of(line)) {
            (None, Some(marks)) => {
                fence = Some(marks);
                is_hook =
                    at > 0 && ["[Hook feedback]", "[Message, "].iter().any(|name| lines[at - 1].starts_with(name));
            }
            (Some(open), Some(marks)) if marks == open && *line == marks => fence = None,
            _ => {}
        }
        found.push(fence.is_some() && is_hook);
    }
    found
}

/// For each line of a message, whether it is introduced.
fn announced(message: &[Option<String>], known: &BTreeSet<String>) -> Vec<bool> {
    let mut announced = Vec::with_capacity(message.len());
    let mut introduced = false;
    for line in message {
        announced.push(introduced);
        match line {
            Some(line) if line.ends_with(':') => introduced = true,
            Some(line) if !known.contains(line) => introduced = false,
            _ => {}
        }
    }
    announced
}

fn has_more_than_a_tag(line: &str) -> bool {
    let Some((before, rest)) = line.split_once(OPEN) else { return false };
    let after = rest.split_once(CLOSE).map_or("", |(_, after)| after);
    before.contains(char::is_alphanumeric) || after.contains(char::is_alphanumeric)
}

/// A line as it is compared with others: whoever repeats a text may drop its marks.
fn alike(line: &str) -> String {
    line.trim().to_lowercase().replace(TAKEN_APART, OPEN).replace('`', "")
}
