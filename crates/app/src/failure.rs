//! What is said when something cannot be done: the error, its causes, and a hint that can be acted on.

use std::error::Error;
use std::fmt::{self, Display};

use serde_json::{Value, json};
use windlass_config::ConfigError;
use windlass_engine::RegistryError;

/// The kinds of failure that a script may tell apart; each has a name and an exit code, and both are a promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// The command line itself is wrong.
    Usage,
    /// The project's configuration is wrong.
    Config,
    /// The project is not trusted.
    Trust,
    /// There is no project here.
    NoProject,
    /// A task, event or file that was named does not exist.
    NotFound,
    /// The rules do not allow it in the present state.
    Refused,
    /// The store cannot be used, or is damaged.
    Store,
    /// Anything that the machine refused: files, permissions.
    System,
    /// Somebody asked for the end, with this signal.
    Interrupted(u8),
}

impl Code {
    pub fn name(self) -> &'static str {
        match self {
            Self::Usage => "usage",
            Self::Config => "config",
            Self::Trust => "trust",
            Self::NoProject => "no_project",
            Self::NotFound => "not_found",
            Self::Refused => "refused",
            Self::Store => "store",
            Self::System => "system",
            Self::Interrupted(_) => "interrupted",
        }
    }

    pub fn exit(self) -> u8 {
        match self {
            Self::Usage | Self::Config | Self::Trust | Self::NoProject => 64,
            Self::NotFound | Self::Refused | Self::Store | Self::System => 1,
            Self::Interrupted(signal) => 128 + signal,
        }
    }
}

/// A command that failed.
#[derive(Debug)]
pub struct Failure {
    pub code: Code,
    pub message: String,
    pub causes: Vec<String>,
    pub hint: Option<String>,
    /// Whether `--trust` on the same command line lets it through.
    pub offers_trust: bool,
    /// Shown to people in place of the message, with the offending text underlined.
    pub diagnostic: Option<Box<ConfigError>>,
}

impl Failure {
    pub fn new(code: Code, message: impl Display) -> Self {
        Self {
            code,
            message: message.to_string(),
            causes: Vec::new(),
            hint: None,
            offers_trust: false,
            diagnostic: None,
        }
    }

    /// The error and everything that led to it.
    pub fn from_error(code: Code, error: &dyn Error) -> Self {
        let mut failure = Self::new(code, error);
        let mut cause = error.source();
        while let Some(error) = cause {
            let text = error.to_string();
            // Some libraries repeat their cause in their own message, or themselves in their cause.
            if !failure.causes.last().is_some_and(|said| said.ends_with(&text) || text.ends_with(said.as_str())) {
                failure.causes.push(text);
            }
            cause = error.source();
        }
        failure
    }

    pub fn caused_by(mut self, cause: impl Display) -> Self {
        self.causes.push(cause.to_string());
        self
    }

    pub fn hint(mut self, hint: impl Display) -> Self {
        self.hint = Some(hint.to_string());
        self
    }

    /// Offers the option `--trust` beside the hint.
    pub fn offer_trust(mut self) -> Self {
        self.offers_trust = true;
        self
    }

    /// Leaves `--trust` out, where a command refuses it all the same or where no person types it.
    pub fn without_trust_option(mut self) -> Self {
        self.offers_trust = false;
        self
    }

    /// Returns the whole hint, as it is shown.
    pub fn shown_hint(&self) -> Option<String> {
        let option = self.offers_trust.then_some("--trust allows it for this command alone");
        let parts: Vec<&str> = self.hint.as_deref().into_iter().chain(option).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// Says by which signal, where it was one.
    pub fn by(mut self, signal: Option<i32>) -> Self {
        if let (Code::Interrupted(_), Some(Ok(signal))) = (self.code, signal.map(u8::try_from)) {
            self.code = Code::Interrupted(signal);
        }
        self
    }

    pub fn to_json(&self) -> Value {
        json!({"error": {
            "code": self.code.name(),
            "message": self.message,
            "causes": self.causes,
            "hint": self.shown_hint(),
        }})
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        let failure = Self::from_error(Code::Config, &error);
        let hint = error.hint().map(str::to_owned);
        Self { hint, diagnostic: Some(Box::new(error)), ..failure }
    }
}

impl From<RegistryError> for Failure {
    fn from(error: RegistryError) -> Self {
        Self::from_error(Code::Config, &error)
    }
}

impl Error for Failure {}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
