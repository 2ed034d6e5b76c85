//! A simple command: how its first word treats the others.

use std::ops::Range;

use super::evaluators::{
    OptionReach, changes_language, file_name, is_code_argument, is_evaluating_built_in, is_evaluating_tool,
    is_evaluator, is_find_program, is_interpreter, is_project_script, is_shell, is_special_variable, option_reach,
    option_starts_shell, program_language, short_option, takes_file_pattern, wrapped_operand_count,
};
use super::refusal::{ScanRefusal, UnsafeReason};
use super::scanner;
use super::word::ShellWord;

/// The reader that splits a command into words and starts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommandReader {
    Shell,
    /// No shell: names of built-in commands are names of ordinary programs.
    System,
}

/// Unary tests that accept any text.
const UNARY_TEXT_TESTS: &[&str] = &["-n", "-z", "-e", "-f", "-d", "-r", "-w", "-x", "-s", "-L", "-h"];
/// Binary tests that accept any text.
const BINARY_TEXT_TESTS: &[&str] = &["=", "==", "!="];

/// Checks that free text may occur where it does in this command. Returns the word that runs the command's input, if there is one.
pub(super) fn check_command(words: &[ShellWord]) -> Result<Option<String>, ScanRefusal> {
    let rest = skip_assignments(words)?;
    let Some(first) = rest.first() else { return Ok(None) };
    if let Some(index) = first.marks.first() {
        return Err(ScanRefusal::AtMark(*index, UnsafeReason::CommandWord));
    }
    if first.vanishes {
        return Err(ScanRefusal::Unsupported("a name in braces in the place of a command"));
    }
    check_arguments(rest, CommandReader::Shell)?;
    if let Some(word) = rest.iter().find(|word| word.unquoted) {
        return Err(ScanRefusal::AtMark(word.marks[0], UnsafeReason::Unquoted));
    }
    check_dashed_values(rest)?;
    find_input_evaluator(rest)
}

/// Returns the words behind the assignments at the start of a command.
fn skip_assignments(words: &[ShellWord]) -> Result<&[ShellWord], ScanRefusal> {
    let end = words.iter().position(|word| word.assigned_variable().is_none()).unwrap_or(words.len());
    for word in &words[..end] {
        let special = word.assigned_variable().filter(|name| is_special_variable(name));
        if let (Some(name), Some(index)) = (special, word.marks.first()) {
            return Err(ScanRefusal::AtMark(*index, UnsafeReason::Special(name.to_owned())));
        }
    }
    Ok(&words[end..])
}

/// Returns the first free text among the arguments.
fn first_argument_mark(words: &[ShellWord]) -> Option<usize> {
    words.iter().skip(1).find_map(|word| word.marks.first().copied())
}

/// Checks that free text may occur among the arguments of a program.
pub(super) fn check_arguments(words: &[ShellWord], reader: CommandReader) -> Result<(), ScanRefusal> {
    let Some(index) = first_argument_mark(words) else { return Ok(()) };
    if inline_shell_script(words).is_some() {
        return check_inline_script(words);
    }
    let refused = |why| Err(ScanRefusal::AtMark(index, why));
    let Some(name) = words[0].program_name() else { return refused(UnsafeReason::UnknownCommand) };
    check_evaluators(words)?;
    if is_evaluating_tool(name) {
        return refused(UnsafeReason::Evaluated(name.to_owned()));
    }
    if reader == CommandReader::Shell && is_evaluating_built_in(name) {
        return refused(UnsafeReason::BuiltIn(name.to_owned()));
    }
    if let Some(program) = program_language(name) {
        return refused(UnsafeReason::Program(program.to_owned()));
    }
    if let Some(before) = wrapped_operand_count(name) {
        return check_wrapped_command(words, before, index, reader);
    }
    match name {
        "printf" if !is_fixed_printf_format(words) => refused(UnsafeReason::Format),
        "test" if !is_plain_test(&words[1..]) => refused(UnsafeReason::Test),
        "[" if !is_plain_test(words[1..].split_last().map_or(&[], |(_, test)| test)) => refused(UnsafeReason::Test),
        // A script file has options of its own.
        _ if is_interpreter(name) && runs_script_file(&words[1..]) => Ok(()),
        _ if is_interpreter(name) => refused(UnsafeReason::Interpreted(name.to_owned())),
        _ => {
            check_options(words)?;
            match is_find_program(name) && !is_plain_find(words) {
                true => refused(UnsafeReason::Program("find".to_owned())),
                false => Ok(()),
            }
        }
    }
}

/// Returns the script of `sh -c`, if it is known. A shell assigns the words behind it to "$0", "$1", ….
fn inline_shell_script(words: &[ShellWord]) -> Option<&str> {
    let is_c = |option: &str| {
        option.len() > 1 && option.starts_with('-') && option[1..].trim_start_matches(['e', 'u', 'x']) == "c"
    };
    match words {
        [shell, option, script, ..]
            if shell.program_name().is_some_and(is_shell)
                && option.literal.as_deref().is_some_and(is_c)
                && is_operand(script) =>
        {
            script.literal.as_deref()
        }
        _ => None,
    }
}

