//! The recorder outside of the program, which the hooks and the agent write to.

/// A program of the scenario that was started, as it says itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    /// Its own process id.
    pub tag: String,
    /// A hook's name, or `agent`.
    pub who: String,
    pub iteration: u64,
    /// The markers in the agent's prompt, with a `+` where it may have seen them. `None` if it did not get that far.
    pub prompt: Option<Vec<String>>,
    /// Whether its input was truncated.
    pub cut: bool,
    /// Whether it had feedback for the agent, once it has ended.
    pub end: Option<Said>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    Something,
    Nothing,
}

impl Effect {
    /// The run of the program that started it.
    pub fn owner(&self) -> &str {
        owner(&self.tag)
    }
}

/// Every start, in order, and the malformed lines of the recorder.
pub fn read(text: &str) -> (Vec<Effect>, Vec<String>) {
    let (mut effects, mut odd) = (Vec::<Effect>::new(), Vec::new());
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [tag, who, iteration, said @ ..] = &words[..] else {
            odd.push(format!("no line of ours: {line}"));
            continue;
        };
        let known = effects.iter_mut().find(|effect| effect.tag == *tag);
        match (said, known) {
            (["start"], None) => effects.push(Effect {
                tag: (*tag).to_owned(),
                who: (*who).to_owned(),
                // Outside every iteration there is no number.
                iteration: if iteration.is_empty() { 0 } else { iteration.parse().unwrap_or(u64::MAX) },
                prompt: None,
                cut: false,
                end: None,
            }),
            (["cut"], Some(effect)) => effect.cut = true,
            (["prompt", markers @ ..], Some(effect)) => {
                effect.prompt = Some(markers.iter().map(|marker| (*marker).to_owned()).collect());
            }
            (["end", "said"], Some(effect)) => effect.end = Some(Said::Something),
            (["end", "silent"], Some(effect)) => effect.end = Some(Said::Nothing),
            _ => odd.push(format!("out of order: {line}")),
        }
    }
    (effects, odd)
}

/// Lines of a run that come after a later run has begun to start programs.
pub fn find_starts_after_takeover(text: &str) -> Vec<String> {
    let mut owners: Vec<&str> = Vec::new();
    let mut undead = Vec::new();
    for line in text.lines() {
        let owner = owner(line.split(' ').next().unwrap_or_default());
        match owners.iter().position(|known| *known == owner) {
            None => owners.push(owner),
            Some(place) if place + 1 == owners.len() => {}
            Some(_) => undead.push(line.to_owned()),
        }
    }
    undead
}

fn owner(tag: &str) -> &str {
    tag.rsplit_once('.').map_or(tag, |(owner, _)| owner)
}
