//! A program with its arguments, without a shell: where values of a run may occur among them.

use thiserror::Error;
use windlass_expr::ValuePattern;

use super::commands::{self, CommandReader};
use super::evaluators::is_shell;
use super::refusal::ScanRefusal;
use super::word::ShellWord;

/// A word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
enum CommandWord {
    Fixed(String),
    /// A word that values of the run become part of, with the text before the first value.
    Filled(String),
}

/// A value that the program would take for more than text.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("cannot put a value {why}")]
pub struct UnsafeArgument {
    /// The index of the word; the program has index 0.
    pub index: usize,
    pub why: String,
    pub instead: String,
}

impl From<&ValuePattern> for CommandWord {
    fn from(pattern: &ValuePattern) -> Self {
        match pattern.checked_text() {
            Some(text) => Self::Fixed(text),
            None => Self::Filled(pattern.leading_text().to_owned()),
        }
    }
}

/// Refuses values that the program evaluates, by the rule for commands of hooks.
pub fn check_argv(program: &str, arguments: &[ValuePattern]) -> Result<(), UnsafeArgument> {
    let program = CommandWord::Fixed(program.to_owned());
    check_command_words(&std::iter::once(program).chain(arguments.iter().map(CommandWord::from)).collect::<Vec<_>>())
}

/// A word of a command that is about to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilledWord {
    pub text: String,
    pub origin: WordOrigin,
}

/// The origin of a word of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WordOrigin {
    Author,
    /// The author, except for values behind the beginning.
    AuthorThenValue,
    Value,
}

impl WordOrigin {
    pub fn from_pattern(pattern: &ValuePattern) -> Self {
        match pattern.checked_text() {
            Some(_) => Self::Author,
            None if pattern.starts_with_checked_text() => Self::AuthorThenValue,
            None => Self::Value,
        }
    }
}

/// Refuses values that the program would take for options, or run because of other values. A list may have become several words.
pub fn check_filled_words(words: &[FilledWord]) -> Result<(), UnsafeArgument> {
    let read: Vec<ShellWord> = words
        .iter()
        .enumerate()
        .map(|(index, word)| ShellWord {
            literal: Some(word.text.clone()),
            bare: word.text.clone(),
            known: word.text.clone(),
            marks: (word.origin != WordOrigin::Author).then_some(index).into_iter().collect(),
            dash: word.origin == WordOrigin::Value && resembles_option(&word.text),
            ..ShellWord::default()
        })
        .collect();
    let own = commands::own_option_range(&read);
    commands::check_options(&read[own.clone()])
        .and_then(|()| commands::check_dashed_values(&read))
        .and_then(|()| commands::check_inline_script(&read[own.start..]))
        .map_err(|stop| to_unsafe_argument(stop, &read))
}

/// Returns whether a program may take a value for an option. A number such as `-1.5` is none.
fn resembles_option(value: &str) -> bool {
    let is_number = |text: &str| text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    value.strip_prefix('-').is_some_and(|rest| !is_number(rest))
}

fn check_command_words(arguments: &[CommandWord]) -> Result<(), UnsafeArgument> {
    let word = |(index, argument): (usize, &CommandWord)| match argument {
        CommandWord::Fixed(text) => {
            ShellWord { literal: Some(text.clone()), bare: text.clone(), known: text.clone(), ..ShellWord::default() }
        }
        CommandWord::Filled(before) => {
            ShellWord { bare: before.clone(), known: before.clone(), marks: vec![index], ..ShellWord::default() }
        }
    };
    let words: Vec<ShellWord> = arguments.iter().enumerate().map(word).collect();
    commands::check_arguments(&words, CommandReader::System).map_err(|stop| to_unsafe_argument(stop, &words))
}

