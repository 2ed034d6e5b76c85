//! Sessions: the list, and the timeline of one.

use windlass_app::time_format;
use windlass_app::tone::TextTone;
use windlass_app::views::{
    SessionPage, SessionSummary, SessionTimeline, TimelineGroup, TimelineItem, TimelineItemKind,
};

use super::{RowContext, first_line, fold_mark, format_clock, format_usage, tone_mark};
use crate::page::RowSubject;
use crate::row::{RowList, RowTarget, ScreenRow};

pub fn add_list_rows(list: &mut RowList, page: &SessionPage, context: RowContext<'_>) {
    for session in &page.sessions {
        list.push(list_row(session, context));
        list.push_wrapped(None, "       ", TextTone::Faint, first_line(&session.goal));
        if let Some(line) = describe_resumption(session) {
            list.push_wrapped(None, "       ", TextTone::Warning, &line);
        }
    }
    if page.sessions.is_empty() {
        list.push_note(TextTone::Faint, "no sessions yet; windlass run GOAL starts one");
    }
    if page.has_more {
        list.push_note(TextTone::Faint, "… older sessions: windlass session list");
    }
}

/// Returns the row of a session in a list.
pub fn list_row(session: &SessionSummary, context: RowContext<'_>) -> ScreenRow {
    let mark = if session.is_running { "●" } else { tone_mark(session.tone) };
    ScreenRow::new(Some(RowTarget::Session(session.name.clone())))
        .with(session.tone, format!("{mark} "))
        .with(TextTone::Name, format!("{:<4} ", session.task.as_deref().unwrap_or("–")))
        .with(TextTone::Plain, &session.name)
        .with(session.tone, format!("  {}", session.state))
        .with_right(TextTone::Faint, context.age(session.started_at))
}

/// Describes how far a session is.
pub fn describe_progress(session: &SessionSummary) -> String {
    let iteration = format!("iteration {}/{}", session.iteration, session.max_iterations);
    match session.sent_back {
        0 => iteration,
        count => format!("{iteration} · sent back {count}/{}", session.max_send_backs),
    }
}

/// Returns the command that goes on with a session that no process runs, after the sentence that leads to it.
pub fn describe_resumption(session: &SessionSummary) -> Option<String> {
    Some(format!("{}: {}", session.resume_note.as_ref()?, session.resume_command.as_ref()?))
}

pub fn add_timeline_rows(list: &mut RowList, timeline: &SessionTimeline, context: RowContext<'_>) {
    let session = &timeline.session;
    let mark = if session.is_running { "●" } else { tone_mark(session.tone) };
    let head = ScreenRow::default().with(session.tone, format!("{mark} "));
    let head = head.with(TextTone::Name, &session.name).with(session.tone, format!("  {}", session.state));
    let ended = session.ended_at.unwrap_or(context.now);
    let ran = u64::try_from(ended.saturating_sub(session.started_at)).unwrap_or_default();
    list.push(head.with_right(TextTone::Faint, time_format::format_millis(ran)));
    let goal = first_line(&session.goal);
    list.push_wrapped(None, "", TextTone::Strong, &format!("{} {goal}", session.task.as_deref().unwrap_or_default()));
    let usage = format_usage(&session.usage);
    let usage = if usage.is_empty() { usage } else { format!(" · {usage}") };
    list.push_wrapped(None, "", TextTone::Faint, &format!("{} · {}{usage}", session.agent, describe_progress(session)));
    if let Some(line) = describe_resumption(session) {
        list.push_wrapped(None, "", TextTone::Warning, &line);
    }
    if let Some(awaited) = &session.waits_for {
        list.push_wrapped(None, "", TextTone::Warning, &format!("waits for {awaited}"));
    }
    if timeline.is_cut {
        list.push_note(TextTone::Faint, "… older events are left out: windlass session logs");
    }
    let question_turn = timeline.question.as_ref().and_then(|question| question.message_seq);
    let last = timeline.groups.len().saturating_sub(1);
    for (number, group) in timeline.groups.iter().enumerate() {
        add_group_rows(list, group, number == last, question_turn, context);
    }
    if !timeline.pending_feedback.is_empty() {
        list.push_heading("Waits for the next prompt");
    }
    for (number, piece) in timeline.pending_feedback.iter().enumerate() {
        list.push_wrapped(Some(&RowTarget::Text(number)), "╌ ", TextTone::Warning, piece);
    }
}