/// Refuses free text among a shell's arguments that its script takes for more than text.
pub(super) fn check_inline_script(words: &[ShellWord]) -> Result<(), ScanRefusal> {
    let Some((script, index)) = inline_shell_script(words).zip(first_argument_mark(words)) else { return Ok(()) };
    let dashed: Vec<usize> = (3..words.len()).filter(|at| words[*at].dash).collect();
    let first_dash = dashed.first().and_then(|at| words[*at].marks.first().copied());
    // The word behind the script is "$0".
    let numbers: Vec<usize> = dashed.iter().map(|at| at - 3).collect();
    scanner::check_script(script, &numbers).map_err(|stop| match stop {
        ScanRefusal::AtMark(_, UnsafeReason::Dash) => {
            ScanRefusal::AtMark(first_dash.unwrap_or(index), UnsafeReason::Dash)
        }
        ScanRefusal::AtMark(_, why) => ScanRefusal::AtMark(index, why),
        lost => lost,
    })
}

/// Refuses a value that begins with a dash where the program takes it for an option.
pub(super) fn check_dashed_values(words: &[ShellWord]) -> Result<(), ScanRefusal> {
    let ends_options = |word: &&ShellWord| word.marks.is_empty() && word.literal.as_deref() == Some("--");
    let mut options = words[own_option_range(words)].iter().take_while(|word| !ends_options(word));
    match options.find(|word| word.dash) {
        Some(word) => Err(ScanRefusal::AtMark(word.marks[0], UnsafeReason::Dash)),
        None => Ok(()),
    }
}

/// Refuses free text behind a word that names an evaluator.
fn check_evaluators(words: &[ShellWord]) -> Result<(), ScanRefusal> {
    let mut found = None;
    for word in words {
        if let (Some(name), Some(index)) = (found, word.marks.first()) {
            return Err(ScanRefusal::AtMark(*index, UnsafeReason::Evaluated(str::to_owned(name))));
        }
        found = found.or(word.program_name().filter(|name| is_evaluator(name)));
    }
    Ok(())
}

/// Returns the range of the words of the wrapped program, up to a script that has options of its own.
pub(super) fn own_option_range(words: &[ShellWord]) -> Range<usize> {
    let mut start = 0;
    while let Some(before) = words[start].program_name().and_then(wrapped_operand_count) {
        let next = start + 1 + before;
        let Some(rest) = words.get(next..) else { break };
        let assigned = rest.iter().take_while(|word| word.assigned_variable().is_some()).count();
        if !rest.get(assigned).is_some_and(is_operand) {
            break;
        }
        start = next + assigned;
    }
    let program = words[start].literal.as_deref().unwrap_or_default();
    let name = file_name(program);
    let script = inline_shell_script(&words[start..]).map(|_| start + 3);
    let is_file = is_interpreter(name) && runs_script_file(&words[start + 1..]);
    let is_text = matches!(name, "echo" | "printf" | "test" | "[");
    let end = if is_project_script(program) || is_file || is_text { Some(start + 1) } else { script };
    start..end.unwrap_or(words.len())
}

/// Refuses free text in the value of an option that the program runs.
pub(super) fn check_options(words: &[ShellWord]) -> Result<(), ScanRefusal> {
    let program = words[0].literal.as_deref().unwrap_or_default();
    let (mut value_of, mut rest_of) = (None, None);
    let mut has_ended = false;
    for word in &words[1..] {
        has_ended |= word.marks.is_empty() && word.literal.as_deref() == Some("--");
        let (option, has_value) = match word.known.split_once('=') {
            Some((option, _)) => (option, true),
            None => (word.known.as_str(), false),
        };
        let short = short_option(option).filter(|short| !has_ended && option_reach(program, short).is_some());
        let (option, has_value, reach) = match (option_reach(program, option), short) {
            (None, Some(short)) => (short, true, Some(OptionReach::Value)),
            (reach, _) => (option, has_value, reach),
        };
        let own = reach.filter(|_| option.starts_with('-')).map(|_| option);
        if let (Some(option), Some(index)) = (rest_of.or(value_of).or(own), word.marks.first()) {
            return Err(ScanRefusal::AtMark(
                *index,
                UnsafeReason::Option(file_name(program).to_owned(), option.to_owned()),
            ));
        }
        rest_of = rest_of.or(Some(option).filter(|_| reach == Some(OptionReach::Rest) && !has_value));
        value_of = own.filter(|_| !has_value);
    }
    Ok(())
}

/// Checks the command that another one starts. Options before it may hide where it begins.
fn check_wrapped_command(
    words: &[ShellWord],
    before: usize,
    index: usize,
    reader: CommandReader,
) -> Result<(), ScanRefusal> {
    let name = words[0].program_name().unwrap_or_default();
    let words = &words[1..];
    let unknown = || Err(ScanRefusal::AtMark(index, UnsafeReason::Wrapped(name.to_owned())));
    let known = |word: &ShellWord| word.literal.as_ref().is_some_and(|text| !text.starts_with('-') && !text.is_empty());
    let Some((operands, rest)) = words.split_at_checked(before) else { return unknown() };
    if !operands.iter().all(known) {
        return unknown();
    }
    let rest = skip_assignments(rest)?;
    match rest.first() {
        Some(first) if known(first) => check_arguments(rest, reader),
        Some(first) if !first.marks.is_empty() => Err(ScanRefusal::AtMark(index, UnsafeReason::CommandWord)),
        None if !words.is_empty() => Ok(()),
        _ => unknown(),
    }
}

