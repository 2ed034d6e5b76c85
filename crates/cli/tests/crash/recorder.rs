//! What the recorder outside of the program was told, by the hooks and the agent themselves.

/// A program of the scenario that was started, as it says itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    /// Its own and nobody else's.
    pub tag: String,
    /// A hook's name, or `agent`.
    pub who: String,
    pub iteration: u64,
    /// The markers in the agent's prompt, with a `+` where it may have seen them. `None` if it did not get so far.
    pub prompt: Option<Vec<String>>,
    /// What it was given was not whole.
    pub cut: bool,
    /// Whether it said something for the agent, once it has ended.
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

/// Everything that was started, in order, and what is wrong with the recorder's lines themselves.
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
                // Nothing outside every iteration.
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
