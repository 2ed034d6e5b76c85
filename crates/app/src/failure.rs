//! The failure of a command: the error, its causes, and a hint that can be typed.

use std::error::Error;
use std::fmt::{self, Display};

use serde_json::{Value, json};
use windlass_config::ConfigError;
use windlass_engine::RegistryError;

/// The kind of a failure, for scripts. Names and exit codes are stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureCode {
    /// The command line is wrong.
    Usage,
    /// The configuration of the project is wrong.
    Config,
    /// The project is not trusted.
    Trust,
    /// The directory has no project.
    NoProject,
    /// A named task, event or file does not exist.
    NotFound,
    /// The rules do not allow the command in the present state.
    Refused,
    /// The store is unusable or damaged.
    Store,
    /// The operating system refused an operation: files, permissions.
    System,
    /// The log of the fleet cannot be used.
    Fleet,
    /// The records of logins to the page are unusable.
    Access,
    /// A person or a program interrupted the command with this signal.
    Interrupted(u8),
}

impl FailureCode {
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
            Self::Fleet => "fleet",
            Self::Access => "access",
            Self::Interrupted(_) => "interrupted",
        }
    }

    pub fn exit_code(self) -> u8 {
        match self {
            Self::Usage | Self::Config | Self::Trust | Self::NoProject => 64,
            Self::NotFound | Self::Refused | Self::Store | Self::System | Self::Fleet | Self::Access => 1,
            Self::Interrupted(signal) => 128 + signal,
        }
    }
}

/// The failure of a command.
#[derive(Debug)]
pub struct Failure {
    pub code: FailureCode,
    pub message: String,
    pub causes: Vec<String>,
    pub hint: Option<String>,
    /// Whether `--trust` on the same command line avoids the failure.
    pub offers_trust: bool,
    /// The diagnostic that people see in place of the message, with the offending text underlined.
    pub diagnostic: Option<Box<ConfigError>>,
}

impl Failure {
    pub fn new(code: FailureCode, message: impl Display) -> Self {
        Self {
            code,
            message: message.to_string(),
            causes: Vec::new(),
            hint: None,
            offers_trust: false,
            diagnostic: None,
        }
    }

    /// Returns the failure for an error with all its causes.
    pub fn from_error(code: FailureCode, error: &dyn Error) -> Self {
        let mut failure = Self::new(code, error);
        let mut cause = error.source();
        while let Some(error) = cause {
            let text = error.to_string();
            // Some libraries repeat the cause in the message, or the message in the cause.
            if !failure.causes.last().is_some_and(|said| said.ends_with(&text) || text.ends_with(said.as_str())) {
                failure.causes.push(text);
            }
            cause = error.source();
        }
        failure
    }

    pub fn with_cause(mut self, cause: impl Display) -> Self {
        self.causes.push(cause.to_string());
        self
    }

    pub fn with_hint(mut self, hint: impl Display) -> Self {
        self.hint = Some(hint.to_string());
        self
    }

    /// Offers `--trust` beside the hint.
    pub fn with_trust_option(mut self) -> Self {
        self.offers_trust = true;
        self
    }

    /// Drops the offer of `--trust`, where it would not help or where no person types it.
    pub fn without_trust_option(mut self) -> Self {
        self.offers_trust = false;
        self
    }

    /// Returns the hint with the options that are offered.
    pub fn hint_with_options(&self) -> Option<String> {
        let option = self.offers_trust.then_some("--trust allows it for this command alone");
        let parts: Vec<&str> = self.hint.as_deref().into_iter().chain(option).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// Sets the signal of an interruption.
    pub fn with_signal(mut self, signal: Option<i32>) -> Self {
        if let (FailureCode::Interrupted(_), Some(Ok(signal))) = (self.code, signal.map(u8::try_from)) {
            self.code = FailureCode::Interrupted(signal);
        }
        self
    }

    pub fn to_json(&self) -> Value {
        json!({"error": {
            "code": self.code.name(),
            "message": self.message,
            "causes": self.causes,
            "hint": self.hint_with_options(),
        }})
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        let failure = Self::from_error(FailureCode::Config, &error);
        let hint = error.hint().map(str::to_owned);
        Self { hint, diagnostic: Some(Box::new(error)), ..failure }
    }
}

impl From<RegistryError> for Failure {
    fn from(error: RegistryError) -> Self {
        Self::from_error(FailureCode::Config, &error)
    }
}

impl Error for Failure {}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Returns the text of an error with its causes.
pub fn describe_with_causes(error: &dyn Error) -> String {
    let (mut text, mut cause) = (error.to_string(), error.source());
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
