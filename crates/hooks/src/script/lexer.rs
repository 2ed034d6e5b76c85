//! Words of shell text: quotes, escapes and expansions, as dash and bash both read them.
//!
//! Invariant: where the two do not agree, or where it is not certain that they do, the text counts as lost.
//!
//! Not here: commands and what they are made of (`grammar`).

use super::Place;
use super::heredoc::Pending;
use super::refusal::{Stop, Why};
use super::template::Mark;
use super::word::Word;

/// How deep constructs may be within each other.
const DEPTH: usize = 40;

pub(super) struct Lexer<'a> {
    pub text: &'a str,
    pub at: usize,
    pub marks: &'a [Mark],
    /// For each mark, where it stands.
    pub places: Vec<Option<Place>>,
    /// Where free text is: the number of its mark, and the place in the text.
    pub free_at: Vec<(usize, usize)>,
    /// Whether "$0", "$1", … are free text: in the script of `sh -c`. All of them are mark number 0.
    positionals: bool,
    /// The numbers of those that begin with a dash.
    dashed: Vec<usize>,
    /// Within something in which free text is refused.
    pub enclosed: Option<Why>,
    /// Here-documents whose text begins on the next line.
    pub pending: Vec<Pending>,
    /// Commands that run what they read, by where they are.
    pub readers: Vec<(usize, String)>,
    depth: usize,
}

impl<'a> Lexer<'a> {
    pub fn new(text: &'a str, marks: &'a [Mark]) -> Self {
        let places = marks.iter().map(|mark| (!mark.name.is_free()).then_some(Place::Anywhere)).collect();
        let free = marks.iter().enumerate().filter(|(_, mark)| mark.name.is_free());
        let free_at = free.map(|(index, mark)| (index, mark.at.start)).collect();
        Self {
            text,
            at: 0,
            marks,
            places,
            free_at,
            positionals: false,
            dashed: Vec::new(),
            enclosed: None,
            pending: Vec::new(),
            readers: Vec::new(),
            depth: 0,
        }
    }

    /// The script of a shell whose arguments are free text. `dashed` are the numbers of those that begin with a dash.
    pub fn of_script(text: &'a str, dashed: Vec<usize>) -> Self {
        Self { places: vec![None], positionals: true, dashed, ..Self::new(text, &[]) }
    }

    /// Whether free text that is an argument of this script begins here: `1`, `{1`.
    fn is_positional(&self, rest: &str) -> bool {
        self.positionals && names_positional(rest)
    }

    /// Whether an argument that these letters name begins with a dash: `1`, `{1`, or all of them by `@` and `*`.
    fn is_dashed(&self, rest: &str) -> bool {
        let (name, digits) = match rest.strip_prefix('{') {
            Some(name) => (name, name.find(|c: char| !c.is_ascii_digit()).unwrap_or(name.len())),
            // Without braces a single digit counts.
            None => (rest, 1),
        };
        match name[..digits].parse::<usize>() {
            Ok(number) => self.dashed.contains(&number),
            Err(_) => !self.dashed.is_empty(),
        }
    }

    /// Notes that free text begins here in a word that a script makes of its arguments.
    fn note_positional(word: &mut Word, is_dashed: bool) {
        word.unquoted = true;
        word.dash |= word.known.is_empty() && is_dashed;
    }

    pub fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    pub fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    pub fn follows(&self, text: &str) -> bool {
        self.text[self.at..].starts_with(text)
    }

    pub fn eat(&mut self, text: &str) -> bool {
        let follows = self.follows(text);
        if follows {
            self.at += text.len();
        }
        follows
    }

    fn mark_here(&self) -> Option<usize> {
        self.marks.binary_search_by_key(&self.at, |mark| mark.at.start).ok()
    }

    /// Free text between two places, if there is any, is refused.
    pub fn refuse_between(&self, from: usize, to: usize, why: Why) -> Result<(), Stop> {
        let quoted = [Why::SingleQuotes, Why::DollarQuotes].contains(&why);
        if self.positionals && !quoted && has_positional(&self.text[from..to]) {
            return Err(Stop::At(0, why));
        }
        let within = |mark: &Mark| mark.name.is_free() && (from..to).contains(&mark.at.start);
        match self.marks.iter().position(within) {
            Some(index) => Err(Stop::At(index, why)),
            None => Ok(()),
        }
    }

