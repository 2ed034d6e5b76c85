//! The recorder: a file outside of the program under test, to which the hooks and the agent write.

/// A hook or agent that ran, according to its own lines in the recorder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedProgram {
    /// The value of `WINDLASS_TAG`: the owner and a number.
    pub tag: String,
    /// A hook's name, or `agent`.
    pub name: String,
    pub iteration: u64,
    /// The markers in the agent's prompt, each with a `+` if the agent may have seen it. `None` if the agent did not read it.
    pub prompt: Option<Vec<String>>,
    /// Whether the hook got a truncated payload.
    pub is_truncated: bool,
    /// Whether the program had feedback for the agent, if it has ended.
    pub end: Option<HookFeedback>,
}

/// Whether a hook had feedback for the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookFeedback {
    Present,
    Absent,
}

impl RecordedProgram {
    /// Returns the run of Windlass that started the program.
    pub fn owner(&self) -> &str {
        owner_of_tag(&self.tag)
    }
}

/// Returns the started programs in order, and the malformed lines.
pub fn parse_recorder(text: &str) -> (Vec<RecordedProgram>, Vec<String>) {
    let (mut programs, mut malformed_lines) = (Vec::<RecordedProgram>::new(), Vec::new());
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [tag, name, iteration, report @ ..] = &words[..] else {
            malformed_lines.push(format!("no line of ours: {line}"));
            continue;
        };
        let known = programs.iter_mut().find(|program| program.tag == *tag);
        match (report, known) {
            (["start"], None) => programs.push(RecordedProgram {
                tag: (*tag).to_owned(),
                name: (*name).to_owned(),
                // Hooks outside of an iteration have no number.
                iteration: if iteration.is_empty() { 0 } else { iteration.parse().unwrap_or(u64::MAX) },
                prompt: None,
                is_truncated: false,
                end: None,
            }),
            (["cut"], Some(program)) => program.is_truncated = true,
            (["prompt", markers @ ..], Some(program)) => {
                program.prompt = Some(markers.iter().map(|marker| (*marker).to_owned()).collect());
            }
            (["end", "said"], Some(program)) => program.end = Some(HookFeedback::Present),
            (["end", "silent"], Some(program)) => program.end = Some(HookFeedback::Absent),
            _ => malformed_lines.push(format!("out of order: {line}")),
        }
    }
    (programs, malformed_lines)
}

/// Returns the lines of a run that come after the first line of a later run.
pub fn find_starts_after_takeover(text: &str) -> Vec<String> {
    let mut owners: Vec<&str> = Vec::new();
    let mut stale_lines = Vec::new();
    for line in text.lines() {
        let owner = owner_of_tag(line.split(' ').next().unwrap_or_default());
        match owners.iter().position(|known| *known == owner) {
            None => owners.push(owner),
            Some(position) if position + 1 == owners.len() => {}
            Some(_) => stale_lines.push(line.to_owned()),
        }
    }
    stale_lines
}

fn owner_of_tag(tag: &str) -> &str {
    tag.rsplit_once('.').map_or(tag, |(owner, _)| owner)
}
