//! Plain shell commands: where each begins and ends, and its words.
//!
//! The scanner supports a small part of the shell's language: commands between `;`, `&`, `|`, newlines and parentheses, the
//! words around commands in `if`, `while` and `{ … }`, quotes, `$NAME`, `$( … )`, and redirections to files.
//!
//! Invariants:
//! - The scanner refuses a text with any other syntax (`ScanRefusal::Unsupported`).
//! - dash and bash find the same commands and words in an accepted text, if they accept it at all.

use super::PlaceholderContext;
use super::commands;
use super::refusal::{ScanRefusal, UnsafeReason};
use super::template::PlaceholderMark;
use super::word::ShellWord;

/// The deepest nesting of `$( … )`.
const MAX_SUBSTITUTION_DEPTH: usize = 20;

/// Special parameters of one character. The first two stand for all arguments.
const SPECIAL_PARAMETERS: &str = "@*#?$!-";

const UNCLOSED: ScanRefusal = ScanRefusal::Unsupported("something that is not closed");

/// Returns the context of each mark; `None` for marks in comments.
pub(super) fn locate_marks(
    text: &str,
    marks: &[PlaceholderMark],
) -> Result<Vec<Option<PlaceholderContext>>, ScanRefusal> {
    let mut scanner = CommandScanner::new(text, marks, None);
    scanner.scan_commands()?;
    Ok(scanner.places)
}

/// Checks that the script of a shell takes its arguments, which are free text, for text alone. `dashed` holds the numbers
/// of the arguments that begin with a dash.
pub(super) fn check_script(script: &str, dashed: &[usize]) -> Result<(), ScanRefusal> {
    let names_argument =
        |rest: &str| parameter_name(rest.strip_prefix('{').unwrap_or(rest)).is_some_and(is_script_argument);
    match script.split('$').skip(1).any(|rest| names_argument(rest) || rest.starts_with("{!")) {
        true => CommandScanner::new(script, &[], Some(dashed)).scan_commands(),
        false => Ok(()),
    }
}

