//! Commands of shell text: where each begins and ends, and what is piped where.
//!
//! Only as much grammar as it takes to know of every word whether it is a command, an argument, or something else. A
//! text that no shell accepts may be accepted here; a text that a shell accepts is never read differently.

use super::Place;
use super::commands::{self, Effect};
use super::evaluators::is_special;
use super::lexer::{Lexer, has_positional};
use super::refusal::{Stop, Why};
use super::template::Mark;
use super::word::{Word, is_name};

/// For each mark where it stands; none for what is in a comment.
pub(super) fn places(text: &str, marks: &[Mark]) -> Result<Vec<Option<Place>>, Stop> {
    let mut lexer = Lexer::new(text, marks);
    lexer.list(End::Text)?;
    Ok(lexer.places)
}

/// Whether the script of a shell takes its arguments, which are free text, for text alone. `dashed` are the numbers of the
/// arguments that begin with a dash.
pub(super) fn check_script(script: &str, dashed: Vec<usize>) -> Result<(), Stop> {
    match has_positional(script) {
        true => Lexer::of_script(script, dashed).list(End::Text).map(drop),
        false => Ok(()),
    }
}

/// What ends a list of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Text,
    Parenthesis,
    /// `;;`, or `esac`.
    Item,
}

/// What ended a list of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    Here,
    Esac,
}

/// A pipeline that has begun, within something that has to be closed.
#[derive(Debug)]
struct Pipeline {
    closed_by: &'static str,
    start: usize,
    pipes: Vec<usize>,
    /// Whether the last sign was a `|`, so that a newline does not end it.
    goes_on: bool,
}

impl Pipeline {
    fn new(closed_by: &'static str, start: usize) -> Self {
        Self { closed_by, start, pipes: Vec::new(), goes_on: false }
    }
}

/// The state of one list of commands.
struct List {
    end: End,
    words: Vec<Word>,
    /// The innermost last; the first is the list's own.
    pipelines: Vec<Pipeline>,
}

impl List {
    fn innermost(&mut self) -> &mut Pipeline {
        self.pipelines.last_mut().expect("a list has a pipeline of its own")
    }
}

