//! The report of `windlass why` on a terminal.
//!
//! Invariants:
//! - A summary has at most [`MAX_SUMMARY_LINES`] lines, whatever the log holds. `--full` and `--json` leave nothing out.

use windlass_app::event_text::drive;
use windlass_app::why::{WhyFact, WhyReport};
use windlass_text as text;

use crate::output::{CommandResult, Output, TextTone};
use crate::show;

const MAX_SUMMARY_LINES: usize = 40;
const MAX_HEAD_LINES: usize = 16;
/// The columns of one text in the summary.
const MAX_TEXT_COLUMNS: usize = 240;
/// The columns before the evidence of a fact.
const EVIDENCE_INDENT: usize = 8;

/// The length of a report for a person.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ReportLength {
    Summary,
    Full,
}

/// Prints the report of `windlass why`.
pub fn print_report(report: &WhyReport, length: ReportLength, out: &mut Output) -> CommandResult {
    if out.is_json() {
        return out.print_json(&report.to_json());
    }
    let is_full = length == ReportLength::Full;
    let facts: Vec<&WhyFact> = report.facts.iter().filter(|fact| is_full || fact.is_decision()).collect();
    let rows: Vec<Vec<String>> = facts.iter().map(|fact| render_fact(fact, is_full, out)).collect();
    let head = render_head(report, is_full, out);
    let next = report.next.iter().flat_map(|next| render_label("next", next, is_full, out)).collect::<Vec<_>>();
    // Two blank lines, the line about omitted facts, and the first heading.
    let room = MAX_SUMMARY_LINES.saturating_sub(head.len() + next.len() + 4);
    let heading = |at: usize| find_heading(facts[at], at.checked_sub(1).map(|before| facts[before]));
    let (mut first, mut used) = (facts.len(), 0);
    while first > 0 {
        used += rows[first - 1].len() + usize::from(heading(first - 1).is_some());
        if !is_full && used > room && first < facts.len() {
            break;
        }
        first -= 1;
    }
    head.iter().try_for_each(|row| out.print_line(row))?;
    let mut body = Vec::new();
    for at in first..facts.len() {
        let heading = if at == first { find_heading(facts[at], None) } else { heading(at) };
        body.extend(heading.map(|heading| out.paint(TextTone::Strong, heading).to_string()));
        body.extend(rows[at].iter().cloned());
    }
    if !body.is_empty() {
        out.print_line("")?;
    }
    let most = if is_full { usize::MAX } else { room + 1 };
    body.iter().take(most).try_for_each(|row| out.print_line(row))?;
    if !is_full || !next.is_empty() {
        out.print_line("")?;
    }
    next.iter().try_for_each(|row| out.print_line(row))?;
    if !is_full {
        let more = format!("{} of {} facts; --full shows everything", facts.len() - first, report.facts.len());
        render_label("shown", &more, is_full, out).iter().try_for_each(|row| out.print_line(row))?;
    }
    Ok(())
}

fn render_head(report: &WhyReport, is_full: bool, out: &Output) -> Vec<String> {
    let title = format!("{} {}", report.kind, text::clean_line(&report.name));
    let (tone, state) = &report.state;
    let mut rows = render_text(state, text::display_width(&title) + 2, 2, is_full, out);
    rows.iter_mut().for_each(|row| *row = format!("  {}", out.paint(*tone, &*row)));
    rows[0] = format!("{}{}", out.paint(TextTone::Strong, &title), rows[0]);
    rows.extend(report.list_lines().iter().flat_map(|(label, what)| render_label(label, what, is_full, out)));
    if !is_full && rows.len() > MAX_HEAD_LINES {
        let more = rows.len() - MAX_HEAD_LINES + 1;
        rows.truncate(MAX_HEAD_LINES - 1);
        rows.extend(render_label("", &format!("{more} more lines"), is_full, out));
    }
    rows
}

/// Returns the iteration of a fact, unless the fact before it is of the same one.
fn find_heading(fact: &WhyFact, before: Option<&WhyFact>) -> Option<String> {
    let place = |fact: &WhyFact| Some((fact.record.envelope.session.clone()?, fact.record.envelope.iteration?));
    let (session, iteration) = place(fact).filter(|own| before.and_then(place).as_ref() != Some(own))?;
    Some(format!("iteration {iteration} of {session}"))
}

fn render_fact(fact: &WhyFact, is_full: bool, out: &Output) -> Vec<String> {
    let sentence = fact.full_sentence();
    let sentence = if is_full { sentence } else { text::fit_to_width(&sentence, MAX_TEXT_COLUMNS) };
    let mut rows = show::format_event_rows(&fact.record, fact.tone, &sentence, EVIDENCE_INDENT, out);
    let mut add = |tone: TextTone, what: &str| {
        let lines = render_text(what, EVIDENCE_INDENT, EVIDENCE_INDENT + 2, is_full, out);
        for (number, line) in lines.iter().enumerate() {
            let indent = if number == 0 { EVIDENCE_INDENT } else { EVIDENCE_INDENT + 2 };
            rows.push(format!("{}{}", " ".repeat(indent), out.paint(tone, line)));
        }
    };
    let shown = if is_full { &fact.evidence } else { fact.evidence_excerpt() };
    shown.iter().for_each(|line| add(TextTone::Plain, &format!("| {line}")));
    if !shown.is_empty() && shown.len() < fact.evidence.len() {
        add(TextTone::Faint, &drive::format_count(fact.evidence.len() - shown.len(), "more line", "more lines"));
    }
    fact.details.iter().for_each(|detail| add(TextTone::Faint, detail));
    rows
}

/// Renders a labelled text as rows, aligned as in `task show`.
fn render_label(label: &str, what: &str, is_full: bool, out: &Output) -> Vec<String> {
    let rows = render_text(what, 16, 16, is_full, out).into_iter().enumerate();
    rows.map(|(number, row)| {
        let label = if number == 0 { label } else { "" };
        format!("  {}  {row}", out.paint(TextTone::Faint, text::pad_to_width(label, 12)))
    })
    .collect()
}

/// Renders a text as rows with `first` and `others` columns before them; in a pipe as one row.
fn render_text(what: &str, first: usize, others: usize, is_full: bool, out: &Output) -> Vec<String> {
    let what = text::fit_to_width(what, if is_full { usize::MAX } else { MAX_TEXT_COLUMNS });
    let room = |before: usize| out.columns().map_or(usize::MAX, |columns| columns.saturating_sub(before).max(20));
    text::wrap_to_width(&what, room(first), room(others))
}