    /// Does something within a construct in which free text has no place.
    pub fn within<T>(&mut self, why: Why, work: impl FnOnce(&mut Self) -> Result<T, Stop>) -> Result<T, Stop> {
        let outer = self.enclosed.clone();
        // What a script is given cannot end a quote or a pattern in it, and commands in `$( … )` are checked as well.
        if !self.positionals || !matches!(why, Why::Substitution | Why::CasePattern) {
            self.enclosed.get_or_insert(why);
        }
        let done = self.deeper(work);
        self.enclosed = outer;
        done
    }

    pub fn deeper<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T, Stop>) -> Result<T, Stop> {
        if self.depth == DEPTH {
            return Err(Stop::Lost("so much nesting"));
        }
        self.depth += 1;
        let done = work(self);
        self.depth -= 1;
        done
    }

    /// Spaces, tabs, and newlines that a backslash takes away.
    pub fn blanks(&mut self) -> Result<(), Stop> {
        loop {
            match self.peek() {
                Some(' ' | '\t') => self.at += 1,
                Some('\\') if self.follows("\\\n") => self.continuation()?,
                _ => return Ok(()),
            }
        }
    }

    /// A newline that does not count. Where it would join two halves of something it is not followed.
    fn continuation(&mut self) -> Result<(), Stop> {
        let blank = |c: Option<char>| c.is_none_or(|c| matches!(c, ' ' | '\t' | '\n'));
        let before = self.text[..self.at].chars().next_back();
        self.at += 2;
        match (blank(before) || blank(self.peek())) && self.peek() != Some('#') && self.pending.is_empty() {
            true => Ok(()),
            false => Err(Stop::Lost("a backslash at the end of a line that joins two halves")),
        }
    }

    /// The word that begins here.
    pub fn word(&mut self) -> Result<Word, Stop> {
        let mut word = Word::new(self.at);
        while let Some(next) = self.peek() {
            if let Some(index) = self.mark_here() {
                self.mark_in_word(index, &mut word)?;
                continue;
            }
            match next {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' => break,
                '\'' => self.single(&mut word)?,
                '"' => self.double(&mut word)?,
                '\\' if self.follows("\\\n") => {
                    self.continuation()?;
                    break;
                }
                '\\' => self.escape(&mut word)?,
                '$' => self.dollar(&mut word)?,
                '`' => self.backticks(&mut word)?,
                _ => self.letter(&mut word),
            }
        }
        let raw = &self.text[word.start..self.at];
        if matches!(raw, "[" | "]" | "[[" | "]]" | "{" | "}") {
            word.literal = Some(raw.to_owned());
        }
        match self.pending.is_empty() || !raw.contains('\n') {
            true => Ok(word),
            false => Err(Stop::Lost("a here-document that begins amid a word")),
        }
    }

    fn letter(&mut self, word: &mut Word) {
        match self.next() {
            // A pattern for names of files, or a list in braces.
            Some('*' | '?' | '[' | ']' | '{' | '}') => {
                word.literal = None;
                word.splits = true;
            }
            Some(letter) => word.push(letter),
            None => {}
        }
    }

    fn mark_in_word(&mut self, index: usize, word: &mut Word) -> Result<(), Stop> {
        let Mark { name, at } = &self.marks[index];
        let begins = at.start == word.start;
        let before = self.text[..at.start].chars().next_back();
        self.at = at.end;
        word.literal = None;
        if name.is_free() {
            return self.free(index, Place::Bare, word);
        }
        // It may turn out to be nothing, and then its neighbours meet.
        word.splits = true;
        let after = self.peek();
        let stands_alone = before.is_none_or(|c| matches!(c, ' ' | '\t' | '\n'))
            && after.is_none_or(|c| matches!(c, ' ' | '\t' | '\n' | ';' | ')'));
        let goes_on = after.is_some_and(|c| c.is_alphanumeric() || "_./:=,@%+-".contains(c));
        word.vanishes = begins && stands_alone;
        match !begins || stands_alone || goes_on {
            true => Ok(()),
            false => Err(Stop::Lost("a name in braces right before a sign of the shell")),
        }
    }

    /// Free text in a word: noted, unless it is within something.
    fn free(&mut self, index: usize, place: Place, word: &mut Word) -> Result<(), Stop> {
        if let Some(why) = &self.enclosed {
            return Err(Stop::At(index, why.clone()));
        }
        self.places[index] = Some(place);
        word.marks.push(index);
        Ok(())
    }

    fn single(&mut self, word: &mut Word) -> Result<(), Stop> {
        word.plain = false;
        let start = self.at + 1;
        let length = self.text[start..].find('\'').ok_or(Stop::Lost("a quote that is not closed"))?;
        self.refuse_between(start, start + length, Why::SingleQuotes)?;
        self.text[start..start + length].chars().for_each(|c| word.push_quoted(c));
        self.at = start + length + 1;
        Ok(())
    }

    fn double(&mut self, word: &mut Word) -> Result<(), Stop> {
        word.plain = false;
        self.at += 1;
        loop {
            if let Some(index) = self.mark_here() {
                self.at = self.marks[index].at.end;
                word.literal = None;
                if self.marks[index].name.is_free() {
                    self.free(index, Place::Quoted, word)?;
                }
                continue;
            }
            match self.peek() {
                None => return Err(Stop::Lost("a quote that is not closed")),
                Some('"') => break,
                Some('\\') => self.escape_in_double(word)?,
                Some('$') => self.dollar_in_double(word)?,
                Some('`') => self.quoted_expansion(word, Self::backticks)?,
                Some(c) => {
                    self.at += c.len_utf8();
                    word.push_quoted(c);
                }
            }
        }
        self.at += 1;
        Ok(())
    }

    /// An expansion within double quotes stays one word.
    fn quoted_expansion(
        &mut self,
        word: &mut Word,
        expansion: fn(&mut Self, &mut Word) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let (splits, unquoted, start) = (word.splits, word.unquoted, self.at);
        expansion(self, word)?;
        word.unquoted = unquoted;
        // All but `"$@"` and its kin.
        word.splits = splits || self.text[start..].starts_with("$@") || self.text[start..self.at].contains('@');
        Ok(())
    }

    fn escape(&mut self, word: &mut Word) -> Result<(), Stop> {
        word.plain = false;
        self.at += 1;
        self.no_mark(Why::AfterBackslash)?;
        match self.next() {
            Some(c) => word.push_quoted(c),
            None => return Err(Stop::Lost("a backslash at its end")),
        }
        Ok(())
    }

    pub fn escape_in_double(&mut self, word: &mut Word) -> Result<(), Stop> {
        self.at += 1;
        self.no_mark(Why::AfterBackslash)?;
        match self.next() {
            None => return Err(Stop::Lost("a quote that is not closed")),
            Some('\n') => {}
            Some(c @ ('$' | '`' | '"' | '\\')) => word.push_quoted(c),
            Some(c) => {
                word.push_quoted('\\');
                word.push_quoted(c);
            }
        }
        Ok(())
    }

    /// What follows is no name of ours. A checked value may be empty, and then something else follows.
    fn no_mark(&self, why: Why) -> Result<(), Stop> {
        match self.mark_here() {
            Some(index) if self.marks[index].name.is_free() => Err(Stop::At(index, why)),
            Some(_) => Err(Stop::Lost("a name in braces right after a `\\` or a `$`")),
            None => Ok(()),
        }
    }

    pub fn dollar_in_double(&mut self, word: &mut Word) -> Result<(), Stop> {
        let then = self.text[self.at + 1..].chars().next();
        if let Some('\'' | '"') = then {
            self.at += 1;
            word.push_quoted('$');
            return Ok(());
        }
        self.quoted_expansion(word, Self::dollar)
    }

    fn dollar(&mut self, word: &mut Word) -> Result<(), Stop> {
        self.at += 1;
        word.literal = None;
        word.splits = true;
        self.no_mark(Why::AfterDollar)?;
        if self.follows("\\\n") {
            return Err(Stop::Lost("a `$` at the end of a line that goes on"));
        }
        if self.eat("((") {
            return self.arithmetic();
        }
        if self.is_positional(&self.text[self.at..]) {
            // `${!1}` takes it for the name of a variable, `${1@P}` for a prompt.
            let inner = self.text[self.at..].strip_prefix('{').and_then(|rest| rest.split('}').next());
            if inner.is_some_and(|inner| inner.starts_with('!') || inner[1..].contains('@')) {
                return Err(Stop::At(0, Why::Parameter));
            }
            self.free_at.push((0, self.at));
            self.free(0, Place::Bare, word)?;
            Self::note_positional(word, self.is_dashed(&self.text[self.at..]));
        }
        match self.peek() {
            Some('(') => {
                self.at += 1;
                let before = self.free_at.len();
                self.within(Why::Substitution, Self::substitution)?;
                if self.positionals && self.free_at.len() > before {
                    word.marks.push(0);
                    Self::note_positional(word, !self.dashed.is_empty());
                }
                Ok(())
            }
            Some('{') => {
                self.at += 1;
                self.within(Why::Parameter, |lexer| lexer.parameter(word))
            }
            Some('[') => Err(Stop::Lost("`$[`, which only some shells take for arithmetic")),
            Some('\'') => self.dollar_single(),
            Some('"') => self.within(Why::DollarQuotes, |lexer| lexer.double(word)),
            // `$$`, so that the second is not taken for the beginning of another.
            Some('$') => {
                self.at += 1;
                self.no_mark(Why::AfterDollar)
            }
            _ => Ok(()),
        }
    }

    fn dollar_single(&mut self) -> Result<(), Stop> {
        let start = self.at + 1;
        let length = self.text[start..].find('\'').ok_or(Stop::Lost("a quote that is not closed"))?;
        self.refuse_between(start, start + length, Why::DollarQuotes)?;
        if self.text[start..start + length].contains('\\') {
            return Err(Stop::Lost("an escape in `$'…'`, on which shells do not agree"));
        }
        self.at = start + length + 1;
        Ok(())
    }

    /// `${ … }`, from behind the brace.
    fn parameter(&mut self, word: &mut Word) -> Result<(), Stop> {
        if self.peek().is_none_or(|c| matches!(c, ' ' | '\t' | '\n' | '|')) {
            return Err(Stop::Lost("`${ … }` around a command"));
        }
        loop {
            if let Some(index) = self.mark_here() {
                self.at = self.marks[index].at.end;
                if self.marks[index].name.is_free() {
                    self.free(index, Place::Bare, word)?;
                }
                continue;
            }
            match self.peek() {
                Some('}') => break,
                Some('$') if !self.follows("$'") && !self.follows("$\"") => self.dollar(word)?,
                None | Some('$' | '\'' | '"' | '\\' | '`' | '(' | ')' | '<' | '>' | '\n') => {
                    return Err(Stop::Lost("quotes or signs of the shell in `${ … }`"));
                }
                Some(c) => self.at += c.len_utf8(),
            }
        }
        self.at += 1;
        Ok(())
    }

    /// `(( … ))`, from behind the parentheses. What could also be commands is not followed.
    pub fn arithmetic(&mut self) -> Result<(), Stop> {
        let mut open = 2;
        loop {
            if self.text[self.at..].strip_prefix('$').is_some_and(|rest| self.is_positional(rest)) {
                return Err(Stop::At(0, Why::Arithmetic));
            }
            if let Some(index) = self.mark_here() {
                self.at = self.marks[index].at.end;
                if self.marks[index].name.is_free() {
                    return Err(Stop::At(index, self.enclosed.clone().unwrap_or(Why::Arithmetic)));
                }
                continue;
            }
            match self.next() {
                Some('(') => open += 1,
                Some(')') if open > 2 => open -= 1,
                Some(')') if self.eat(")") => return Ok(()),
                Some(c) if c.is_ascii_alphanumeric() || "_ \t${}+-*/%<>=!&|^~?:,".contains(c) => {}
                _ => return Err(Stop::Lost("`((` that may not be arithmetic")),
            }
        }
    }

    pub fn backticks(&mut self, word: &mut Word) -> Result<(), Stop> {
        word.literal = None;
        word.plain = false;
        word.splits = true;
        let start = self.at + 1;
        let mut escaped = false;
        let end = self.text[start..].find(|c| {
            let closes = c == '`' && !escaped;
            escaped = c == '\\' && !escaped;
            closes
        });
        let end = start + end.ok_or(Stop::Lost("a backtick that is not closed"))?;
        self.refuse_between(start, end, Why::Backticks)?;
        // Whether something in there reads and runs its input is not looked at.
        self.readers.push((start, "backticks".to_owned()));
        self.at = end + 1;
        Ok(())
    }
}

/// Whether what follows a `$` names an argument of the script, or all of them.
fn names_positional(rest: &str) -> bool {
    let rest = rest.strip_prefix('{').unwrap_or(rest);
    rest.strip_prefix('!').unwrap_or(rest).starts_with(|c: char| c.is_ascii_digit() || matches!(c, '@' | '*'))
}

/// Whether a script names its arguments at all.
pub(super) fn has_positional(script: &str) -> bool {
    script.split('$').skip(1).any(names_positional)
}