impl Lexer<'_> {
    /// `$( … )`, from behind the parenthesis.
    pub fn substitution(&mut self) -> Result<(), Stop> {
        let outer = std::mem::take(&mut self.pending);
        self.list(End::Parenthesis)?;
        match self.pending.is_empty() {
            true => self.pending = outer,
            false => return Err(Stop::Lost("a here-document that begins behind its `$( … )`")),
        }
        Ok(())
    }

    fn list(&mut self, end: End) -> Result<Ended, Stop> {
        let mut list = List { end, words: Vec::new(), pipelines: vec![Pipeline::new("", self.at)] };
        loop {
            self.blanks()?;
            let Some(next) = self.peek() else {
                self.separate(&mut list)?;
                let whole = end == End::Text && list.pipelines.len() == 1 && self.pending.is_empty();
                return if whole { Ok(Ended::Here) } else { Err(Stop::Lost("something that is not closed")) };
            };
            let ended = match next {
                '#' => self.comment().map(|()| None)?,
                '\n' => self.newline(&mut list).map(|()| None)?,
                ';' | '&' | '|' => self.operator(&mut list)?,
                '(' => self.open(&mut list).map(|()| None)?,
                ')' => self.close(&mut list).map(Some)?,
                '<' | '>' => self.redirection().map(|()| None)?,
                _ => self.deeper(|lexer| lexer.next_word(&mut list))?,
            };
            if let Some(ended) = ended {
                return Ok(ended);
            }
        }
    }

    fn comment(&mut self) -> Result<(), Stop> {
        let rest = &self.text[self.at..];
        let comment = rest.split('\n').next().unwrap_or(rest);
        if let Some(why) = self.enclosed.clone() {
            self.refuse_between(self.at, self.at + comment.len(), why)?;
            // Old shells look for the end of `$( … )` in comments as well.
            if comment.contains(['\'', '"', '`', '(', ')', '\\']) {
                return Err(Stop::Lost("quotes or parentheses in a comment within `$( … )`"));
            }
        }
        self.at += comment.len();
        Ok(())
    }

    fn newline(&mut self, list: &mut List) -> Result<(), Stop> {
        self.command(list)?;
        if !list.innermost().goes_on {
            self.separate(list)?;
        }
        self.at += 1;
        self.bodies()
    }

    fn operator(&mut self, list: &mut List) -> Result<Option<Ended>, Stop> {
        if self.follows("&>") {
            return Err(Stop::Lost("`&>`, on which shells do not agree (write `>FILE 2>&1`)"));
        }
        if self.follows("|&") {
            return Err(Stop::Lost("`|&`, on which shells do not agree (write `2>&1 |`)"));
        }
        if self.follows(";;") || self.follows(";&") {
            self.separate(list)?;
            if list.end != End::Item || list.pipelines.len() > 1 {
                return Err(Stop::Lost("`;;` outside of a `case`"));
            }
            let _ = self.eat(";;&") || self.eat(";;") || self.eat(";&");
            return Ok(Some(Ended::Here));
        }
        if self.follows("|") && !self.follows("||") {
            self.command(list)?;
            let at = self.at;
            self.at += 1;
            let pipeline = list.innermost();
            pipeline.pipes.push(at);
            pipeline.goes_on = true;
            return Ok(None);
        }
        self.separate(list)?;
        let _ = self.eat("&&") || self.eat("||") || self.eat(";") || self.eat("&");
        Ok(None)
    }

    fn open(&mut self, list: &mut List) -> Result<(), Stop> {
        if !list.words.is_empty() {
            return Err(Stop::Lost("a function, a list in parentheses or a pattern with them"));
        }
        list.innermost().goes_on = false;
        let start = self.at;
        self.at += 1;
        if self.eat("(") {
            self.arithmetic()?;
            // Where `((` is no arithmetic it is two subshells, with here-documents.
            return match self.text[start..self.at].contains("<<") {
                true => Err(Stop::Lost("`((` that may not be arithmetic")),
                false => Ok(()),
            };
        }
        self.deeper(|lexer| lexer.list(End::Parenthesis)).map(|_| ())
    }

    fn close(&mut self, list: &mut List) -> Result<Ended, Stop> {
        self.separate(list)?;
        self.at += 1;
        match list.end == End::Parenthesis && list.pipelines.len() == 1 {
            true => Ok(Ended::Here),
            false => Err(Stop::Lost("a parenthesis that nothing opened")),
        }
    }

    fn redirection(&mut self) -> Result<(), Stop> {
        if self.follows("<(") || self.follows(">(") {
            return Err(Stop::Lost("`<( … )` or `>( … )`"));
        }
        if self.follows("<<") && !self.follows("<<<") {
            self.at += 2;
            return self.announce();
        }
        let operators = ["<<<", ">>", "<&", ">&", "<>", ">|", "<", ">"];
        let _ = operators.iter().any(|operator| self.eat(operator));
        self.blanks()?;
        let start = self.at;
        let target = self.within(Why::Redirection, Self::word)?;
        match self.at > start && !target.vanishes {
            true => Ok(()),
            false => Err(Stop::Lost("a redirection that may be to nothing")),
        }
    }

    fn next_word(&mut self, list: &mut List) -> Result<Option<Ended>, Stop> {
        let word = self.word()?;
        let number = word.plain && word.literal.as_ref().is_some_and(|word| word.bytes().all(|b| b.is_ascii_digit()));
        if number && matches!(self.peek(), Some('<' | '>')) {
            return Ok(None);
        }
        list.innermost().goes_on = false;
        if !list.words.is_empty() || !word.plain {
            list.words.push(word);
            return Ok(None);
        }
        match word.literal.as_deref().unwrap_or_default() {
            "!" => Ok(None),
            "then" | "else" | "elif" | "do" => self.separate(list).map(|()| None),
            "if" => self.begin(list, "fi", word.start),
            "while" | "until" => self.begin(list, "done", word.start),
            "{" => self.begin(list, "}", word.start),
            closer @ ("fi" | "done" | "}") => self.end(list, closer),
            "for" => {
                self.begin(list, "done", word.start)?;
                self.for_words().map(|()| None)
            }
            "case" => self.case().map(|()| None),
            "esac" if list.end == End::Item && list.pipelines.len() == 1 => {
                self.separate(list)?;
                Ok(Some(Ended::Esac))
            }
            "esac" => Err(Stop::Lost("an `esac` that nothing opened")),
            "[[" => self.within(Why::Brackets, Self::brackets).map(|()| None),
            "function" | "select" | "coproc" | "time" => {
                Err(Stop::Lost("`function`, `select`, `coproc` or `time`, which not every shell knows"))
            }
            _ => {
                list.words.push(word);
                Ok(None)
            }
        }
    }

    fn begin(&mut self, list: &mut List, closed_by: &'static str, start: usize) -> Result<Option<Ended>, Stop> {
        list.pipelines.push(Pipeline::new(closed_by, start));
        Ok(None)
    }

    fn end(&mut self, list: &mut List, closer: &str) -> Result<Option<Ended>, Stop> {
        self.separate(list)?;
        match list.pipelines.pop_if(|pipeline| pipeline.closed_by == closer) {
            Some(_) => Ok(None),
            None => Err(Stop::Lost("a `fi`, `done` or `}` that nothing opened")),
        }
    }

    /// `NAME in WORDS`, from behind `for`.
    fn for_words(&mut self) -> Result<(), Stop> {
        self.blanks()?;
        let variable = self.word()?.literal.filter(|name| is_name(name)).ok_or(Stop::Lost("a `for` without a name"))?;
        self.gap()?;
        let before = self.at;
        if !self.word()?.is_reserved("in") {
            self.at = before;
            return Ok(());
        }
        loop {
            self.blanks()?;
            match self.peek() {
                None | Some(';' | '\n' | '#') => return Ok(()),
                Some('&' | '|' | '<' | '>' | '(' | ')') => return Err(Stop::Lost("a sign of the shell in a `for`")),
                _ => {
                    let word = self.word()?;
                    if let (Some(index), true) = (word.marks.first(), is_special(&variable)) {
                        return Err(Stop::At(*index, Why::Special(variable)));
                    }
                }
            }
        }
    }

    /// Blanks, newlines and comments.
    fn gap(&mut self) -> Result<(), Stop> {
        loop {
            self.blanks()?;
            match self.peek() {
                Some('#') => self.comment()?,
                Some('\n') if self.pending.is_empty() => self.at += 1,
                Some('\n') => return Err(Stop::Lost("a here-document amid a command")),
                _ => return Ok(()),
            }
        }
    }

    /// `WORD in PATTERN) LIST ;; … esac`, from behind `case`.
    fn case(&mut self) -> Result<(), Stop> {
        if self.enclosed.is_some() {
            return Err(Stop::Lost("a `case` within `$( … )`"));
        }
        self.blanks()?;
        let vanishes = self.word()?.vanishes;
        self.gap()?;
        if vanishes || !self.word()?.is_reserved("in") {
            return Err(Stop::Lost("a `case` without its word or its `in`"));
        }
        loop {
            self.gap()?;
            let first = !self.eat("(");
            self.blanks()?;
            let word = self.pattern()?;
            if first && word.is_reserved("esac") {
                return Ok(());
            }
            self.blanks()?;
            while self.eat("|") {
                self.blanks()?;
                self.pattern()?;
                self.blanks()?;
            }
            if !self.eat(")") {
                return Err(Stop::Lost("a `case` that is not closed"));
            }
            if self.list(End::Item)? == Ended::Esac {
                return Ok(());
            }
        }
    }

    fn pattern(&mut self) -> Result<Word, Stop> {
        let start = self.at;
        let word = self.within(Why::CasePattern, Self::word)?;
        match self.at > start {
            true => Ok(word),
            false => Err(Stop::Lost("a `case` that is not closed")),
        }
    }

    /// `… ]]`, from behind `[[`. To some shells this is a command like any other.
    fn brackets(&mut self) -> Result<(), Stop> {
        loop {
            self.blanks()?;
            match self.peek() {
                Some('&' | '|' | '<' | '>') if !self.follows("<<") => self.at += 1,
                None | Some('&' | '|' | '<' | '>' | '(' | ')' | ';' | '#' | '\n') => {
                    return Err(Stop::Lost("`[[ … ]]` with signs in it on which shells do not agree"));
                }
                _ if self.word()?.is_reserved("]]") => return Ok(()),
                _ => {}
            }
        }
    }

    /// The simple command that ends here.
    fn command(&mut self, list: &mut List) -> Result<(), Stop> {
        let words = std::mem::take(&mut list.words);
        match commands::check(&words)? {
            Effect::Nothing => {}
            Effect::Reads(name) => self.readers.push((words[0].start, name)),
            Effect::Changes => return Err(Stop::Lost("an alias or a declaration, which change what follows")),
        }
        Ok(())
    }

    /// The pipeline that ends here: nothing free may reach what runs its input.
    fn separate(&mut self, list: &mut List) -> Result<(), Stop> {
        self.command(list)?;
        let at = self.at;
        let Pipeline { start, pipes, goes_on, .. } = list.innermost();
        let range = *start..at;
        let pipes = std::mem::take(pipes);
        (*start, *goes_on) = (at, false);
        let Some(last) = pipes.last() else { return Ok(()) };
        for (index, at) in self.free_at.iter().filter(|(_, at)| (range.start..*last).contains(at)) {
            let pipe = pipes.iter().find(|pipe| *pipe > at).unwrap_or(last);
            if let Some((_, name)) = self.readers.iter().find(|(reader, _)| (*pipe..range.end).contains(reader)) {
                return Err(Stop::At(*index, Why::Piped(name.clone())));
            }
        }
        Ok(())
    }
}
