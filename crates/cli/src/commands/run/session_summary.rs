//! The summary of a session: a small table on a terminal, a few lines in a pipe.

use std::path::PathBuf;
use std::time::Duration;

use windlass_app::run::{ChangedFiles, RemainingTasks, SessionTally};
use windlass_app::unchecked_work::describe_unchecked_work;
use windlass_engine::{Session, SessionEndKind, TaskId};
use windlass_text as text;

use crate::output::{CommandResult, Output, TextTone};
use crate::show;

/// The largest number of files, hooks and tasks that are named.
pub const MAX_NAMED: usize = 8;
/// The column in which the second column of the table begins.
const TABLE_INDENT: usize = 13;

/// The facts about a session that has ended.
pub struct SessionEndSummary {
    pub session: Session,
    pub tally: SessionTally,
    pub changed: Result<Option<ChangedFiles>, String>,
    /// The remaining tasks of the graph, if the session works on the graph.
    pub remaining_tasks: Option<RemainingTasks>,
    pub records: Option<PathBuf>,
    /// The changes of tasks that were completed, or that wait for a person.
    pub changes: Vec<TaskId>,
    /// The reason of a skipped check, if nothing checked the work.
    pub skipped_check: Option<String>,
    /// The number of completed tasks, if some of them are unchecked.
    pub completed_tasks: usize,
    /// Notes about work of completed tasks that is in no change.
    pub without_change: Vec<String>,
    /// The number of pieces of feedback that wait for the next session of the task.
    pub undelivered_feedback: usize,
}

impl SessionEndSummary {
    /// Shows the summary in a pipe: only facts that the lines above do not have.
    pub fn show_lines(&self, next: &[String], out: &mut Output) -> CommandResult {
        print_labelled_row("took", &self.format_times(), out)?;
        self.format_usage().iter().try_for_each(|used| print_labelled_row("used", used, out))?;
        if let Ok(Some(changed)) = &self.changed
            && !changed.files.is_empty()
        {
            print_labelled_row("changed", &format_file_count(changed), out)?;
        }
        self.collect_notes().iter().try_for_each(|line| print_labelled_row("note:", line, out))?;
        self.list_remaining_work().iter().try_for_each(|line| print_labelled_row("left:", line, out))?;
        if self.session.ending_kind() != Some(SessionEndKind::Completed)
            || self.remaining_tasks.as_ref().is_some_and(|left| left.first_task_for_person().is_some())
            || !self.changes.is_empty()
        {
            next.first().map_or(Ok(()), |line| print_labelled_row("next:", line, out))?;
        }
        Ok(())
    }

    pub fn show_table(&self, next: &[String], columns: usize, out: &mut Output) -> CommandResult {
        out.print_line("")?;
        let mut rows: Vec<(&str, TextTone, Vec<String>)> = vec![("took", TextTone::Plain, vec![self.format_times()])];
        rows.push(("used", TextTone::Plain, self.format_usage()));
        rows.push(("blocked by", TextTone::Warning, self.list_blocking_hooks()));
        rows.push(("changed", TextTone::Plain, self.list_changed_files()));
        rows.push(("completed", TextTone::Good, self.list_completed_tasks()));
        rows.push(("note", TextTone::Warning, self.collect_notes()));
        rows.push(("left", TextTone::Warning, self.list_remaining_work()));
        let records = self.records.as_ref().map(|records| records.display().to_string());
        rows.push(("output", TextTone::Faint, records.into_iter().collect()));
        rows.push(("next", TextTone::Name, next.to_vec()));
        for (label, tone, lines) in rows {
            let room = columns - TABLE_INDENT;
            let rows = lines.iter().flat_map(|line| match tone {
                // The terminal wraps commands, so that they can be copied as a whole.
                TextTone::Name => vec![text::clean_line(line).into_owned()],
                _ => text::wrap_to_width(&text::fit_to_width(line, show::MAX_SHOWN_TEXT), room, room),
            });
            for (number, row) in rows.enumerate() {
                let label = text::pad_to_width(if number == 0 { label } else { "" }, TABLE_INDENT - 2);
                out.print_line(format_args!("  {}{}", out.paint(TextTone::Faint, label), out.paint(tone, row)))?;
            }
        }
        Ok(())
    }

    fn format_times(&self) -> String {
        let took = |time: Duration| show::format_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        let hooks = match self.tally.hook_runs {
            0 => String::new(),
            _ => format!(", hooks {}", took(self.tally.hooks)),
        };
        let turns = match self.tally.turns {
            1 => "one turn".to_owned(),
            many => format!("{many} turns"),
        };
        format!("{}, agent {}{hooks}, {turns}", took(self.session.watch.lasted), took(self.tally.agent))
    }

    /// Formats tokens and cost, if the agent has reported any.
    fn format_usage(&self) -> Vec<String> {
        let used = self.session.watch.used;
        if used.is_nothing() { vec![] } else { vec![used.to_string()] }
    }

    /// Notes unchecked work, and work that is in no change.
    fn collect_notes(&self) -> Vec<String> {
        let skipped = self.skipped_check.as_deref();
        let unchecked = describe_unchecked_work(self.session.unchecked, self.completed_tasks, skipped);
        unchecked.into_iter().chain(self.without_change.iter().cloned()).collect()
    }

    fn list_blocking_hooks(&self) -> Vec<String> {
        let times = |count: u32| if count == 1 { "once".to_owned() } else { format!("{count} times") };
        self.tally.blocked.iter().map(|(hook, count)| format!("{hook} {}", times(*count))).take(MAX_NAMED).collect()
    }

    fn list_changed_files(&self) -> Vec<String> {
        let changed = match &self.changed {
            Ok(Some(changed)) if !changed.files.is_empty() => changed,
            Ok(Some(_)) => return vec!["no files".to_owned()],
            Ok(None) => return vec![],
            Err(why) => return vec![format!("not known: {why}")],
        };
        let named = changed.files.iter().take(MAX_NAMED).map(|file| text::clean_line(file).into_owned());
        let more = changed.files.len().saturating_sub(MAX_NAMED);
        let more = (more > 0).then(|| format!("and {more} more"));
        std::iter::once(format_file_count(changed)).chain(named).chain(more).collect()
    }

    fn list_completed_tasks(&self) -> Vec<String> {
        let completed = &self.tally.completed;
        match completed.len() {
            0 => vec![],
            many if many > MAX_NAMED => vec![format!("{many} tasks")],
            _ => vec![completed.join(", ")],
        }
    }

    fn list_remaining_work(&self) -> Vec<String> {
        let mut left = Vec::new();
        let undelivered = self.session.pending.len() + self.undelivered_feedback;
        if undelivered > 0 {
            let pieces = u32::try_from(undelivered).unwrap_or(u32::MAX);
            left.push(format!("{} not delivered to the agent", show::format_feedback_count(pieces)));
        }
        left.extend(self.remaining_tasks.iter().flat_map(RemainingTasks::describe_lines));
        left
    }
}

fn format_file_count(changed: &ChangedFiles) -> String {
    let more = if changed.is_truncated { "at least " } else { "" };
    let files = match changed.files.len() {
        1 => "one file".to_owned(),
        many => format!("{many} files"),
    };
    format!("{more}{files}")
}

/// Prints one labelled line.
pub fn print_labelled_row(label: &str, line: &str, out: &mut Output) -> CommandResult {
    out.print_line(format_args!("  {label} {}", text::clean_line(line)))
}
