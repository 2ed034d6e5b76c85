//! Changes: the list, and one change with its checks and its diff by file.

use windlass_app::tone::TextTone;
use windlass_app::views::{ChangeDetails, ChangeSummary, CheckResult, DiffLineKind, FileDiff, FileDiffStatus};
use windlass_text as text;

use super::{RowContext, first_line, fold_mark, tone_mark};
use crate::page::RowSubject;
use crate::row::{RowList, RowTarget, ScreenRow};

/// The changed lines up to which all files of a diff are open at first.
const MAX_OPEN_LINES: u64 = 400;

pub fn add_list_rows(list: &mut RowList, changes: &[ChangeSummary], context: RowContext<'_>) {
    for change in changes {
        let row = ScreenRow::new(Some(RowTarget::Change(change.task.clone())))
            .with(change.tone, "± ")
            .with(TextTone::Name, format!("{:<4} ", change.task))
            .with(TextTone::Plain, first_line(&change.goal));
        list.push(row.with_right(TextTone::Faint, context.age(change.opened_at)));
        list.push_wrapped(None, "       ", TextTone::Faint, &describe_change(change));
    }
    if changes.is_empty() {
        list.push_note(TextTone::Faint, "no open changes; a task with a worktree opens one when its gates pass");
    }
}

fn describe_change(change: &ChangeSummary) -> String {
    let count = |number: u32, noun: &str| format!("{number} {noun}{}", if number == 1 { "" } else { "s" });
    let url = change.url.as_ref().map(|url| format!(" · {url}")).unwrap_or_default();
    let (commits, files) = (count(change.commits, "commit"), count(change.files, "file"));
    format!("{} → {} · {commits} · {files}{url}", change.branch, change.base)
}

/// Describes what a merge pushes.
fn describe_merge_push(details: &ChangeDetails) -> Option<String> {
    let remote = details.merge_remote.as_ref()?;
    Some(format!("Windlass then pushes {} to {remote}.", details.change.base))
}

pub fn add_detail_rows(list: &mut RowList, details: &ChangeDetails, context: RowContext<'_>) {
    let change = &details.change;
    let head = ScreenRow::default().with(TextTone::Name, format!("{} ", change.task)).with(change.tone, &change.state);
    let hint = if details.has_landed { "  m records its merge" } else { "  m merges it" };
    let head = if details.can_merge { head.with(TextTone::Good, hint) } else { head };
    list.push(head.with_right(TextTone::Faint, context.age(change.opened_at)));
    if let Some(push) = describe_merge_push(details) {
        list.push_wrapped(None, "", TextTone::Plain, &push);
    }
    list.push_wrapped(None, "", TextTone::Strong, &change.goal);
    list.push_wrapped(None, "", TextTone::Faint, &describe_change(change));
    if let Some(problem) = &details.diff_problem {
        list.push_note(TextTone::Warning, problem);
    }
    for (number, line) in details.findings.iter().chain(&details.facts).enumerate() {
        list.push_labelled(Some(&RowTarget::Text(number)), &line.label, &line.text);
    }
    if !details.checks.is_empty() {
        list.push_heading("Checks");
    }
    for (number, check) in details.checks.iter().enumerate() {
        add_check_rows(list, number, check, context);
    }
    let (added, removed) =
        details.file_diffs.iter().fold((0, 0), |(added, removed), file| (added + file.added, removed + file.removed));
    list.push_heading(&format!("Files ({})", details.file_diffs.len()));
    let opens_all = added + removed <= MAX_OPEN_LINES;
    for (number, file) in details.file_diffs.iter().enumerate() {
        add_file_rows(list, number, file, opens_all, context);
    }
    if details.is_cut {
        list.push_note(TextTone::Warning, &format!("… the diff is cut: windlass change show {}", change.task));
    }
}