/// Returns whether free text in a `find` is the value of a test, or a part of a path.
fn is_plain_find(words: &[ShellWord]) -> bool {
    let is_plain = |pair: &[ShellWord]| {
        let is_path = pair[1].known.starts_with(|c: char| c.is_ascii_alphanumeric() || "./_".contains(c));
        // Text outside double quotes has a refusal of its own.
        let is_one_word = !pair[1].splits || pair[1].unquoted;
        let is_value = pair[0].literal.as_deref().is_some_and(takes_file_pattern) && is_one_word;
        pair[1].marks.is_empty() || is_path || is_value
    };
    words.windows(2).all(is_plain)
}

/// Returns whether a `printf` has a known format whose directives take arguments as text.
fn is_fixed_printf_format(words: &[ShellWord]) -> bool {
    let mut operands = words[1..].iter().map(|word| word.literal.as_deref());
    let format = match operands.next() {
        Some(Some("--")) => operands.next(),
        Some(Some(option)) if option.starts_with('-') => None,
        first => first,
    };
    format.flatten().is_some_and(format_takes_text)
}

fn format_takes_text(format: &str) -> bool {
    let mut directives = format.split('%').skip(1).peekable();
    while let Some(directive) = directives.next() {
        // The directive `%%`.
        if directive.is_empty() && directives.peek().is_some() {
            directives.next();
            continue;
        }
        let kind = directive.trim_start_matches(|c: char| c.is_ascii_digit() || "-+ #.".contains(c));
        if !kind.starts_with(['s', 'b', 'c', 'q']) {
            return false;
        }
    }
    true
}

/// Returns whether a test has one of the forms in which no text can be an operator.
fn is_plain_test(words: &[ShellWord]) -> bool {
    if words.iter().any(|word| word.splits) {
        return false;
    }
    let literal = |word: &ShellWord, list: &[&str]| word.literal.as_deref().is_some_and(|text| list.contains(&text));
    let words = match words {
        [not, rest @ ..] if literal(not, &["!"]) && rest.len() > 1 => rest,
        words => words,
    };
    match words {
        [_] => true,
        [operator, _] => literal(operator, UNARY_TEXT_TESTS),
        [_, operator, _] => literal(operator, BINARY_TEXT_TESTS),
        _ => false,
    }
}

/// Returns whether an interpreter's arguments begin with the file that it runs: `FILE.py`, `./FILE`, `run FILE.ts`. A name
/// without a dot or a slash may be a command of the interpreter.
fn runs_script_file(words: &[ShellWord]) -> bool {
    let file = match words {
        [run, rest @ ..] if run.literal.as_deref() == Some("run") => rest.first(),
        words => words.first(),
    };
    file.is_some_and(|file| is_operand(file) && file.literal.as_ref().is_some_and(|file| file.contains(['.', '/'])))
}

fn is_operand(word: &ShellWord) -> bool {
    word.literal.as_ref().is_some_and(|text| !text.starts_with(['-', '+']))
}

/// Returns the program in a command that runs its own input.
fn find_input_evaluator(words: &[ShellWord]) -> Result<Option<String>, ScanRefusal> {
    let Some(name) = words[0].program_name() else { return Ok(Some("a command that is known only then".to_owned())) };
    let wrapped = wrapped_operand_count(name);
    for (index, word) in words.iter().enumerate() {
        let Some(name) = word.program_name() else { continue };
        let is_command = index == 0 || wrapped.is_some();
        if is_command && changes_language(name) {
            return Err(ScanRefusal::Unsupported("an alias or a declaration, which change what follows"));
        }
        let runs = is_evaluating_tool(name)
            || matches!(name, "." | "source")
            || is_interpreter(name) && reads_code_from_input(&words[index + 1..]);
        if is_evaluator(name) || is_command && runs {
            return Ok(Some(name.to_owned()));
        }
    }
    Ok(wrapped.filter(|before| starts_unknown_command(&words[1..], *before)).map(|_| name.to_owned()))
}

/// Returns whether a wrapper may start a shell, or an unknown program.
fn starts_unknown_command(words: &[ShellWord], before: usize) -> bool {
    let unknown = |word: &ShellWord| match &word.literal {
        Some(option) => option_starts_shell(option),
        None => word.marks.is_empty(),
    };
    words.iter().any(unknown) || words.iter().filter(|word| is_operand(word)).count() <= before
}

/// Returns whether an interpreter with these arguments takes its input for code.
fn reads_code_from_input(words: &[ShellWord]) -> bool {
    let first = words.first().and_then(|word| word.literal.as_deref());
    !first.is_some_and(is_code_argument) && !runs_script_file(words)
}
