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
use windlass_tools::{Tool, find};

use crate::args;
use crate::failure::{Code, Failure};
use crate::text;

/// What somebody typed may be as long as it likes; this much of it is repeated.
const SHOWN: usize = 60;

/// The same for what a parser says about it.
const CAUSE: usize = 300;

/// So many possible values are listed even where one of them was probably meant.
const MANY: usize = 12;

/// The commands that read. A misspelt word is corrected only to one of these or to a group of commands, to an option that
/// takes a value, or to a value; it is never corrected to a decision of `windlass answer`, nor to an option that chooses
/// what a run works on. What a correction starts by mistake changes nothing.
const READING_COMMANDS: &[&str] = &[
    "windlass status",
    "windlass why",
    "windlass session list",
    "windlass session show",
    "windlass session logs",
    "windlass task list",
    "windlass task ready",
    "windlass task next",
    "windlass task show",
    "windlass task graph",
    "windlass change list",
    "windlass change show",
    "windlass note list",
    "windlass events",
    "windlass hooks list",
    "windlass hooks show",
    "windlass hooks history",
    "windlass hooks metrics",
    "windlass workflow list",
    "windlass workflow show",
    "windlass config check",
    "windlass config schema",
    "windlass tool list",
    "windlass tool show",
    "windlass doctor",
    "windlass completions",
];

/// The argument of `windlass answer` whose values are decisions.
const DECISION_ARGUMENT: &str = "ANSWER";

/// The options of `windlass run` that choose what it works on.
const WORK_OPTIONS: &[&str] = &["resolve", "task"];

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
    let root = args::command();
    let unknown = error.get(ContextKind::InvalidSubcommand);
    let (command, name) = find_command(&root, words, unknown);
    let wrong = Wrong { error, command, name };
    let failure = Failure::new(Code::Usage, wrong.message());
    let failure = match wrong.cause() {
        Some(cause) => failure.caused_by(cause),
        None => failure,
    };
    match find_replacement(words).filter(|_| unknown.is_some()) {
        Some(tool) => failure.hint(format!("`windlass tool call {}` replaces it", tool.name)),
        None => failure.hint(wrong.hint()),
    }
}

/// Returns the tool that replaces a removed command: `iteration_start` for `windlass iteration start`.
fn find_replacement(words: &[OsString]) -> Option<&'static Tool> {
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    let names = words.windows(2).map(|pair| format!("{}_{}", pair[0].trim_end_matches('s'), pair[1]));
    let is_replaced = |name: &str| ["iteration_", "checkpoint_", "hook_"].iter().any(|group| name.starts_with(group));
    names.filter(|name| is_replaced(name)).find_map(|name| find(&name).ok())
}

/// Returns the command that these words name before the unknown one, and its full name.
fn find_command<'c>(
    root: &'c clap::Command,
    words: &[OsString],
    unknown: Option<&ContextValue>,
) -> (&'c clap::Command, String) {
    let is_known = |word: &&OsString| match unknown {
        Some(ContextValue::String(unknown)) => word.to_str() != Some(unknown),
        _ => true,
    };
    let (mut command, mut name) = (root, "windlass".to_owned());
    for word in words.iter().skip(1).take_while(is_known) {
        if let Some(child) = command.find_subcommand(word) {
            name = format!("{name} {}", child.get_name());
            command = child;
        }
    }
    (command, name)
}

struct Wrong<'e> {
    error: &'e clap::Error,
    /// The command that was understood.
    command: &'e clap::Command,
    /// Its name, without its arguments.
    name: String,
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

    /// What was probably meant, if it may be offered; clap names it last.
    fn nearest(&self) -> Option<String> {
        let options = self.strings(ContextKind::SuggestedArg).into_iter().filter(|name| self.takes_value(name));
        let commands = self.strings(ContextKind::SuggestedSubcommand).into_iter().filter(|name| self.only_reads(name));
        let decides = self.names(ContextKind::InvalidArg).iter().any(|name| name == DECISION_ARGUMENT);
        let values = self.strings(ContextKind::SuggestedValue).into_iter().filter(|_| !decides);
        options.chain(commands).chain(values).last()
    }

    /// Whether an option of this command waits for a value that chooses no work, such as `--label`.
    fn takes_value(&self, option: &str) -> bool {
        let long = option.trim_start_matches('-');
        if self.name == "windlass run" && WORK_OPTIONS.contains(&long) {
            return false;
        }
        let mut found = self.command.get_arguments().filter(|argument| argument.get_long() == Some(long));
        found.any(|argument| argument.get_action().takes_values())
    }

    /// Whether a command below this one is a group of commands, or reads.
    fn only_reads(&self, word: &str) -> bool {
        let Some(command) = self.command.find_subcommand(word) else { return false };
        let name = format!("{} {}", self.name, command.get_name());
        command.has_subcommands() || READING_COMMANDS.contains(&name.as_str())
    }

    fn hint(&self) -> String {
        if let Some(near) = self.nearest() {
            return format!("did you mean `{near}`?");
        }
        let command = &self.name;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_commands_all_exist() {
        let root = args::command();
        for name in READING_COMMANDS {
            let words: Vec<OsString> = name.split(' ').map(OsString::from).collect();
            let (command, found) = find_command(&root, &words, None);
            assert!(found == *name && !command.has_subcommands(), "{name}");
        }
    }

    #[test]
    fn misspelt_words_are_corrected_to_nothing_that_changes() {
        let hint = |line: &str| {
            let words = line.split(' ').map(OsString::from).collect();
            let refused = args::parse_from(words).expect_err("it is misspelt");
            refused.failure().hint.expect("there is always a hint")
        };
        for (line, near) in [
            ("windlass stauts", "status"),
            ("windlass taks", "task"),
            ("windlass tsk add x", "task"),
            ("windlass task lits", "list"),
            ("windlass task add x --lable y", "--label"),
            ("windlass task list --state redy", "ready"),
            ("windlass run x --sesion y", "--session"),
        ] {
            assert_eq!(hint(line), format!("did you mean `{near}`?"), "{line}");
        }
        for line in [
            "windlass run --resume",
            "windlass undo",
            "windlass ui",
            "windlass rum",
            "windlass unistall",
            "windlass task delet T1",
            "windlass task complte T1",
            "windlass task complete T1 --forse",
            "windlass doctor --setle",
            "windlass status --trsut",
            "windlass answer T1 rejct",
            "windlass answer T1 retract",
        ] {
            assert!(hint(line).contains(" --help` "), "{line}: {}", hint(line));
        }
    }
}
