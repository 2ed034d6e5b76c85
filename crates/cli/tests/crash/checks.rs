//! What must hold of a scenario, wherever it was killed: the log, what was acknowledged and the recorder tell one story.
//!
//! | fault | what was found |
//! | --- | --- |
//! | `Lost` | an event that was acknowledged is not in the log, or not as it was |
//! | `Unmarked` | something ran that the log does not say was begun, then and by that run |
//! | `Unrun` | the log says that something was begun that never ran, and nothing was killed that could explain it |
//! | `Twice` | something ran again that may not |
//! | `Invented` | the log says that something ended which did not, or leaves open how it ended |
//! | `Cut` | a hook was given a part of its payload, and went on |
//! | `Feedback` | a piece is not in exactly one finished turn, or not in the prompt that the log says, or not marked as it should be |
//! | `Undead` | a program goes on although the run that started it is dead and another has taken over |
//! | `Different` | the story is not that of the undisturbed run (`skeleton`) |
//! | `Survivor`, `Unsound`, `Odd` | a process is left; `doctor` complains; the recorder or a command is not as expected |
//!
//! A run does one thing after another. So what a run has started, by the recorder, is what the log says it has begun, in
//! the same order, and at most the last is missing, if the run was killed before it could start it.

use std::collections::{BTreeMap, BTreeSet};

use super::log::{self, Begun, Entry};
use super::recorder::{self, Effect, Said};
use super::scenario::{AGAIN, Observed};
use super::skeleton;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Lost,
    Unmarked,
    Unrun,
    Twice,
    Invented,
    Cut,
    Feedback,
    Undead,
    Different,
    Survivor,
    Unsound,
    Odd,
}

/// Something that must not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub kind: Kind,
    pub what: String,
}

impl Fault {
    pub fn new(kind: Kind, what: impl Into<String>) -> Self {
        Self { kind, what: what.into() }
    }
}

/// Everything that is wrong.
pub fn faults(observed: &Observed, undisturbed: &Observed) -> Vec<Fault> {
    let log = log::read(&observed.log);
    let (effects, odd) = recorder::read(&observed.recorder);
    let story = Story { begun: log::begun(&log), log, effects };
    let mut faults = observed.seen.faults.clone();
    faults.extend(odd.into_iter().map(|what| Fault::new(Kind::Odd, what)));
    faults.extend(lost(observed));
    faults.extend(story.started());
    faults.extend(story.again());
    faults.extend(story.ended());
    faults.extend(story.cut());
    faults.extend(story.queued());
    faults.extend(story.told());
    faults.extend(
        recorder::find_starts_after_takeover(&observed.recorder).into_iter().map(|line| Fault::new(Kind::Undead, line)),
    );
    let (ours, theirs) = (skeleton::of(&story.log), skeleton::of(&log::read(&undisturbed.log)));
    faults.extend(skeleton::difference(&ours, &theirs).map(|what| Fault::new(Kind::Different, what)));
    faults
}

/// What was printed is durable. A line that was cut off was not said.
fn lost(observed: &Observed) -> Vec<Fault> {
    let log: BTreeSet<&str> = observed.log.lines().collect();
    let said = observed.seen.acknowledged.iter().flat_map(|text| text.split_inclusive('\n'));
    let whole = said.filter_map(|line| line.strip_suffix('\n'));
    whole.filter(|line| !log.contains(line)).map(|line| Fault::new(Kind::Lost, line)).collect()
}

struct Story {
    log: Vec<Entry>,
    begun: Vec<Begun>,
    effects: Vec<Effect>,
}

impl Story {
    /// What the log says was begun, each with what the recorder knows of it.
    fn pairs(&self) -> Vec<(&Begun, Option<&Effect>)> {
        let mut next: BTreeMap<&str, usize> = BTreeMap::new();
        let mut pairs = Vec::with_capacity(self.begun.len());
        for begun in &self.begun {
            let place = next.entry(&begun.owner).or_default();
            let mut of_owner = self.effects.iter().filter(|effect| effect.owner() == begun.owner);
            pairs.push((begun, of_owner.nth(*place)));
            *place += 1;
        }
        pairs
    }

    /// The only run that was not killed, unless everything was done before.
    fn last_owner(&self) -> &str {
        let begins = |entry: &&Entry| ["session_started", "session_resumed"].contains(&entry.kind());
        self.log.iter().rfind(begins).map(|entry| entry.text("owner")).unwrap_or_default()
    }

    fn is_stopped(&self) -> bool {
        self.log.iter().any(|entry| entry.kind() == "session_stopping")
    }

