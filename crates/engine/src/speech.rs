//! Which lines of a message an agent says, and which it only shows: code, quotations, tables.
//!
//! As Markdown has it, with exceptions for those who are careless with it: a fence within a fence opens another one where
//! there are marks enough to close both, a list may be indented as one likes, a last line that is indented below a sentence
//! is no code, nor is the last paragraph far below a fence that was never closed.
//!
//! Not here: what is shown by marks of another kind (`markup`), what is said in them (`promise`).

use crate::markup;

/// After how many lines a fence that was never closed is forgotten.
const FORGOTTEN: usize = 8;

/// A line of a message, without the blanks around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'m> {
    pub text: &'m str,
    /// It is said, not shown.
    pub is_said: bool,
}

/// All lines of a message, in order.
pub fn own_lines(message: &str) -> Vec<Line<'_>> {
    let lines: Vec<&str> = message.lines().collect();
    let mut found = Vec::with_capacity(lines.len());
    let parts = lines.split(|line| is_cut(line));
    for (index, part) in parts.enumerate() {
        // What was cut out may have opened a block: then there are more ends than beginnings after it.
        let fences = part.iter().filter(|line| fence_of(line).is_some()).count();
        read(part, index > 0 && fences % 2 == 1, &mut found);
    }
    markup::hide(&mut found);
    found
}

/// Where a long message was cut.
fn is_cut(line: &str) -> bool {
    line.strip_prefix('[').is_some_and(|rest| rest.ends_with(" bytes left out]"))
}

fn read<'m>(lines: &[&'m str], begins_inside: bool, found: &mut Vec<Line<'m>>) {
    let mut fences: Vec<&str> = if begins_inside { vec![""] } else { vec![] };
    let mut indented = Indented::default();
    for (at, line) in lines.iter().enumerate() {
        let text = line.trim();
        let inside = !fences.is_empty();
        let marks = fence_of(text);
        match (fences.last(), marks) {
            (None, Some(marks)) => fences.push(marks),
            (Some(open), Some(marks)) if marks.starts_with(*open) && marks.len() == text.len() => {
                fences.pop();
                // Those who forget to close a fence do not mean the rest of their message to be code.
                if !lines[at + 1..].iter().any(|line| fence_of(line.trim()).is_some()) {
                    fences.clear();
                }
            }
            (Some(open), Some(marks)) if !open.is_empty() && marks.starts_with(&open[..1]) => fences.push(marks),
            _ => {}
        }
        let code = inside || marks.is_some() || indented.is_code(line);
        let is_said = !code && !text.is_empty() && !text.starts_with(['>', '|']);
        found.push(Line { text, is_said });
    }
    let begun = found.len() - lines.len();
    let end = match fences.as_slice() {
        [] => lone_last_line(lines, &found[begun..]),
        [..] if begins_inside => None,
        [..] => last_paragraph(lines),
    };
    for line in end.map(|end| &mut found[begun + end..]).into_iter().flatten() {
        line.is_said = !line.text.is_empty() && !line.text.starts_with(['>', '|']);
    }
}

/// Where the last paragraph begins below a fence that was never closed, if that is far above: it is forgotten by then.
fn last_paragraph(lines: &[&str]) -> Option<usize> {
    let last = lines.iter().rposition(|line| !line.trim().is_empty())?;
    let start = lines[..last].iter().rposition(|line| line.trim().is_empty())? + 1;
    let opened = lines.iter().rposition(|line| fence_of(line).is_some())?;
    let flush = lines[start..=last].iter().all(|line| indent_of(line) < 4);
    (flush && opened + FORGOTTEN <= last).then_some(start)
}

/// Where the last line stands if it is indented for no reason: below a sentence that is over, or below nothing.
fn lone_last_line(lines: &[&str], found: &[Line<'_>]) -> Option<usize> {
    let last = lines.iter().rposition(|line| !line.trim().is_empty())?;
    let above = found[..last].iter().rfind(|line| !line.text.is_empty());
    let is_over = above.is_none_or(|line| line.is_said && line.text.ends_with(['.', '!', '?']));
    (is_over && indent_of(lines[last]) >= 4 && fence_of(lines[last]).is_none()).then_some(last)
}

/// The marks that open or close a block of code.
pub fn fence_of(line: &str) -> Option<&str> {
    let line = line.trim();
    let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let length = line.chars().take_while(|next| *next == mark).count();
    // With a backtick after them they are a piece of code within a line.
    let whole = mark == '~' || !line[length..].contains('`');
    (length >= 3 && whole).then(|| &line[..length])
}

/// Follows which lines are code because they are indented.
#[derive(Debug, Default)]
struct Indented {
    /// The line before was text, which goes on however far the next one is indented.
    after_text: bool,
    /// How far the text of the list is indented that the lines belong to.
    list: usize,
}

impl Indented {
    fn is_code(&mut self, line: &str) -> bool {
        let text = line.trim();
        if text.is_empty() {
            self.after_text = false;
            return false;
        }
        let indent = indent_of(line);
        if indent >= self.list + 4 && !self.after_text {
            return true;
        }
        let (is_bullet, rest) = bullet(text);
        match is_bullet {
            true => self.list = indent + (text.len() - rest.len()).max(2),
            false if indent == 0 && !self.after_text => self.list = 0,
            false => {}
        }
        self.after_text = true;
        false
    }
}

/// How far a line is indented. A tab reaches to the next fourth column.
fn indent_of(line: &str) -> usize {
    let mut column = 0;
    for letter in line.chars() {
        match letter {
            ' ' => column += 1,
            '\t' => column += 4 - column % 4,
            _ => break,
        }
    }
    column
}

/// Whether a text begins as an item of a list, and what follows the bullet or number.
pub fn bullet(text: &str) -> (bool, &str) {
    let text = text.trim_start();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let sign = match text[digits..].chars().next() {
        Some('.' | ')') if (1..=9).contains(&digits) => digits + 1,
        Some(sign @ ('-' | '*' | '+' | '•' | '–' | '→')) if digits == 0 => sign.len_utf8(),
        _ => return (false, text),
    };
    match text[sign..].strip_prefix([' ', '\t']) {
        Some(rest) => (true, rest.trim_start()),
        None => (false, text),
    }
}
