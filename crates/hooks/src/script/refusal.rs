//! Why free text cannot be at its place, and what to write instead.

use std::ops::Range;

use thiserror::Error;

use super::template::{PlaceholderMark, PlaceholderName};

/// Free text that the shell, or a program that it starts, would take for more than text.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("cannot put `{{{{{name}}}}}` {why}")]
pub struct UnsafeTemplate {
    /// `error` or `task_content`.
    pub name: &'static str,
    /// The position in the command.
    pub at: Range<usize>,
    pub why: String,
    pub instead: String,
}

/// Why the scanner refuses a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ScanRefusal {
    /// Free text at a forbidden place: the index of its mark, and the reason.
    AtMark(usize, UnsafeReason),
    /// Shell syntax that the scanner does not support.
    Unsupported(&'static str),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum UnsafeReason {
    SingleQuotes,
    Substitution,
    Redirection,
    AfterBackslash,
    AfterDollar,
    CommandWord,
    UnknownCommand,
    Evaluated(String),
    BuiltIn(String),
    Format,
    Test,
    Program(String),
    Interpreted(String),
    Wrapped(String),
    Option(String, String),
    Special(String),
    Piped(String),
    Unquoted,
    Dash,
}

impl ScanRefusal {
    /// Turns the refusal into an error. Unsupported syntax is reported at the first free text.
    pub fn into_unsafe_template(self, marks: &[PlaceholderMark], first: &PlaceholderMark) -> UnsafeTemplate {
        let (mark, why, instead) = match self {
            Self::AtMark(index, why) => (&marks[index], why.reason_text(), why.remedy_text(marks[index].name)),
            Self::Unsupported(what) => (
                first,
                format!("in a command with {what}: only plain commands are followed"),
                own_script_remedy(first.name),
            ),
        };
        UnsafeTemplate { name: mark.name.word(), at: mark.at.clone(), why, instead }
    }
}

impl UnsafeReason {
    pub fn reason_text(&self) -> String {
        let fixed = match self {
            Self::SingleQuotes => "in single quotes: nothing is filled in there",
            Self::Substitution => "in `$( … )`: what is in it is a command of its own",
            Self::Redirection => "in a redirection: the text would choose the file",
            Self::AfterBackslash => "right after a backslash: it would escape the reference",
            Self::AfterDollar => "right after a `$`: together they mean something else",
            Self::CommandWord => "in the place of a command: the text would choose what runs",
            Self::UnknownCommand => "in the arguments of a command that is known only when it runs",
            Self::Format => "in the format of `printf`: it would be read as one",
            Self::Unquoted => "outside double quotes in the script of a shell: it would become several arguments",
            Self::Dash => "that begins with a dash where the program would take it for an option",
            Self::Test => "in this test: it may be taken for an operator or for arithmetic",
            Self::Evaluated(name) => return format!("in the arguments of `{name}`: it runs text as commands"),
            Self::BuiltIn(name) => {
                return format!("in the arguments of `{name}`: the shell takes them for more than text");
            }
            Self::Program(name) if name == "find" => "in the arguments of `find`: it may be taken for `-delete`",
            Self::Program(name) => return format!("in the arguments of `{name}`: it may be taken for its program"),
            Self::Interpreted(name) => return format!("in the arguments of `{name}`: it may be taken for code"),
            Self::Wrapped(name) => {
                return format!("in the arguments of `{name}`: the programs that it starts are unknown");
            }
            Self::Option(name, option) => return format!("after `{option}` of `{name}`: it may be run as a command"),
            Self::Special(name) => {
                return format!("in `{name}`: this variable means something to the shell or to programs");
            }
            Self::Piped(name) => return format!("in a pipe to `{name}`: it runs what it reads"),
        };
        fixed.to_owned()
    }

    /// Returns what to write instead in the script of a shell, or among arguments without a shell.
    pub fn remedy_in_argv(&self) -> Option<&'static str> {
        match self {
            Self::Unquoted => Some("write double quotes around it: \"$1\", \"$@\""),
            Self::Dash => Some("write `--` before it, or `--OPTION=${…}` in one word, or give it to a script of yours"),
            Self::Program(name) if name == "find" => {
                Some("write it behind a test: `-name VALUE`, or in a path: `./VALUE`")
            }
            _ => None,
        }
    }

    fn remedy_text(&self, name: PlaceholderName) -> String {
        let variable = name.variable_name();
        if let Some(remedy) = self.remedy_in_argv() {
            return remedy.replace("VALUE", &name.to_string());
        }
        match self {
            Self::SingleQuotes => {
                format!("write double quotes around it, or end the quotes before it: `'…'{name}'…'`")
            }
            Self::Substitution => format!("assign it first: `text={name}`, then use \"$text\" inside"),
            Self::AfterBackslash => "leave the backslash out: it needs no escaping".to_owned(),
            Self::AfterDollar => "leave the `$` out".to_owned(),
            Self::Format => format!("give it its own argument: `printf '%s\\n' {name}`"),
            Self::Test => format!("compare it as text: `[ {name} = … ]`"),
            Self::Redirection => format!("name the file yourself, and print it there: `printf '%s\\n' {name} >FILE`"),
            Self::Special(_) => "assign it to a variable with another name".to_owned(),
            Self::Program(program) => match program.as_str() {
                "jq" => format!("let it read the variable: `jq -n 'env.{variable}'`"),
                "sed" => format!("pass it on standard input: `printf '%s\\n' {name} | sed …`"),
                _ => format!("let it read the variable: `ENVIRON[\"{variable}\"]`"),
            },
            Self::Interpreted(_) | Self::Wrapped(_) | Self::Option(..) | Self::UnknownCommand => {
                format!("pass it on standard input: `printf '%s' {name} | …`; or read \"${variable}\" in a script")
            }
            Self::CommandWord
            | Self::Evaluated(_)
            | Self::BuiltIn(_)
            | Self::Piped(_)
            | Self::Unquoted
            | Self::Dash => own_script_remedy(name),
        }
    }
}

fn own_script_remedy(name: PlaceholderName) -> String {
    format!("put the command in a script of its own, which reads \"${}\"", name.variable_name())
}