    fn started(&self) -> Vec<Fault> {
        let owners: BTreeSet<&str> =
            self.begun.iter().map(|begun| &*begun.owner).chain(self.effects.iter().map(Effect::owner)).collect();
        let last = self.last_owner();
        let mut faults = Vec::new();
        for owner in owners {
            let known: Vec<_> = self
                .begun
                .iter()
                .filter(|begun| begun.owner == owner)
                .map(|begun| (&*begun.who, begun.iteration))
                .collect();
            let ran: Vec<_> = self
                .effects
                .iter()
                .filter(|effect| effect.owner() == owner)
                .map(|effect| (&*effect.who, effect.iteration))
                .collect();
            if !known.starts_with(&ran) {
                faults.push(Fault::new(Kind::Unmarked, format!("{owner} ran {ran:?}, and the log says {known:?}")));
            } else if known.len() - ran.len() > usize::from(owner != last) {
                faults.push(Fault::new(Kind::Unrun, format!("{owner} ran {ran:?}, and the log says {known:?}")));
            }
        }
        faults
    }

    /// A debt is begun again only where that is allowed, and then it says so.
    fn again(&self) -> Vec<Fault> {
        let mut attempts: BTreeMap<&str, u64> = BTreeMap::new();
        let mut faults = Vec::new();
        for begun in &self.begun {
            let times = attempts.entry(&begun.debt).or_default();
            *times += 1;
            if begun.attempt != *times || (*times > 1 && !AGAIN.contains(&&*begun.who)) {
                let what = format!("{} {}: attempt {}, for the {times}. time", begun.who, begun.debt, begun.attempt);
                faults.push(Fault::new(Kind::Twice, what));
            }
        }
        faults
    }

    fn ended(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        for (begun, effect) in self.pairs() {
            let ended = effect.is_some_and(|effect| effect.end.is_some());
            let right = match begun.end.as_deref() {
                None => false,
                Some("taken over") => begun.owner != self.last_owner(),
                Some("interrupted") if begun.who == "agent" => begun.owner != self.last_owner() || self.is_stopped(),
                Some("interrupted") => begun.owner != self.last_owner() && !AGAIN.contains(&&*begun.who),
                Some(_) => ended,
            };
            if !right {
                let what = format!("{} {}: {:?}, by the recorder {effect:?}", begun.who, begun.debt, begun.end);
                faults.push(Fault::new(Kind::Invented, what));
            }
        }
        faults
    }

    fn cut(&self) -> Vec<Fault> {
        let cut = self.effects.iter().filter(|effect| effect.cut);
        cut.map(|effect| Fault::new(Kind::Cut, format!("{} {}", effect.who, effect.tag))).collect()
    }

    /// What a hook that ended had to say is queued, once, and nothing else is.
    fn queued(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        let mut markers: Vec<String> = log::pieces(&self.log).into_values().collect();
        let spoke = |effect: &&Effect| effect.end == Some(Said::Something);
        for (begun, effect) in self.pairs() {
            let counts = !matches!(begun.end.as_deref(), None | Some("taken over" | "interrupted"));
            let Some(effect) = effect.filter(spoke).filter(|_| counts) else { continue };
            match markers.iter().position(|marker| *marker == effect.tag) {
                Some(place) => drop(markers.remove(place)),
                None => {
                    faults.push(Fault::new(Kind::Feedback, format!("{} of {} is not queued", effect.tag, effect.who)))
                }
            }
        }
        faults.extend(markers.into_iter().map(|marker| Fault::new(Kind::Feedback, format!("nobody said {marker}"))));
        faults
    }

    /// The prompts are what the log says, and each piece is in exactly one finished turn. What was queued after the last one
    /// waits with the task.
    fn told(&self) -> Vec<Fault> {
        let pieces = log::pieces(&self.log);
        let mut faults = Vec::new();
        for (turn, effect) in self.pairs().into_iter().filter(|(begun, _)| begun.who == "agent") {
            let expected = turn.prompt(&pieces);
            if let Some(prompt) = effect.and_then(|effect| effect.prompt.as_ref())
                && *prompt != expected
            {
                let what = format!("turn {} got {prompt:?}, and the log says {expected:?}", turn.debt);
                faults.push(Fault::new(Kind::Feedback, what));
            }
        }
        let passing = log::passing(&self.log);
        let was_replaced = |seq, counts| counts == (0, 0) && passing.contains(&seq);
        let last = self.log.iter().rfind(|entry| entry.is_turn_finished()).map_or(0, Entry::seq);
        let is_kept = |seq, counts| counts == (0, 0) && seq > last;
        let wrong = log::delivered(&self.log, &self.begun)
            .into_iter()
            .filter(|(seq, counts)| *counts != (1, 1) && !was_replaced(*seq, *counts) && !is_kept(*seq, *counts));
        faults.extend(wrong.map(|(seq, counts)| misdelivered(seq, counts)));
        faults
    }
}

/// A piece of feedback that is not in exactly one finished turn.
pub fn misdelivered(seq: u64, (turns, said): (usize, usize)) -> Fault {
    Fault::new(Kind::Feedback, format!("feedback {seq} is in {turns} finished turns, and was delivered {said} times"))
}
