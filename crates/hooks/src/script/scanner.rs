//! Plain shell commands: where each begins and ends, and its words.
//!
//! The scanner supports a small part of the shell's language: commands between `;`, `&`, `|`, newlines and parentheses, the
//! words around commands in `if`, `while` and `{ … }`, quotes, `$NAME`, `$( … )`, and redirections to files.
//!
//! Invariants:
//! - The scanner refuses a text with any other syntax (`ScanRefusal::Unsupported`).
//! - dash and bash find the same commands and words in an accepted text, if they accept it at all.

use super::Place;
use super::commands;
use super::refusal::{Stop, Why};
use super::template::Mark;
use super::word::Word;

/// The deepest nesting of `$( … )`.
const DEPTH: usize = 20;

/// Special parameters of one character. The first two stand for all arguments.
const SPECIAL_PARAMETERS: &str = "@*#?$!-";

const UNCLOSED: Stop = Stop::Lost("something that is not closed");

/// Returns the context of each mark; `None` for marks in comments.
pub(super) fn places(text: &str, marks: &[Mark]) -> Result<Vec<Option<Place>>, Stop> {
    let mut scanner = CommandScanner::new(text, marks, None);
    scanner.commands()?;
    Ok(scanner.places)
}

/// Checks that the script of a shell takes its arguments, which are free text, for text alone. `dashed` holds the numbers
/// of the arguments that begin with a dash.
pub(super) fn check_script(script: &str, dashed: &[usize]) -> Result<(), Stop> {
    let names_argument = |rest: &str| parameter(rest.strip_prefix('{').unwrap_or(rest)).is_some_and(is_argument);
    match script.split('$').skip(1).any(|rest| names_argument(rest) || rest.starts_with("{!")) {
        true => CommandScanner::new(script, &[], Some(dashed)).commands(),
        false => Ok(()),
    }
}

/// Returns the name of the parameter at the start of a text.
fn parameter(text: &str) -> Option<&str> {
    let first = text.chars().next()?;
    let is_part =
        |c: char| if first.is_ascii_digit() { c.is_ascii_digit() } else { c.is_ascii_alphanumeric() || c == '_' };
    let length = match SPECIAL_PARAMETERS.contains(first) {
        true => 1,
        false => text.find(|c: char| !is_part(c)).unwrap_or(text.len()),
    };
    Some(&text[..length]).filter(|name| !name.is_empty())
}

/// Returns whether a parameter is an argument of the script, or all of them.
fn is_argument(name: &str) -> bool {
    matches!(name, "@" | "*") || name.starts_with(|c: char| c.is_ascii_digit())
}

struct CommandScanner<'a> {
    text: &'a str,
    at: usize,
    marks: &'a [Mark],
    places: Vec<Option<Place>>,
    /// For the script of a shell, whose arguments are free text: the numbers of those that begin with a dash.
    dashed: Option<&'a [usize]>,
    /// The closers of all open constructs, the innermost last.
    closers: Vec<&'static str>,
    substitutions: usize,
    /// The first free text in the statement so far.
    free: Option<usize>,
    /// Free text of the statement that may be piped into the following commands.
    piped: Option<usize>,
}

/// A command that has begun.
#[derive(Default)]
struct Command {
    words: Vec<Word>,
    /// Whether there was a redirection: behind one no word is reserved.
    is_redirected: bool,
    /// Whether the command has no word yet and follows a `|`.
    follows_pipe: bool,
}

