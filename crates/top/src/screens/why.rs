//! Why: the facts that decided something, oldest first, each with its evidence.

use windlass_app::tone::TextTone;
use windlass_app::views::{WhyFactView, WhyView};

use super::{RowContext, first_line, fold_mark, format_clock};
use crate::page::RowSubject;
use crate::row::{RowList, RowTarget, ScreenRow};

/// The lines of evidence that a decision shows without being opened.
const MAX_SHORT_EVIDENCE: usize = 2;

pub fn add_rows(list: &mut RowList, view: &WhyView, context: RowContext<'_>) {
    let head = ScreenRow::default().with(TextTone::Strong, format!("{} ", view.kind)).with(TextTone::Name, &view.name);
    list.push(head.with(view.tone, format!("  {}", view.state)));
    for (number, about) in view.about.iter().enumerate() {
        list.push_labelled(Some(&RowTarget::Text(number)), &about.label, &about.text);
    }
    for cause in &view.causes {
        // A cause is told in full among the facts.
        let said = format!("{} {}", cause.seq, first_line(&cause.text));
        list.push_labelled(Some(&RowTarget::Cause(cause.seq)), "because", &said);
    }
    if view.has_more_causes {
        list.push_note(TextTone::Faint, "… more causes are left out: windlass events shows everything");
    }
    if let Some(command) = &view.next_command {
        list.push_labelled(Some(&RowTarget::Text(view.about.len())), "next", command);
    }
    list.push(ScreenRow::default());
    if view.omitted > 0 {
        list.push_note(TextTone::Faint, &format!("… {} older facts are left out", view.omitted));
    }
    for fact in &view.facts {
        add_fact_rows(list, fact, context);
    }
}

pub fn add_empty_rows(list: &mut RowList) {
    list.push_note(TextTone::Plain, "Why explains a task or a session.");
    list.push_note(TextTone::Faint, "Select one on another screen and press w, or press / and type its name.");
}

fn add_fact_rows(list: &mut RowList, fact: &WhyFactView, context: RowContext<'_>) {
    let target = RowTarget::Event(fact.seq);
    let is_open = context.is_toggled(&target);
    let has_more = fact.evidence.len() > MAX_SHORT_EVIDENCE || !fact.details.is_empty() || !fact.cause_seqs.is_empty();
    let tone = if fact.is_decision { fact.tone } else { TextTone::Faint };
    let mark = if has_more { fold_mark(is_open) } else { "  " };
    let clock = if context.width >= 80 { format!("{} ", format_clock(fact.at)) } else { String::new() };
    let before = format!("{mark}{clock}{:>4} ", fact.seq);
    let indent = " ".repeat(before.chars().count());
    let room = list.width.saturating_sub(indent.len()).max(10);
    let said = if is_open { &fact.sentence } else { first_line(&fact.sentence) };
    let sentence = if fact.sentence.is_empty() { fact.kind.clone() } else { format!("{} {said}", fact.kind) };
    for (number, row) in windlass_text::wrap_to_width(&sentence, room, room).into_iter().enumerate() {
        let before = if number == 0 { &before } else { &indent };
        list.push(ScreenRow::new(Some(target.clone())).with(TextTone::Faint, before).with(tone, row));
    }
    let shown = if is_open { fact.evidence.len() } else { MAX_SHORT_EVIDENCE };
    let before = format!("{indent}│ ");
    for line in fact.evidence.iter().take(shown).filter(|_| is_open || fact.is_decision) {
        list.push_wrapped(Some(&target), &before, TextTone::Plain, line);
    }
    if !is_open {
        return;
    }
    for detail in &fact.details {
        list.push_wrapped(Some(&target), &before, TextTone::Faint, detail);
    }
    let causes: Vec<String> = fact.cause_seqs.iter().map(u64::to_string).collect();
    let said = match causes.as_slice() {
        [] => return,
        [cause] => format!("caused by event {cause}; u goes there"),
        several => format!("caused by events {}; u goes to the first", several.join(", ")),
    };
    list.push_wrapped(Some(&target), &before, TextTone::Faint, &said);
}

/// Returns the position of the first cause of a fact.
pub fn find_cause(view: &WhyView, seq: u64) -> Option<u64> {
    view.facts.iter().find(|fact| fact.seq == seq)?.cause_seqs.first().copied()
}

pub fn find_subject(view: &WhyView) -> RowSubject {
    let is_session = view.kind == "session";
    let last_task = || view.facts.iter().rev().find_map(|fact| fact.task.clone());
    let last_session = || view.facts.iter().rev().find_map(|fact| fact.session.clone());
    RowSubject {
        task: if view.kind == "task" { Some(view.name.clone()) } else { last_task() },
        session: if is_session { Some(view.name.clone()) } else { last_session() },
        ..RowSubject::default()
    }
}
