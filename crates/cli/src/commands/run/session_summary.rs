//! The summary of a session: a small table on a terminal, a few lines in a pipe.

use std::path::PathBuf;
use std::time::Duration;

use windlass_app::run::{ChangedFiles, RemainingTasks, SessionTally};
use windlass_app::unchecked_work::describe_unchecked_work;
use windlass_engine::{Ending, Session, TaskId};
use windlass_text as text;

use crate::output::{Done, Output, Tone};
use crate::show;

/// The largest number of files, hooks and tasks that are named.
pub const MAX_NAMED: usize = 8;
/// The column in which the second column of the table begins.
const INDENT: usize = 13;

/// The facts about a session that has ended.
pub struct SessionSummary {
    pub session: Session,
    pub tally: SessionTally,
    pub changed: Result<Option<ChangedFiles>, String>,
    /// The remaining tasks of the graph, if the session works on the graph.
    pub left: Option<RemainingTasks>,
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
    pub unheard: usize,
}

impl SessionSummary {
    /// Shows the summary in a pipe: only facts that the lines above do not have.
    pub fn show_lines(&self, next: &[String], out: &mut Output) -> Done {
        show_row("took", &self.time(), out)?;
        self.used().iter().try_for_each(|used| show_row("used", used, out))?;
        if let Ok(Some(changed)) = &self.changed
            && !changed.files.is_empty()
        {
            show_row("changed", &sum(changed), out)?;
        }
        self.notes().iter().try_for_each(|line| show_row("note:", line, out))?;
        self.left().iter().try_for_each(|line| show_row("left:", line, out))?;
        if self.session.ended() != Some(Ending::Completed)
            || self.left.as_ref().is_some_and(|left| left.first_for_person().is_some())
            || !self.changes.is_empty()
        {
            next.first().map_or(Ok(()), |line| show_row("next:", line, out))?;
        }
        Ok(())
    }

    pub fn show_table(&self, next: &[String], columns: usize, out: &mut Output) -> Done {
        out.line("")?;
        let mut rows: Vec<(&str, Tone, Vec<String>)> = vec![("took", Tone::Plain, vec![self.time()])];
        rows.push(("used", Tone::Plain, self.used()));
        rows.push(("blocked by", Tone::Warning, self.blocked()));
        rows.push(("changed", Tone::Plain, self.changes()));
        rows.push(("completed", Tone::Good, self.completed()));
        rows.push(("note", Tone::Warning, self.notes()));
        rows.push(("left", Tone::Warning, self.left()));
        let records = self.records.as_ref().map(|records| records.display().to_string());
        rows.push(("output", Tone::Faint, records.into_iter().collect()));
        rows.push(("next", Tone::Name, next.to_vec()));
        for (label, tone, lines) in rows {
            let room = columns - INDENT;
            let rows = lines.iter().flat_map(|line| match tone {
                // The terminal wraps commands, so that they can be copied as a whole.
                Tone::Name => vec![text::line(line).into_owned()],
                _ => text::wrap(&text::fit(line, show::LONG), room, room),
            });
            for (number, row) in rows.enumerate() {
                let label = text::pad(if number == 0 { label } else { "" }, INDENT - 2);
                out.line(format_args!("  {}{}", out.paint(Tone::Faint, label), out.paint(tone, row)))?;
            }
        }
        Ok(())
    }

    fn time(&self) -> String {
        let took = |time: Duration| show::millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
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
    fn used(&self) -> Vec<String> {
        let used = self.session.watch.used;
        if used.is_nothing() { vec![] } else { vec![used.to_string()] }
    }

    /// Notes unchecked work, and work that is in no change.
    fn notes(&self) -> Vec<String> {
        let skipped = self.skipped_check.as_deref();
        let unchecked = describe_unchecked_work(self.session.unchecked, self.completed_tasks, skipped);
        unchecked.into_iter().chain(self.without_change.iter().cloned()).collect()
    }

    fn blocked(&self) -> Vec<String> {
        let times = |count: u32| if count == 1 { "once".to_owned() } else { format!("{count} times") };
        self.tally.blocked.iter().map(|(hook, count)| format!("{hook} {}", times(*count))).take(MAX_NAMED).collect()
    }

    fn changes(&self) -> Vec<String> {
        let changed = match &self.changed {
            Ok(Some(changed)) if !changed.files.is_empty() => changed,
            Ok(Some(_)) => return vec!["no files".to_owned()],
            Ok(None) => return vec![],
            Err(why) => return vec![format!("not known: {why}")],
        };
        let named = changed.files.iter().take(MAX_NAMED).map(|file| text::line(file).into_owned());
        let more = changed.files.len().saturating_sub(MAX_NAMED);
        let more = (more > 0).then(|| format!("and {more} more"));
        std::iter::once(sum(changed)).chain(named).chain(more).collect()
    }

    fn completed(&self) -> Vec<String> {
        let completed = &self.tally.completed;
        match completed.len() {
            0 => vec![],
            many if many > MAX_NAMED => vec![format!("{many} tasks")],
            _ => vec![completed.join(", ")],
        }
    }

    fn left(&self) -> Vec<String> {
        let mut left = Vec::new();
        let unheard = self.session.pending.len() + self.unheard;
        if unheard > 0 {
            let pieces = u32::try_from(unheard).unwrap_or(u32::MAX);
            left.push(format!("{} that the agent has not heard", show::pieces(pieces)));
        }
        left.extend(self.left.iter().flat_map(RemainingTasks::lines));
        left
    }
}

fn sum(changed: &ChangedFiles) -> String {
    let more = if changed.cut { "at least " } else { "" };
    let files = match changed.files.len() {
        1 => "one file".to_owned(),
        many => format!("{many} files"),
    };
    format!("{more}{files}")
}

/// Prints one labelled line.
pub fn show_row(label: &str, line: &str, out: &mut Output) -> Done {
    out.line(format_args!("  {label} {}", text::line(line)))
}
