//! What is shown over several lines by other marks than those of Markdown: elements of HTML, and quotation marks.
//!
//! Both have to be closed: whoever mentions `<pre>` or an inch opens nothing. Neither reaches further than it has to.
//!
//! Not here: fences, indented code and tables (`speech`).

use crate::speech::Line;

/// What opens a block of what is shown, or only thought, and what closes it.
const BLOCKS: [(&str, &str); 10] = [
    ("<pre", "</pre>"),
    ("<code", "</code>"),
    ("<samp", "</samp>"),
    ("<blockquote", "</blockquote>"),
    ("<example", "</example>"),
    ("<think", "</think>"),
    ("<thinking", "</thinking>"),
    ("<reasoning", "</reasoning>"),
    ("<instructions", "</instructions>"),
    ("<!--", "-->"),
];
const QUOTES: [(char, char); 4] = [('"', '"'), ('“', '”'), ('«', '»'), ('「', '」')];
/// Over how many lines a quotation may go on.
const QUOTED: usize = 12;

/// Marks as shown what stands in a block or a quotation.
pub fn hide(lines: &mut [Line<'_>]) {
    hide_blocks(lines);
    for quote in QUOTES {
        hide_quoted(lines, quote);
    }
}

fn hide_blocks(lines: &mut [Line<'_>]) {
    let mut never_closed = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let open = opened_by(lines[at]).filter(|close| !never_closed.contains(close));
        let end = open.map(|close| lines[at + 1..].iter().position(|line| line.text.contains(close)));
        match (open, end) {
            (Some(_), Some(Some(length))) => {
                lines[at..=at + length].iter_mut().for_each(|line| line.is_said = false);
                at += length + 1;
            }
            // Nothing below closes it, so nothing closes one that is opened there.
            (Some(close), _) => {
                never_closed.push(close);
                at += 1;
            }
            (None, _) => at += 1,
        }
    }
}

/// What closes the block that a line opens, if that is not on the same line.
fn opened_by(line: Line<'_>) -> Option<&'static str> {
    let opens = |open: &str| line.text.strip_prefix(open).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric));
    let (_, close) = BLOCKS.iter().find(|(open, _)| line.is_said && opens(open))?;
    (!line.text.contains(close)).then_some(close)
}

fn hide_quoted(lines: &mut [Line<'_>], (open, close): (char, char)) {
    let mut opened: Option<usize> = None;
    for at in 0..lines.len() {
        if !lines[at].is_said {
            continue;
        }
        let text = lines[at].text;
        let is_closed = opened.filter(|start| at - start <= QUOTED && closes(text, open, close));
        if let Some(start) = is_closed {
            lines[start + 1..at].iter_mut().for_each(|line| line.is_said = false);
            opened = None;
        } else if opens(text, open, close) {
            opened = Some(at);
        }
    }
}

/// Whether the last mark of a line opens a quotation that goes on after it.
fn opens(text: &str, open: char, close: char) -> bool {
    let Some((before, after)) = text.rsplit_once([open, close]) else { return false };
    let is_open =
        if open == close { before.matches(open).count() % 2 == 0 } else { text[before.len()..].starts_with(open) };
    let before_it =
        before.chars().next_back().is_none_or(|letter| letter.is_whitespace() || matches!(letter, '(' | ':'));
    is_open && before_it && !after.starts_with(char::is_whitespace)
}

/// Whether the first mark of a line closes a quotation that has begun before it.
fn closes(text: &str, open: char, close: char) -> bool {
    let Some((before, after)) = text.split_once([open, close]) else { return false };
    let is_close =
        if open == close { after.matches(open).count() % 2 == 0 } else { text[before.len()..].starts_with(close) };
    let after_it = after.chars().next().is_none_or(|letter| !letter.is_alphanumeric());
    is_close && after_it && !before.ends_with(char::is_whitespace)
}
