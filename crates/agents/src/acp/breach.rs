//! Violations of the protocol by an agent. Each error quotes the offending input, shortened.

/// The longest quotation of a line.
const SHOWN: usize = 120;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Breach {
    #[error("it sent a line of more than {} MiB", most / (1024 * 1024))]
    TooLong { most: usize },
    #[error("it sent more than {} MiB in one turn", most / (1024 * 1024))]
    TooMuch { most: u64 },
    #[error("it asks for more than it reads: {} MiB of answers wait for it", most / (1024 * 1024))]
    Unread { most: usize },
    #[error("it sent a line that is not JSON ({why}): {beginning}")]
    NotJson { why: String, beginning: String },
    #[error("it sent a line that is no message of JSON-RPC: {beginning}")]
    NoMessage { beginning: String },
    #[error("it writes other things than messages to its standard output, such as: {beginning}")]
    Noise { beginning: String },
    #[error("it answered a question that nobody asked (id {id})")]
    UnknownAnswer { id: String },
}

impl Breach {
    pub fn not_json(line: &[u8], error: &serde_json::Error) -> Self {
        let why = error.to_string();
        // serde_json counts lines within this one line, so its position says nothing.
        let why = why.split(" at line ").next().unwrap_or_default().to_owned();
        Self::NotJson { why, beginning: beginning(line) }
    }

    pub fn no_message(line: &[u8]) -> Self {
        Self::NoMessage { beginning: beginning(line) }
    }
}

/// Returns the start of a line as quoted text.
pub fn beginning(line: &[u8]) -> String {
    let shown = &line[..line.len().min(SHOWN)];
    let more = if line.len() > SHOWN { "…" } else { "" };
    format!("`{}{more}`", String::from_utf8_lossy(shown).trim())
}