fn add_check_rows(list: &mut RowList, number: usize, check: &CheckResult, context: RowContext<'_>) {
    let target = RowTarget::Check(number);
    let has_more = !check.output.is_empty();
    let is_open = has_more && check.needs_attention != context.is_toggled(&target);
    let message = check.message.as_deref().map(|message| format!(": {message}")).unwrap_or_default();
    let row = ScreenRow::new(Some(target.clone()))
        .with(TextTone::Faint, if has_more { fold_mark(is_open) } else { "  " })
        .with(check.tone, format!("{} ", tone_mark(check.tone)))
        .with(TextTone::Plain, format!("{} ", check.hook))
        .with(check.tone, format!("{}{message}", check.outcome));
    list.push(row.with_right(TextTone::Faint, &check.gate));
    for line in check.output.iter().filter(|_| is_open) {
        list.push_wrapped(Some(&target), "    │ ", TextTone::Plain, line);
    }
}

fn add_file_rows(list: &mut RowList, number: usize, file: &FileDiff, opens_all: bool, context: RowContext<'_>) {
    let target = RowTarget::File(number);
    let is_open = opens_all != context.is_toggled(&target);
    let (mark, tone) = match file.status {
        FileDiffStatus::Added => ("A", TextTone::Good),
        FileDiffStatus::Symlink => ("L", TextTone::Warning),
        FileDiffStatus::ModeChanged => ("X", TextTone::Warning),
        FileDiffStatus::Modified => ("M", TextTone::Name),
        FileDiffStatus::Deleted => ("D", TextTone::Bad),
        FileDiffStatus::Renamed => ("R", TextTone::Name),
        FileDiffStatus::Binary => ("B", TextTone::Warning),
        FileDiffStatus::TooLarge => ("…", TextTone::Warning),
    };
    let row = ScreenRow::new(Some(target.clone()))
        .with(TextTone::Faint, fold_mark(is_open))
        .with(tone, format!("{mark} "))
        .with(TextTone::Strong, file.old_path.as_ref().map(|old| format!("{old} → ")).unwrap_or_default() + &file.path);
    list.push(row.with_right(TextTone::Faint, format!("+{} -{}", file.added, file.removed)));
    let hunks = file.hunks.iter().filter(|_| is_open);
    for hunk in hunks {
        list.push_wrapped(Some(&target), "", TextTone::Name, &hunk.header);
        for line in &hunk.lines {
            let (sign, tone) = match line.kind {
                DiffLineKind::Context => (' ', TextTone::Plain),
                DiffLineKind::Added => ('+', TextTone::Good),
                DiffLineKind::Removed => ('-', TextTone::Bad),
            };
            let at = line.new_line.or(line.old_line).unwrap_or_default();
            add_diff_line(list, &target, &format!("{at:>5} "), tone, &format!("{sign}{}", line.text));
        }
    }
}

/// Adds a line of a diff. Its tabs become columns, and what is too long is continued below.
fn add_diff_line(list: &mut RowList, target: &RowTarget, before: &str, tone: TextTone, line: &str) {
    let room = list.width.saturating_sub(before.len()).max(10);
    let line = line.replace('\t', "    ");
    for (number, row) in text::wrap_to_width(&line, room, room).into_iter().enumerate() {
        let before = if number == 0 { before.to_owned() } else { " ".repeat(before.len()) };
        list.push(ScreenRow::new(Some(target.clone())).with(TextTone::Faint, before).with(tone, row));
    }
}

pub fn find_list_subject(changes: &[ChangeSummary], target: Option<&RowTarget>) -> RowSubject {
    let Some(RowTarget::Change(task)) = target else { return RowSubject::default() };
    let change = changes.iter().find(|change| change.task == *task);
    change.map(|change| RowSubject { task: Some(change.task.clone()), ..RowSubject::default() }).unwrap_or_default()
}

pub fn find_detail_subject(details: &ChangeDetails) -> RowSubject {
    let subject = RowSubject {
        task: Some(details.change.task.clone()),
        answers: Some(details.answers.clone()),
        question: details.change.goal.clone(),
        can_merge: details.can_merge,
        landed_base: details.has_landed.then(|| details.change.base.clone()),
        merge_push: describe_merge_push(details),
        ..RowSubject::default()
    };
    subject.with_question(details.question.as_ref())
}
