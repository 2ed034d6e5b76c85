//! What is said about a command line that cannot be understood.
//!
//! clap finds what is wrong; here it is said in the words of every other failure.

use std::error::Error;
use std::ffi::OsString;
use std::fmt::Debug;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use serde_json::Value;

use crate::args;
use crate::failure::{Code, Failure};
use crate::text;

/// What somebody typed may be as long as it likes; this much of it is repeated.
const SHOWN: usize = 60;

/// The same for what a parser says about it.
const CAUSE: usize = 300;

/// So many possible values are listed even where one of them was probably meant.
const MANY: usize = 12;

/// How many: at least one. More than anybody has is as good as all.
pub fn count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("expected a whole number from 1 on".to_owned()),
        Ok(count) => Ok(count),
        Err(_) if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => Ok(usize::MAX),
        Err(_) => Err("expected a whole number from 1 on".to_owned()),
    }
}

/// A number that the log can hold.
pub fn number(text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| i64::try_from(*number).is_ok());
    number.ok_or_else(|| format!("expected a whole number from 0 to {}", i64::MAX))
}

/// A number of which the tools take so many; they tell of those that are only too large.
pub fn number_to<const MOST: u32>(text: &str) -> Result<u64, String> {
    number(text).map_err(|_| format!("expected a whole number from 1 to {MOST}"))
}

/// Any JSON.
pub fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("expected JSON: {error}"))
}

/// How long back: `90s`, `30m`, `24h`, `7d`, `2w`.
pub fn span(text: &str) -> Result<Duration, String> {
    let expected = || "expected a length of time such as `30m`, `24h`, `7d`".to_owned();
    let digits = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(expected)?;
    let (number, unit) = text.split_at(digits);
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 24 * 3600,
        "w" => 7 * 24 * 3600,
        _ => return Err(expected()),
    };
    let number: u64 = number.parse().map_err(|_| expected())?;
    Ok(Duration::from_secs(number.saturating_mul(seconds)))
}

/// One of these names.
pub fn one_of<T>(names: impl IntoIterator<Item = &'static str>) -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err: Debug> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(names).map(|name| name.parse().expect("each name stands for a value"))
}

/// What is wrong with these words.
pub fn failure(error: &clap::Error, words: &[OsString]) -> Failure {
    let wrong = Wrong { error, command: understood(words) };
    let failure = Failure::new(Code::Usage, wrong.message());
    let failure = match wrong.cause() {
        Some(cause) => failure.caused_by(cause),
        None => failure,
    };
    failure.hint(wrong.hint())
}

/// The command that was understood, without its arguments.
fn understood(words: &[OsString]) -> String {
    let root = args::command();
    let (mut command, mut name) = (&root, "windlass".to_owned());
    for word in words.iter().skip(1) {
        if let Some(child) = command.find_subcommand(word) {
            name = format!("{name} {}", child.get_name());
            command = child;
        }
    }
    name
}

struct Wrong<'e> {
    error: &'e clap::Error,
    command: String,
}

impl Wrong<'_> {
    fn message(&self) -> String {
        let argument = || self.names(ContextKind::InvalidArg).join(" and ");
        let value = text::fit(&self.text(ContextKind::InvalidValue), SHOWN);
        match self.error.kind() {
            ErrorKind::InvalidValue if value.is_empty() => format!("{} needs a value", argument()),
            ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
                format!("`{value}` is not a value for {}", argument())
            }
            ErrorKind::UnknownArgument => match text::fit(&self.text(ContextKind::InvalidArg), SHOWN) {
                option if option.starts_with('-') => format!("there is no option `{option}`"),
                extra => format!("`{extra}` is one argument too many"),
            },
            ErrorKind::InvalidSubcommand => {
                let word = text::fit(&self.text(ContextKind::InvalidSubcommand), SHOWN);
                format!("there is no command `{word}`")
            }
            ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
                "a command is missing".to_owned()
            }
            ErrorKind::MissingRequiredArgument => match self.names(ContextKind::InvalidArg).as_slice() {
                [one] => format!("{one} is missing"),
                _ => format!("{} are missing", argument()),
            },
            ErrorKind::ArgumentConflict => match self.names(ContextKind::PriorArg).join(" and ") {
                prior if prior == argument() => format!("{prior} is given more than once"),
                prior => format!("{} and {prior} exclude each other", argument()),
            },
            ErrorKind::TooManyValues => format!("{} takes no value", argument()),
            ErrorKind::InvalidUtf8 => "an argument is not UTF-8 text".to_owned(),
            _ => self.error.render().to_string().lines().next().unwrap_or_default().replacen("error: ", "", 1),
        }
    }

    /// What the parser of the value says, or what could have been said.
    fn cause(&self) -> Option<String> {
        if let Some(source) = self.error.source() {
            return Some(text::fit(&source.to_string(), CAUSE));
        }
        let known = self.strings(ContextKind::ValidValue);
        let told = !known.is_empty() && (known.len() <= MANY || self.nearest().is_none());
        told.then(|| format!("there are {}", known.join(", ")))
    }

    /// What was probably meant; clap names it last.
    fn nearest(&self) -> Option<String> {
        let kinds = [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::SuggestedValue];
        kinds.iter().flat_map(|kind| self.strings(*kind)).last()
    }

    fn hint(&self) -> String {
        if let Some(near) = self.nearest() {
            return format!("did you mean `{near}`?");
        }
        let command = &self.command;
        match self.error.kind() {
            ErrorKind::UnknownArgument if self.text(ContextKind::InvalidArg).starts_with('-') => {
                format!("`{command} --help` lists the options; text that begins with a dash goes after `--`")
            }
            ErrorKind::InvalidSubcommand | ErrorKind::MissingSubcommand => {
                format!("`{command} --help` lists the commands")
            }
            _ => format!("`{command} --help` shows how it is used"),
        }
    }

    fn strings(&self, kind: ContextKind) -> Vec<String> {
        match self.error.get(kind) {
            Some(ContextValue::String(text)) => vec![text.clone()],
            Some(ContextValue::Strings(texts)) => texts.clone(),
            _ => Vec::new(),
        }
    }

    fn text(&self, kind: ContextKind) -> String {
        self.strings(kind).join(" ")
    }

    /// Arguments by name alone: `--body`, `GOAL`.
    fn names(&self, kind: ContextKind) -> Vec<String> {
        let name = |text: &String| {
            let word = text.split(['=', ' ']).next().unwrap_or_default();
            word.trim_matches(['<', '>', '[', ']', '.']).to_owned()
        };
        self.strings(kind).iter().map(name).collect()
    }
}
