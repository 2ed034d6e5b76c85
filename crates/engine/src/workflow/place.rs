//! Where something of a translated expression stands in what was written.

use std::ops::Range;

use super::tokens::{Kind, Token, read};

/// Tokens that are looked for. A place of more says little.
const LONGEST: usize = 64;

/// The place in what was written of a part of what was made of it, if it is there as it is here.
pub fn written(theirs: &str, ours: &str, at: &Range<usize>) -> Option<Range<usize>> {
    let said = |text| Some(read(text).ok()?.into_iter().filter(|token| token.kind != Kind::Space).collect::<Vec<_>>());
    let (theirs, ours) = (said(theirs)?, said(ours)?);
    let start = ours.iter().position(|token| token.at == at.start)?;
    let part: Vec<_> = ours[start..].iter().take_while(|token| token.end() <= at.end).copied().collect();
    let has_words = part.iter().any(|token| !matches!(token.kind, Kind::Sign | Kind::Open | Kind::Close));
    if part.len() > LONGEST || part.last()?.end() != at.end || !has_words {
        return None;
    }
    // Nothing is said more often in one than in the other, so the same one of several is meant.
    let (there, here) = (places(&theirs, &part), places(&ours, &part));
    let which = here.iter().position(|place| *place == start)?;
    let first = *there.get(which).filter(|_| there.len() == here.len())?;
    Some(theirs[first].at..theirs[first + part.len() - 1].end())
}

fn places(tokens: &[Token<'_>], part: &[Token<'_>]) -> Vec<usize> {
    let is_same = |(one, other): (&Token<'_>, &Token<'_>)| one.kind == other.kind && one.ours == other.ours;
    let places = tokens.windows(part.len().max(1)).enumerate();
    places.filter(|(_, window)| window.iter().zip(part).all(is_same)).map(|(place, _)| place).collect()
}

#[cfg(test)]
mod tests {
    use super::super::dialect::{Asked, translate};
    use super::*;

    /// What was written where the translation has a part.
    fn found<'t>(theirs: &'t str, part: &str) -> Option<&'t str> {
        let ours = translate(theirs, Asked::Truth).expect("it can be read");
        let start = ours.rfind(part).expect("the translation has it");
        let place = written(theirs, &ours, &(start..start + part.len()))?;
        Some(&theirs[place])
    }

    #[test]
    fn a_part_is_found_again() {
        assert_eq!(found("a ||\n  task . gaol && !b", "task . gaol"), Some("task . gaol"));
        assert_eq!(found("context.stepResults.x || b", "context.steps.x"), Some("context.stepResults.x"));
        assert_eq!(found("a.includes(task.gaol)", "task.gaol"), Some("task.gaol"));
        assert_eq!(found("a.task.go || task.goa || 'task.go' || task.go", "task.go"), Some("task.go"));
    }

    #[test]
    fn the_same_one_of_several_is_found() {
        let theirs = "b.x && a.b.x && b.x === 1";
        let ours = translate(theirs, Asked::Truth).expect("it can be read");
        let start = ours.rfind("b.x").expect("the translation has it");
        assert_eq!(written(theirs, &ours, &(start..start + 3)), Some(16..19));
    }

    #[test]
    fn what_is_not_there_is_not_found() {
        assert_eq!(found("a || b", "or"), None);
        assert_eq!(found("a || b", "default"), None);
        assert_eq!(found("(a) || b", "("), None);
        assert_eq!(written("a", "b", &(3..9)), None);
    }
}