impl<'a> CommandScanner<'a> {
    fn new(text: &'a str, marks: &'a [Mark], dashed: Option<&'a [usize]>) -> Self {
        let places = marks.iter().map(|mark| (!mark.name.is_free()).then_some(Place::Anywhere)).collect();
        Self { text, at: 0, marks, places, dashed, closers: Vec::new(), substitutions: 0, free: None, piped: None }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn eat(&mut self, text: &str) -> bool {
        let follows = self.rest().starts_with(text);
        if follows {
            self.at += text.len();
        }
        follows
    }

    fn mark_here(&self) -> Option<usize> {
        self.marks.binary_search_by_key(&self.at, |mark| mark.at.start).ok()
    }

    /// Scans commands, to the end of the text or to the parenthesis that closes a `$( … )`.
    fn commands(&mut self) -> Result<(), Stop> {
        let outer = self.closers.len();
        let mut command = Command::default();
        loop {
            self.skip_blanks()?;
            match self.peek() {
                None => break,
                Some('#') => self.skip_comment()?,
                Some(';' | '&' | '|' | '\n') => self.operator(&mut command)?,
                Some('(') => self.open_subshell(&mut command)?,
                Some(')') => {
                    self.end_command(&mut command)?;
                    self.at += 1;
                    match self.closers.len() == outer && self.substitutions > 0 {
                        true => return Ok(()),
                        false => self.close(")")?,
                    }
                }
                Some('<' | '>') => self.redirection(&mut command)?,
                Some(_) => self.command_word(&mut command)?,
            }
        }
        self.end_command(&mut command)?;
        if self.closers.is_empty() && self.substitutions == 0 { Ok(()) } else { Err(UNCLOSED) }
    }

    /// Skips spaces, tabs, and newlines behind a backslash.
    fn skip_blanks(&mut self) -> Result<(), Stop> {
        while let Some(' ' | '\t' | '\\') = self.peek() {
            if self.eat("\\\n") {
                let joins = !self.text[..self.at - 2].ends_with([' ', '\t', '\n']) || self.peek() == Some('#');
                if joins {
                    return Err(Stop::Lost("a backslash at the end of a line that joins two halves"));
                }
            } else if self.peek() == Some('\\') {
                return Ok(());
            } else {
                self.at += 1;
            }
        }
        Ok(())
    }

    fn skip_comment(&mut self) -> Result<(), Stop> {
        // Old shells search for the end of `$( … )` in comments as well.
        if self.substitutions > 0 {
            return Err(Stop::Lost("a comment within `$( … )`"));
        }
        self.at += self.rest().find('\n').unwrap_or(self.rest().len());
        Ok(())
    }

    fn operator(&mut self, command: &mut Command) -> Result<(), Stop> {
        if ["&>", "|&", ";;", ";&"].iter().any(|operator| self.rest().starts_with(operator)) {
            return Err(Stop::Lost("`&>`, `|&`, `;;` or `;&`"));
        }
        let follows_pipe = command.follows_pipe;
        self.end_command(command)?;
        let is_here = |operator: &&&str| self.rest().starts_with(**operator);
        let operator = *["&&", "||", ";", "&", "|", "\n"].iter().find(is_here).expect("an operator begins here");
        self.at += operator.len();
        match operator {
            "|" => {
                self.piped = self.piped.or(self.free);
                command.follows_pipe = true;
            }
            "\n" if follows_pipe => command.follows_pipe = true,
            _ if self.closers.is_empty() && self.substitutions == 0 => (self.free, self.piped) = (None, None),
            _ => {}
        }
        Ok(())
    }

    fn open_subshell(&mut self, command: &mut Command) -> Result<(), Stop> {
        if !command.words.is_empty() || command.is_redirected {
            return Err(Stop::Lost("a function, a list in parentheses or a pattern with them"));
        }
        if self.rest().starts_with("((") {
            return Err(Stop::Lost("`((`"));
        }
        self.at += 1;
        self.closers.push(")");
        command.follows_pipe = false;
        Ok(())
    }

    fn close(&mut self, closer: &str) -> Result<(), Stop> {
        let opened = self.closers.pop_if(|expected| *expected == closer);
        opened.map(drop).ok_or(Stop::Lost("a `)`, `}`, `fi` or `done` that nothing opened"))
    }

    fn redirection(&mut self, command: &mut Command) -> Result<(), Stop> {
        if ["<<", "<(", ">("].iter().any(|operator| self.rest().starts_with(operator)) {
            return Err(Stop::Lost("a here-document, `<( … )` or `>( … )`"));
        }
        let _ = [">>", "<&", ">&", "<>", ">|", "<", ">"].iter().any(|operator| self.eat(operator));
        self.skip_blanks()?;
        let start = self.at;
        let target = self.word()?;
        if let Some(index) = target.marks.first() {
            return Err(Stop::At(*index, Why::Redirection));
        }
        if self.at == start || target.vanishes {
            return Err(Stop::Lost("a redirection that may be to nothing"));
        }
        (command.is_redirected, command.follows_pipe) = (true, false);
        Ok(())
    }

    /// Scans a word of a command, or a reserved word before a command.
    fn command_word(&mut self, command: &mut Command) -> Result<(), Stop> {
        let word = self.word()?;
        let is_number =
            word.plain && word.literal.as_ref().is_some_and(|text| text.bytes().all(|b| b.is_ascii_digit()));
        if is_number && matches!(self.peek(), Some('<' | '>')) {
            return Ok(());
        }
        command.follows_pipe = false;
        let reserved = word.literal.as_deref().filter(|_| word.plain && command.words.is_empty()).unwrap_or_default();
        match reserved {
            "!" | "then" | "else" | "elif" | "do" => {}
            "if" => self.closers.push("fi"),
            "while" | "until" => self.closers.push("done"),
            "{" => self.closers.push("}"),
            "fi" | "done" | "}" => self.close(reserved)?,
            "case" | "esac" | "for" | "select" | "function" | "coproc" | "time" | "[[" => {
                return Err(Stop::Lost("`case`, `for`, `select`, `function`, `coproc`, `time` or `[[`"));
            }
            _ => {
                command.words.push(word);
                return Ok(());
            }
        }
        match command.is_redirected {
            true => Err(Stop::Lost("a redirection before a word of the shell")),
            false => Ok(()),
        }
    }

    /// Ends the command: checks its free text, and that none is piped into a command that runs its input.
    fn end_command(&mut self, command: &mut Command) -> Result<(), Stop> {
        let Command { words, .. } = std::mem::take(command);
        match (commands::check(&words)?, self.piped) {
            (Some(reader), Some(index)) => Err(Stop::At(index, Why::Piped(reader))),
            _ => Ok(()),
        }
    }

    /// Scans the word that begins here.
    fn word(&mut self) -> Result<Word, Stop> {
        let start = self.at;
        let mut word = Word::new();
        while let Some(next) = self.peek() {
            if let Some(index) = self.mark_here() {
                self.mark(index, start, &mut word)?;
                continue;
            }
            match next {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' => break,
                '\'' => self.single_quotes(&mut word)?,
                '"' => self.double_quotes(&mut word)?,
                '\\' => {
                    word.plain = false;
                    let escaped = self.escaped()?;
                    word.push_quoted(escaped);
                }
                '$' => self.expansion(&mut word, false)?,
                '`' => return Err(Stop::Lost("backticks")),
                // A glob pattern, or a list in braces.
                '*' | '?' | '[' | ']' | '{' | '}' => {
                    self.at += 1;
                    word.literal = None;
                    word.splits = true;
                }
                _ => {
                    self.at += next.len_utf8();
                    word.push(next);
                }
            }
        }
        let raw = &self.text[start..self.at];
        if matches!(raw, "[" | "]" | "[[" | "{" | "}") {
            word.literal = Some(raw.to_owned());
        }
        Ok(word)
    }

    /// Scans a placeholder outside quotes.
    fn mark(&mut self, index: usize, start: usize, word: &mut Word) -> Result<(), Stop> {
        let Mark { name, at } = &self.marks[index];
        self.at = at.end;
        word.literal = None;
        if name.is_free() {
            return self.free_text(index, Place::Bare, word);
        }
        // The value may be empty, and then its neighbours meet.
        word.splits = true;
        let after = self.peek();
        let is_alone = after.is_none_or(|c| matches!(c, ' ' | '\t' | '\n' | ';' | ')'));
        let goes_on = after.is_some_and(|c| c.is_alphanumeric() || "_./:=,@%+-".contains(c));
        word.vanishes = at.start == start && is_alone;
        match at.start != start || is_alone || goes_on {
            true => Ok(()),
            false => Err(Stop::Lost("a name in braces right before a sign of the shell")),
        }
    }

    fn free_text(&mut self, index: usize, place: Place, word: &mut Word) -> Result<(), Stop> {
        if self.substitutions > 0 {
            return Err(Stop::At(index, Why::Substitution));
        }
        if let Some(found) = self.places.get_mut(index) {
            *found = Some(place);
        }
        self.free = self.free.or(Some(index));
        word.marks.push(index);
        Ok(())
    }

    fn single_quotes(&mut self, word: &mut Word) -> Result<(), Stop> {
        word.plain = false;
        let start = self.at + 1;
        let end = start + self.text[start..].find('\'').ok_or(UNCLOSED)?;
        let is_within = |mark: &Mark| mark.name.is_free() && (start..end).contains(&mark.at.start);
        if let Some(index) = self.marks.iter().position(is_within) {
            return Err(Stop::At(index, Why::SingleQuotes));
        }
        self.text[start..end].chars().for_each(|c| word.push_quoted(c));
        self.at = end + 1;
        Ok(())
    }

    fn double_quotes(&mut self, word: &mut Word) -> Result<(), Stop> {
        word.plain = false;
        self.at += 1;
        loop {
            if let Some(index) = self.mark_here() {
                self.at = self.marks[index].at.end;
                word.literal = None;
                if self.marks[index].name.is_free() {
                    self.free_text(index, Place::Quoted, word)?;
                }
                continue;
            }
            match self.peek().ok_or(UNCLOSED)? {
                '"' => break,
                '\\' => {
                    let escaped = self.escaped()?;
                    if !matches!(escaped, '$' | '`' | '"' | '\\') {
                        word.push_quoted('\\');
                    }
                    word.push_quoted(escaped);
                }
                '$' => self.expansion(word, true)?,
                '`' => return Err(Stop::Lost("backticks")),
                c => {
                    self.at += c.len_utf8();
                    word.push_quoted(c);
                }
            }
        }
        self.at += 1;
        Ok(())
    }

    /// Scans the character behind a backslash.
    fn escaped(&mut self) -> Result<char, Stop> {
        self.at += 1;
        self.expect_no_mark(Why::AfterBackslash)?;
        let escaped = self.peek().filter(|c| *c != '\n').ok_or(Stop::Lost("a backslash at the end of a line"))?;
        self.at += escaped.len_utf8();
        Ok(escaped)
    }

    /// Refuses a placeholder here. A checked value may be empty, and then other text follows.
    fn expect_no_mark(&self, why: Why) -> Result<(), Stop> {
        match self.mark_here() {
            Some(index) if self.marks[index].name.is_free() => Err(Stop::At(index, why)),
            Some(_) => Err(Stop::Lost("a name in braces right after a `\\` or a `$`")),
            None => Ok(()),
        }
    }

    /// Scans `$NAME`, `${NAME}` or `$( … )`.
    fn expansion(&mut self, word: &mut Word, is_quoted: bool) -> Result<(), Stop> {
        self.at += 1;
        word.literal = None;
        word.splits |= !is_quoted;
        self.expect_no_mark(Why::AfterDollar)?;
        if self.rest().starts_with("((") {
            return Err(Stop::Lost("arithmetic"));
        }
        if self.eat("(") {
            return self.substitution();
        }
        let is_braced = self.eat("{");
        let Some(name) = parameter(self.rest()) else {
            return match self.peek() {
                _ if is_braced => Err(Stop::Lost("`${ … }` with more in it than a name")),
                // bash evaluates `$[ … ]` within double quotes, too.
                Some('[') => Err(Stop::Lost("`$[ … ]`")),
                Some('\'' | '"') if !is_quoted => Err(Stop::Lost("`$'…'` or `$\"…\"`")),
                _ => Ok(()),
            };
        };
        // Without braces, the name is a single digit.
        let length = if !is_braced && name.starts_with(|c: char| c.is_ascii_digit()) { 1 } else { name.len() };
        let name = &name[..length];
        self.at += length;
        if is_braced {
            self.default_value()?;
        }
        word.splits |= name == "@";
        match self.dashed {
            Some(dashed) if is_argument(name) => {
                let is_dashed = name.parse().map_or(!dashed.is_empty(), |number| dashed.contains(&number));
                word.dash |= word.known.is_empty() && is_dashed;
                word.unquoted |= !is_quoted;
                self.free_text(0, Place::Bare, word)
            }
            _ => Ok(()),
        }
    }

    /// Scans the rest of `${ … }` behind a name: nothing, or a plain default text.
    fn default_value(&mut self) -> Result<(), Stop> {
        let value = self.rest().split('}').next().unwrap_or_default();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || " :-_./,=".contains(c);
        let begins = value.is_empty() || value.starts_with('-') || value.starts_with(":-");
        self.at += value.len();
        match begins && value.chars().all(is_plain) && self.eat("}") {
            true => Ok(()),
            false => Err(Stop::Lost("`${ … }` with more in it than a name")),
        }
    }

    fn substitution(&mut self) -> Result<(), Stop> {
        if self.substitutions == DEPTH {
            return Err(Stop::Lost("so much nesting"));
        }
        self.substitutions += 1;
        self.commands()?;
        self.substitutions -= 1;
        Ok(())
    }
}
