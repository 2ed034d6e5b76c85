//! Violations of the protocol by an agent. Each error quotes the offending input, shortened.

/// The longest quotation of a line.
const MAX_QUOTED_BYTES: usize = 120;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    #[error("it sent a line of more than {} MiB", most / (1024 * 1024))]
    TooLong { most: usize },
    #[error("it sent more than {} MiB in one turn", most / (1024 * 1024))]
    TooMuch { most: u64 },
    #[error("it sends requests faster than it reads answers: {} MiB of answers wait for it", most / (1024 * 1024))]
    UnreadAnswers { most: usize },
    #[error("it sent a line that is not JSON ({why}): {beginning}")]
    NotJson { why: String, beginning: String },
    #[error("it sent a line that is not a JSON-RPC message: {beginning}")]
    NotMessage { beginning: String },
    #[error("it writes other text than messages to its standard output, such as: {beginning}")]
    Noise { beginning: String },
    #[error("it answered a request that was not sent (id {id})")]
    UnknownAnswer { id: String },
}

impl ProtocolError {
    pub fn from_invalid_json(line: &[u8], error: &serde_json::Error) -> Self {
        let why = error.to_string();
        // serde_json counts lines within this one line, so its position says nothing.
        let why = why.split(" at line ").next().unwrap_or_default().to_owned();
        Self::NotJson { why, beginning: quote_line_start(line) }
    }

    pub fn from_invalid_message(line: &[u8]) -> Self {
        Self::NotMessage { beginning: quote_line_start(line) }
    }
}

/// Returns the start of a line as quoted text.
pub fn quote_line_start(line: &[u8]) -> String {
    let shown = &line[..line.len().min(MAX_QUOTED_BYTES)];
    let more = if line.len() > MAX_QUOTED_BYTES { "…" } else { "" };
    format!("`{}{more}`", String::from_utf8_lossy(shown).trim())
}