fn to_unsafe_argument(stop: ScanRefusal, words: &[ShellWord]) -> UnsafeArgument {
    let (index, why, instead) = match stop {
        ScanRefusal::AtMark(index, why) => (index, why.reason_text(), why.remedy_in_argv()),
        ScanRefusal::Unsupported(what) => (0, format!("in a command with {what}"), None),
    };
    if let Some(instead) = instead {
        return UnsafeArgument { index, why, instead: instead.replace("VALUE", "${…}") };
    }
    // Behind the script of a shell, the script runs the value.
    let instead = match words[0].program_name().is_some_and(is_shell) && index < 3 {
        true => "let the shell take it as \"$1\": `args: [-c, 'echo \"$1\"', sh, '${…}']`",
        false => "give it to a script of yours: `command: ./SCRIPT` and `args: ['${…}']`",
    };
    UnsafeArgument { index, why, instead: instead.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words of a line, in which `§` marks a value.
    fn check(line: &str) -> Result<(), String> {
        let word = |word: &str| match word.split_once('§') {
            Some((before, _)) => CommandWord::Filled(before.to_owned()),
            None => CommandWord::Fixed(word.to_owned()),
        };
        let words: Vec<CommandWord> = line.split(' ').map(word).collect();
        check_command_words(&words).map_err(|refused| format!("{}: {}", refused.index, refused.why))
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
            ("find . §", "2: in the arguments of `find`: it may be taken for `-delete`"),
            ("find . -- §", "3: in the arguments of `find`: it may be taken for `-delete`"),
            ("git clone -ccore.sshCommand=echo§ x", "2: after `-c` of `git`: it may be run as a command"),
            ("python3 -m timeit §", "3: in the arguments of `python3`: it may be taken for code"),
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
            "find . -type f -name §",
            "find ./§ -empty",
            "git commit -m §",
            "windlass task list --idle=§",
            "python3 notify.py §",
        ] {
            assert_eq!(check(line), Ok(()), "{line}");
        }
    }

    /// A shell reads the script of `sh -c`, though no shell reads the words around it.
    #[test]
    fn built_ins_count_in_the_script_of_a_shell_only() {
        let script = |script: &str| {
            let fixed = ["bash", "-c", script, "sh"].map(|word| CommandWord::Fixed(word.to_owned()));
            let words: Vec<_> = fixed.into_iter().chain([CommandWord::Filled(String::new())]).collect();
            check_command_words(&words).map_err(|refused| format!("{}: {}", refused.index, refused.why))
        };
        for (text, name) in [
            ("trap \"$1\" EXIT", "trap"),
            (". \"$1\"", "."),
            ("let \"x=$1\"", "let"),
            ("export T=\"$1\"; eval \"$1\"", "export"),
            ("command export T=\"$1\"", "export"),
        ] {
            let why = format!("4: in the arguments of `{name}`: the shell takes them for more than text");
            assert_eq!(script(text), Err(why), "{text}");
        }
        assert_eq!(script("printf %s \"$1\""), Ok(()));
        assert_eq!(check("print §"), Ok(()));
        assert_eq!(
            check("print --pager=§"),
            Err("1: after `--pager` of `print`: it may be run as a command".to_owned())
        );
    }

    /// The words of a line, in which `§` precedes a value, and `+§` in the middle of a word precedes one.
    fn check_values(line: &str) -> Result<(), String> {
        let word = |word: &str| {
            let origin = match word.find('§') {
                Some(0) => WordOrigin::Value,
                Some(_) => WordOrigin::AuthorThenValue,
                None => WordOrigin::Author,
            };
            FilledWord { text: word.replace('§', ""), origin }
        };
        check_filled_words(&line.split(' ').map(word).collect::<Vec<_>>())
            .map_err(|refused| format!("{}: {}", refused.index, refused.why))
    }

    /// The script of a shell, with values for "$1", "$2", ….
    fn check_script(script: &str, values: &[&str]) -> Result<(), String> {
        let author = ["sh", "-c", script, "sh"].map(|text| (text, WordOrigin::Author));
        let words = author.into_iter().chain(values.iter().map(|text| (*text, WordOrigin::Value)));
        let words: Vec<_> = words.map(|(text, origin)| FilledWord { text: text.to_owned(), origin }).collect();
        check_filled_words(&words).map_err(|refused| format!("{}: {}; {}", refused.index, refused.why, refused.instead))
    }

    #[test]
    fn filled_values_are_no_options_in_the_script_of_a_shell() {
        let dash = |index| {
            let why = "that begins with a dash where the program would take it for an option";
            format!(
                "{index}: {why}; write `--` before it, or `--OPTION=${{…}}` in one word, or give it to a script of yours"
            )
        };
        for (script, values, index) in [
            ("git log \"$1\"", &["--output=x"][..], 4),
            ("git log \"${1}\"", &["--output=x"], 4),
            ("git log \"$X$2\"", &["x", "--output=x"], 5),
            ("git log \"${2:-x}\"", &["x", "--output=x"], 5),
            ("git log \"$@\"", &["x", "--output=x"], 5),
            ("git log \"$*\"", &["--output=x"], 4),
            ("timeout 5 git log \"$1\" --", &["--output=x"], 4),
            ("sh -c 'git log \"$2\"' sh x \"$1\"", &["--output=x"], 4),
        ] {
            assert_eq!(check_script(script, values), Err(dash(index)), "{script}");
        }
        for (script, values) in [
            ("git log -- \"$1\"", &["--output=x"][..]),
            ("git log --grep=\"$1\" \"$2\"", &["-x", "-5"]),
            ("git log \"$1\"; ./notify \"$2\" \"$@\"", &["x", "-y"]),
            ("git log \"$1\"", &["x", "-y"]),
            ("printf %s \"$1\"; [ \"$1\" = x ] && echo \"$1\"", &["-x"]),
            ("sh -c 'git log -- \"$1\"' sh \"$1\"", &["-x"]),
        ] {
            assert_eq!(check_script(script, values), Ok(()), "{script}");
        }
    }

    #[test]
    fn arguments_of_a_script_are_quoted() {
        for script in ["find . -name $1", "git log $1", "./notify ${1}", "env A=$1 ./notify", "echo $@", "echo x$*"] {
            let why = "outside double quotes in the script of a shell: it would become several arguments";
            let refused = format!("4: {why}; write double quotes around it: \"$1\", \"$@\"");
            assert_eq!(check_script(script, &["x"]), Err(refused), "{script}");
        }
        for script in ["x=$1 ./notify", "if [ \"$1\" = a ]; then ./notify; fi", "./notify $# \"$1\" $X\"$1\""] {
            assert_eq!(check_script(script, &["x"]), Ok(()), "{script}");
        }
    }

    #[test]
    fn filled_values_are_no_options() {
        let dash = |index| format!("{index}: that begins with a dash where the program would take it for an option");
        let option =
            |index, option: &str, name| format!("{index}: after `{option}` of `{name}`: it may be run as a command");
        for (line, why) in [
            ("find . -maxdepth 0 §-exec §touch §x §;", option(4, "-exec", "find")),
            ("find . §-delete", dash(2)),
            ("timeout 5 env A=b find . §-delete", dash(6)),
            ("git log §--output=x --", dash(2)),
            ("git §--", dash(1)),
            ("git §bisect §run §x", option(2, "bisect", "git")),
        ] {
            assert_eq!(check_values(line), Err(why), "{line}");
        }
        for line in [
            "git log -- §--output=x",
            "git log --grep=§-x §-5 §-",
            "head -n §-1.5",
            "sh -c true §-x §--exec §-y",
            "./notify §-x --command §-y",
            "timeout 5 ./notify §-x",
            "python3 notify.py §-x",
            "echo §-e",
            "printf %s §-x",
        ] {
            assert_eq!(check_values(line), Ok(()), "{line}");
        }
    }
}
