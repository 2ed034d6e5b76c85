//! A program with its arguments, without a shell before it: where values of a run may stand among them.

use thiserror::Error;
use windlass_engine::workflow::Pattern;

use super::commands;
use super::evaluators::is_shell;
use super::refusal::{Stop, Why};
use super::word::Word;

/// A word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Argument {
    Fixed(String),
    /// One that values of the run are put into, with the text before the first of them.
    Filled(String),
}

/// A value where a program would take it for more than text.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("cannot put a value {why}")]
pub struct UnsafeArgument {
    /// Which of the words it is; the program is number 0.
    pub index: usize,
    pub why: String,
    pub instead: String,
}

impl From<&Pattern> for Argument {
    fn from(pattern: &Pattern) -> Self {
        match pattern.checked() {
            Some(text) => Self::Fixed(text),
            None => Self::Filled(pattern.beginning().to_owned()),
        }
    }
}

/// Refuses values where the program evaluates them, by the rule for commands of hooks.
pub fn check_argv(program: &str, arguments: &[Pattern]) -> Result<(), UnsafeArgument> {
    let program = Argument::Fixed(program.to_owned());
    check_words(&std::iter::once(program).chain(arguments.iter().map(Argument::from)).collect::<Vec<_>>())
}

fn check_words(arguments: &[Argument]) -> Result<(), UnsafeArgument> {
    let word = |(index, argument): (usize, &Argument)| match argument {
        Argument::Fixed(text) => {
            Word { literal: Some(text.clone()), bare: text.clone(), known: text.clone(), ..Word::default() }
        }
        Argument::Filled(before) => {
            Word { bare: before.clone(), known: before.clone(), marks: vec![index], ..Word::default() }
        }
    };
    let words: Vec<Word> = arguments.iter().enumerate().map(word).collect();
    let checked = match commands::arguments(&words) {
        // Without a shell these are names of programs like any other.
        Err(Stop::At(_, Why::BuiltIn(_))) => Ok(()),
        checked => checked,
    };
    checked.map_err(|stop| {
        let (index, why) = match stop {
            Stop::At(index, why) => (index, why.reason()),
            Stop::Lost(what) => (0, format!("in a command with {what}")),
        };
        let instead = match words[0].program().is_some_and(is_shell) {
            true => "let the shell take it as \"$1\": `args: [-c, 'echo \"$1\"', sh, '${…}']`",
            false => "give it to a script of yours: `command: ./SCRIPT` and `args: ['${…}']`",
        };
        UnsafeArgument { index, why, instead: instead.to_owned() }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words of a line, in which `§` stands for a value.
    fn check(line: &str) -> Result<(), String> {
        let word = |word: &str| match word.split_once('§') {
            Some((before, _)) => Argument::Filled(before.to_owned()),
            None => Argument::Fixed(word.to_owned()),
        };
        let words: Vec<Argument> = line.split(' ').map(word).collect();
        check_words(&words).map_err(|refused| format!("{}: {}", refused.index, refused.why))
    }

    #[test]
    fn values_are_refused_where_a_program_evaluates_them() {
        for (line, why) in [
            ("sh -c §", "2: in the arguments of `sh`: it runs text as commands"),
            ("/bin/sh -c echo§ sh", "2: in the arguments of `sh`: it runs text as commands"),
            ("sh §", "1: in the arguments of `sh`: it runs text as commands"),
            ("bash -§ true §", "1: in the arguments of `bash`: it runs text as commands"),
            ("ssh host sh -c true §", "5: in the arguments of `ssh`: it runs text as commands"),
            ("timeout 5 sh -c §", "4: in the arguments of `sh`: it runs text as commands"),
            ("python3 -c §", "2: in the arguments of `python3`: it may be taken for code"),
            ("awk §", "1: in the arguments of `awk`: it may be taken for its program"),
            ("env PATH=§ ls", "1: in `PATH`: this variable means something to the shell or to programs"),
            ("nohup §", "1: in the place of a command: the text would choose what runs"),
            ("git -c core.pager=§ log", "2: after `-c` of `git`: it may be run as a command"),
            ("split --filter=§ x", "1: after `--filter` of `split`: it may be run as a command"),
        ] {
            assert_eq!(check(line), Err(why.to_owned()), "{line}");
        }
    }

    #[test]
    fn values_are_accepted_as_text() {
        for line in [
            "echo § a=§",
            "sh -c true § §",
            "bash -euc true sh §",
            "timeout 5 ./notify §",
            "git commit -m §",
            "windlass task list --idle=§",
            "python3 notify.py §",
        ] {
            assert_eq!(check(line), Ok(()), "{line}");
        }
    }
}
