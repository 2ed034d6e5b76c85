//! Names of the streams and subjects of a project.

use std::fmt::Write as _;

/// The names of a project in JetStream.
pub struct ProjectSubjects {
    project: String,
}

impl ProjectSubjects {
    pub fn new(project: &str) -> Self {
        Self { project: project.to_owned() }
    }

    pub fn project(&self) -> &str {
        &self.project
    }

    pub fn log_stream(&self) -> String {
        format!("WL_{}_LOG", self.project)
    }

    pub fn log_subject(&self) -> String {
        format!("windlass.{}.log", self.project)
    }

    pub fn beat_stream(&self) -> String {
        format!("WL_{}_BEATS", self.project)
    }

    /// Returns the subject of an owner's heartbeats.
    pub fn beat_subject(&self, machine: &str, owner: &str) -> String {
        format!("windlass.{}.beat.{}.{}", self.project, encode_token(machine), encode_token(owner))
    }

    pub fn all_beats(&self) -> String {
        format!("windlass.{}.beat.*.*", self.project)
    }

    pub fn event_stream(&self) -> String {
        format!("WL_{}_EVENTS", self.project)
    }

    /// Returns the subject of an event for other programs. Dots of its type separate tokens.
    pub fn event_subject(&self, session: Option<&str>, event_type: &str) -> String {
        let types: Vec<String> = event_type.split('.').map(encode_token).collect();
        let session = session.map_or("-".to_owned(), encode_token);
        format!("windlass.{}.events.{session}.{}", self.project, types.join("."))
    }

    pub fn all_events(&self) -> String {
        format!("windlass.{}.events.>", self.project)
    }
}

/// Returns a text as one token of a subject. Signs other than ASCII letters, digits, `-` and `_` become `=` and two hex digits.
fn encode_token(text: &str) -> String {
    let mut token = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_' {
            token.push(char::from(byte));
        } else {
            write!(token, "={byte:02x}").expect("a string takes everything");
        }
    }
    if token.is_empty() { "=".to_owned() } else { token }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_becomes_one_token_of_a_subject() {
        let subjects = ProjectSubjects::new("pump");
        assert_eq!(subjects.beat_subject("mill-1", "run.7 *"), "windlass.pump.beat.mill-1.run=2e7=20=2a");
        assert_eq!(subjects.beat_subject("", ">"), "windlass.pump.beat.=.=3e");
        assert_eq!(subjects.event_subject(None, "task.completed"), "windlass.pump.events.-.task.completed");
        assert_eq!(subjects.event_subject(Some("S1"), "x"), "windlass.pump.events.S1.x");
    }
}