/// Adds the rows of an iteration. `question_turn` is the position of the turn before a question.
fn add_group_rows(
    list: &mut RowList,
    group: &TimelineGroup,
    is_last: bool,
    question_turn: Option<u64>,
    context: RowContext<'_>,
) {
    let target = RowTarget::Iteration(group.iteration);
    let needs_attention = group.items.iter().any(|item| item.needs_attention);
    // The last iteration is open, and those with something to look at, as in a log of a build.
    let is_open = (is_last || needs_attention) != context.is_toggled(&target);
    let title = match group.iteration {
        0 => "Start".to_owned(),
        number => format!("Iteration {number}"),
    };
    let task = group.task.as_ref().map(|task| format!("  {task}")).unwrap_or_default();
    let ended = group.ended_at.unwrap_or(context.now);
    let took = u64::try_from(ended.saturating_sub(group.started_at)).unwrap_or_default();
    let tone = match group.items.iter().any(|item| item.tone == TextTone::Bad) {
        true => TextTone::Bad,
        false if needs_attention => TextTone::Warning,
        false => TextTone::Strong,
    };
    let row = ScreenRow::new(Some(target)).with(tone, format!("{}{title}", fold_mark(is_open)));
    let row = row.with(TextTone::Name, task);
    let row = if is_open { row } else { row.with(TextTone::Faint, format!("  {}", count_items(group.items.len()))) };
    list.push(row.with_right(TextTone::Faint, time_format::format_millis(took)));
    // Some events have no words; the log has them.
    let has_words = |item: &&TimelineItem| item.kind != TimelineItemKind::Event || !item.title.is_empty();
    for item in group.items.iter().filter(has_words).filter(|_| is_open) {
        add_item_rows(list, item, question_turn == Some(item.seq), context);
    }
}

fn count_items(count: usize) -> String {
    if count == 1 { "1 item".to_owned() } else { format!("{count} items") }
}

fn add_item_rows(list: &mut RowList, item: &TimelineItem, is_question_turn: bool, context: RowContext<'_>) {
    let target = RowTarget::Event(item.seq);
    let has_more = item.text.as_deref().is_some_and(|text| !text.trim().is_empty())
        || !item.evidence.is_empty()
        || !item.details.is_empty();
    // The words that need attention are shown at once, those for the agent, and those before a question.
    let is_said = matches!(item.kind, TimelineItemKind::Message | TimelineItemKind::Feedback);
    let opens_itself = item.needs_attention || is_said || is_question_turn;
    let is_open = has_more && opens_itself != context.is_toggled(&target);
    let kind = match item.kind {
        TimelineItemKind::Turn => "agent",
        TimelineItemKind::Hook => "hook",
        TimelineItemKind::Gate => "gate",
        TimelineItemKind::Feedback => "told",
        TimelineItemKind::Wait => "wait",
        TimelineItemKind::Message => "said",
        TimelineItemKind::Event => "",
    };
    let mark = if has_more { fold_mark(is_open) } else { "  " };
    let row = ScreenRow::new(Some(target.clone()))
        .with(TextTone::Faint, format!("  {mark}"))
        .with(
            TextTone::Faint,
            if context.width >= 80 { format!("{} ", format_clock(item.started_at)) } else { String::new() },
        )
        .with(if item.is_pending { TextTone::Warning } else { TextTone::Name }, format!("{kind:<5} "))
        .with(item.tone, first_line(item.title.strip_prefix("agent: ").unwrap_or(&item.title)));
    list.push(match (item.is_pending, item.ended_at) {
        (true, _) => row.with_right(TextTone::Warning, format!("╌╌ {}", context.age(item.started_at))),
        (false, Some(ended)) if ended > item.started_at => {
            let took = u64::try_from(ended - item.started_at).unwrap_or_default();
            row.with_right(TextTone::Faint, time_format::format_millis(took))
        }
        (false, _) => row,
    });
    if !is_open {
        return;
    }
    let before = "      │ ";
    for said in item.text.iter().chain(&item.evidence) {
        list.push_wrapped(Some(&target), before, TextTone::Plain, said);
    }
    for detail in &item.details {
        list.push_wrapped(Some(&target), before, TextTone::Faint, detail);
    }
}

/// Returns the position of the cause of an item.
pub fn find_cause(timeline: &SessionTimeline, seq: u64) -> Option<u64> {
    let mut items = timeline.groups.iter().flat_map(|group| &group.items);
    items.find(|item| item.seq == seq)?.related_seqs.first().copied()
}

pub fn session_subject(session: &SessionSummary) -> RowSubject {
    RowSubject {
        task: session.task.clone(),
        session: Some(session.name.clone()),
        is_over: session.ended_at.is_some(),
        question: session.waits_for.clone().unwrap_or_default(),
        ..RowSubject::default()
    }
}

pub fn find_list_subject(page: &SessionPage, target: Option<&RowTarget>) -> RowSubject {
    let Some(RowTarget::Session(name)) = target else { return RowSubject::default() };
    page.sessions.iter().find(|session| session.name == *name).map(session_subject).unwrap_or_default()
}

pub fn find_timeline_subject(timeline: &SessionTimeline) -> RowSubject {
    let subject = RowSubject { answers: Some(timeline.answers.clone()), ..session_subject(&timeline.session) };
    subject.with_question(timeline.question.as_ref())
}