/// Returns the name of the parameter at the start of a text.
fn parameter_name(text: &str) -> Option<&str> {
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
fn is_script_argument(name: &str) -> bool {
    matches!(name, "@" | "*") || name.starts_with(|c: char| c.is_ascii_digit())
}

struct CommandScanner<'a> {
    text: &'a str,
    at: usize,
    marks: &'a [PlaceholderMark],
    places: Vec<Option<PlaceholderContext>>,
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
struct ScannedCommand {
    words: Vec<ShellWord>,
    /// Whether there was a redirection: behind one no word is reserved.
    is_redirected: bool,
    /// Whether the command has no word yet and follows a `|`.
    follows_pipe: bool,
}

impl<'a> CommandScanner<'a> {
    fn new(text: &'a str, marks: &'a [PlaceholderMark], dashed: Option<&'a [usize]>) -> Self {
        let places =
            marks.iter().map(|mark| (!mark.name.is_free_text()).then_some(PlaceholderContext::Anywhere)).collect();
        Self { text, at: 0, marks, places, dashed, closers: Vec::new(), substitutions: 0, free: None, piped: None }
    }

    fn remaining_text(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.remaining_text().chars().next()
    }

    fn consume_text(&mut self, text: &str) -> bool {
        let follows = self.remaining_text().starts_with(text);
        if follows {
            self.at += text.len();
        }
        follows
    }

    fn mark_index_here(&self) -> Option<usize> {
        self.marks.binary_search_by_key(&self.at, |mark| mark.at.start).ok()
    }

    /// Scans commands, to the end of the text or to the parenthesis that closes a `$( … )`.
    fn scan_commands(&mut self) -> Result<(), ScanRefusal> {
        let outer = self.closers.len();
        let mut command = ScannedCommand::default();
        loop {
            self.skip_blanks()?;
            match self.peek() {
                None => break,
                Some('#') => self.skip_comment()?,
                Some(';' | '&' | '|' | '\n') => self.scan_operator(&mut command)?,
                Some('(') => self.open_subshell(&mut command)?,
                Some(')') => {
                    self.end_command(&mut command)?;
                    self.at += 1;
                    match self.closers.len() == outer && self.substitutions > 0 {
                        true => return Ok(()),
                        false => self.close_construct(")")?,
                    }
                }
                Some('<' | '>') => self.scan_redirection(&mut command)?,
                Some(_) => self.scan_command_word(&mut command)?,
            }
        }
        self.end_command(&mut command)?;
        if self.closers.is_empty() && self.substitutions == 0 { Ok(()) } else { Err(UNCLOSED) }
    }

    /// Skips spaces, tabs, and newlines behind a backslash.
    fn skip_blanks(&mut self) -> Result<(), ScanRefusal> {
        while let Some(' ' | '\t' | '\\') = self.peek() {
            if self.consume_text("\\\n") {
                let joins = !self.text[..self.at - 2].ends_with([' ', '\t', '\n']) || self.peek() == Some('#');
                if joins {
                    return Err(ScanRefusal::Unsupported("a backslash at the end of a line that joins two halves"));
                }
            } else if self.peek() == Some('\\') {
                return Ok(());
            } else {
                self.at += 1;
            }
        }
        Ok(())
    }

    fn skip_comment(&mut self) -> Result<(), ScanRefusal> {
        // Old shells search for the end of `$( … )` in comments as well.
        if self.substitutions > 0 {
            return Err(ScanRefusal::Unsupported("a comment within `$( … )`"));
        }
        self.at += self.remaining_text().find('\n').unwrap_or(self.remaining_text().len());
        Ok(())
    }

    fn scan_operator(&mut self, command: &mut ScannedCommand) -> Result<(), ScanRefusal> {
        if ["&>", "|&", ";;", ";&"].iter().any(|operator| self.remaining_text().starts_with(operator)) {
            return Err(ScanRefusal::Unsupported("`&>`, `|&`, `;;` or `;&`"));
        }
        let follows_pipe = command.follows_pipe;
        self.end_command(command)?;
        let is_here = |operator: &&&str| self.remaining_text().starts_with(**operator);
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

    fn open_subshell(&mut self, command: &mut ScannedCommand) -> Result<(), ScanRefusal> {
        if !command.words.is_empty() || command.is_redirected {
            return Err(ScanRefusal::Unsupported("a function, a list in parentheses or a pattern with them"));
        }
        if self.remaining_text().starts_with("((") {
            return Err(ScanRefusal::Unsupported("`((`"));
        }
        self.at += 1;
        self.closers.push(")");
        command.follows_pipe = false;
        Ok(())
    }

    fn close_construct(&mut self, closer: &str) -> Result<(), ScanRefusal> {
        let opened = self.closers.pop_if(|expected| *expected == closer);
        opened.map(drop).ok_or(ScanRefusal::Unsupported("a `)`, `}`, `fi` or `done` that nothing opened"))
    }

    fn scan_redirection(&mut self, command: &mut ScannedCommand) -> Result<(), ScanRefusal> {
        if ["<<", "<(", ">("].iter().any(|operator| self.remaining_text().starts_with(operator)) {
            return Err(ScanRefusal::Unsupported("a here-document, `<( … )` or `>( … )`"));
        }
        let _ = [">>", "<&", ">&", "<>", ">|", "<", ">"].iter().any(|operator| self.consume_text(operator));
        self.skip_blanks()?;
        let start = self.at;
        let target = self.scan_word()?;
        if let Some(index) = target.marks.first() {
            return Err(ScanRefusal::AtMark(*index, UnsafeReason::Redirection));
        }
        if self.at == start || target.vanishes {
            return Err(ScanRefusal::Unsupported("a redirection that may be to nothing"));
        }
        (command.is_redirected, command.follows_pipe) = (true, false);
        Ok(())
    }

    /// Scans a word of a command, or a reserved word before a command.
    fn scan_command_word(&mut self, command: &mut ScannedCommand) -> Result<(), ScanRefusal> {
        let word = self.scan_word()?;
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
            "fi" | "done" | "}" => self.close_construct(reserved)?,
            "case" | "esac" | "for" | "select" | "function" | "coproc" | "time" | "[[" => {
                return Err(ScanRefusal::Unsupported("`case`, `for`, `select`, `function`, `coproc`, `time` or `[[`"));
            }
            _ => {
                command.words.push(word);
                return Ok(());
            }
        }
        match command.is_redirected {
            true => Err(ScanRefusal::Unsupported("a redirection before a word of the shell")),
            false => Ok(()),
        }
    }

    /// Ends the command: checks its free text, and that none is piped into a command that runs its input.
    fn end_command(&mut self, command: &mut ScannedCommand) -> Result<(), ScanRefusal> {
        let ScannedCommand { words, .. } = std::mem::take(command);
        match (commands::check_command(&words)?, self.piped) {
            (Some(reader), Some(index)) => Err(ScanRefusal::AtMark(index, UnsafeReason::Piped(reader))),
            _ => Ok(()),
        }
    }

    /// Scans the word that begins here.
    fn scan_word(&mut self) -> Result<ShellWord, ScanRefusal> {
        let start = self.at;
        let mut word = ShellWord::new();
        while let Some(next) = self.peek() {
            if let Some(index) = self.mark_index_here() {
                self.scan_mark(index, start, &mut word)?;
                continue;
            }
            match next {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' => break,
                '\'' => self.scan_single_quotes(&mut word)?,
                '"' => self.scan_double_quotes(&mut word)?,
                '\\' => {
                    word.plain = false;
                    let escaped = self.scan_escaped_letter()?;
                    word.push_quoted(escaped);
                }
                '$' => self.scan_expansion(&mut word, false)?,
                '`' => return Err(ScanRefusal::Unsupported("backticks")),
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
    fn scan_mark(&mut self, index: usize, start: usize, word: &mut ShellWord) -> Result<(), ScanRefusal> {
        let PlaceholderMark { name, at } = &self.marks[index];
        self.at = at.end;
        word.literal = None;
        if name.is_free_text() {
            return self.record_free_text(index, PlaceholderContext::Bare, word);
        }
        // The value may be empty, and then its neighbours meet.
        word.splits = true;
        let after = self.peek();
        let is_alone = after.is_none_or(|c| matches!(c, ' ' | '\t' | '\n' | ';' | ')'));
        let goes_on = after.is_some_and(|c| c.is_alphanumeric() || "_./:=,@%+-".contains(c));
        word.vanishes = at.start == start && is_alone;
        match at.start != start || is_alone || goes_on {
            true => Ok(()),
            false => Err(ScanRefusal::Unsupported("a name in braces right before a sign of the shell")),
        }
    }

    fn record_free_text(
        &mut self,
        index: usize,
        place: PlaceholderContext,
        word: &mut ShellWord,
    ) -> Result<(), ScanRefusal> {
        if self.substitutions > 0 {
            return Err(ScanRefusal::AtMark(index, UnsafeReason::Substitution));
        }
        if let Some(found) = self.places.get_mut(index) {
            *found = Some(place);
        }
        self.free = self.free.or(Some(index));
        word.marks.push(index);
        Ok(())
    }

    fn scan_single_quotes(&mut self, word: &mut ShellWord) -> Result<(), ScanRefusal> {
        word.plain = false;
        let start = self.at + 1;
        let end = start + self.text[start..].find('\'').ok_or(UNCLOSED)?;
        let is_within = |mark: &PlaceholderMark| mark.name.is_free_text() && (start..end).contains(&mark.at.start);
        if let Some(index) = self.marks.iter().position(is_within) {
            return Err(ScanRefusal::AtMark(index, UnsafeReason::SingleQuotes));
        }
        self.text[start..end].chars().for_each(|c| word.push_quoted(c));
        self.at = end + 1;
        Ok(())
    }

    fn scan_double_quotes(&mut self, word: &mut ShellWord) -> Result<(), ScanRefusal> {
        word.plain = false;
        self.at += 1;
        loop {
            if let Some(index) = self.mark_index_here() {
                self.at = self.marks[index].at.end;
                word.literal = None;
                if self.marks[index].name.is_free_text() {
                    self.record_free_text(index, PlaceholderContext::Quoted, word)?;
                }
                continue;
            }
            match self.peek().ok_or(UNCLOSED)? {
                '"' => break,
                '\\' => {
                    let escaped = self.scan_escaped_letter()?;
                    if !matches!(escaped, '$' | '`' | '"' | '\\') {
                        word.push_quoted('\\');
                    }
                    word.push_quoted(escaped);
                }
                '$' => self.scan_expansion(word, true)?,
                '`' => return Err(ScanRefusal::Unsupported("backticks")),
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
    fn scan_escaped_letter(&mut self) -> Result<char, ScanRefusal> {
        self.at += 1;
        self.expect_no_mark(UnsafeReason::AfterBackslash)?;
        let escaped =
            self.peek().filter(|c| *c != '\n').ok_or(ScanRefusal::Unsupported("a backslash at the end of a line"))?;
        self.at += escaped.len_utf8();
        Ok(escaped)
    }

    /// Refuses a placeholder here. A checked value may be empty, and then other text follows.
    fn expect_no_mark(&self, why: UnsafeReason) -> Result<(), ScanRefusal> {
        match self.mark_index_here() {
            Some(index) if self.marks[index].name.is_free_text() => Err(ScanRefusal::AtMark(index, why)),
            Some(_) => Err(ScanRefusal::Unsupported("a name in braces right after a `\\` or a `$`")),
            None => Ok(()),
        }
    }

    /// Scans `$NAME`, `${NAME}` or `$( … )`.
    fn scan_expansion(&mut self, word: &mut ShellWord, is_quoted: bool) -> Result<(), ScanRefusal> {
        self.at += 1;
        word.literal = None;
        word.splits |= !is_quoted;
        self.expect_no_mark(UnsafeReason::AfterDollar)?;
        if self.remaining_text().starts_with("((") {
            return Err(ScanRefusal::Unsupported("arithmetic"));
        }
        if self.consume_text("(") {
            return self.scan_substitution();
        }
        let is_braced = self.consume_text("{");
        let Some(name) = parameter_name(self.remaining_text()) else {
            return match self.peek() {
                _ if is_braced => Err(ScanRefusal::Unsupported("`${ … }` with more in it than a name")),
                // bash evaluates `$[ … ]` within double quotes, too.
                Some('[') => Err(ScanRefusal::Unsupported("`$[ … ]`")),
                Some('\'' | '"') if !is_quoted => Err(ScanRefusal::Unsupported("`$'…'` or `$\"…\"`")),
                _ => Ok(()),
            };
        };
        // Without braces, the name is a single digit.
        let length = if !is_braced && name.starts_with(|c: char| c.is_ascii_digit()) { 1 } else { name.len() };
        let name = &name[..length];
        self.at += length;
        if is_braced {
            self.scan_default_value()?;
        }
        word.splits |= name == "@";
        match self.dashed {
            Some(dashed) if is_script_argument(name) => {
                let is_dashed = name.parse().map_or(!dashed.is_empty(), |number| dashed.contains(&number));
                word.dash |= word.known.is_empty() && is_dashed;
                word.unquoted |= !is_quoted;
                self.record_free_text(0, PlaceholderContext::Bare, word)
            }
            _ => Ok(()),
        }
    }

    /// Scans the rest of `${ … }` behind a name: nothing, or a plain default text.
    fn scan_default_value(&mut self) -> Result<(), ScanRefusal> {
        let value = self.remaining_text().split('}').next().unwrap_or_default();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || " :-_./,=".contains(c);
        let begins = value.is_empty() || value.starts_with('-') || value.starts_with(":-");
        self.at += value.len();
        match begins && value.chars().all(is_plain) && self.consume_text("}") {
            true => Ok(()),
            false => Err(ScanRefusal::Unsupported("`${ … }` with more in it than a name")),
        }
    }

    fn scan_substitution(&mut self) -> Result<(), ScanRefusal> {
        if self.substitutions == MAX_SUBSTITUTION_DEPTH {
            return Err(ScanRefusal::Unsupported("so much nesting"));
        }
        self.substitutions += 1;
        self.scan_commands()?;
        self.substitutions -= 1;
        Ok(())
    }
}
