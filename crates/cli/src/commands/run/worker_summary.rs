//! The summary of a run with several workers: the results, the remaining work with reasons, and the next commands.

use std::time::Duration;

use serde_json::{Value, json};
use windlass_app::changes::{has_open_change, note_work_without_change};
use windlass_app::context::{OpenedProject, visit_tasks_in_states};
use windlass_app::next_step::find_next_step;
use windlass_app::resume_command::format_run_command;
use windlass_app::run::workers::{AgentAssignment, RunTotals};
use windlass_app::run::{describe_holder, is_held_by_idle_session};
use windlass_app::unchecked_work::describe_unchecked_work;
use windlass_engine::{Task, TaskId, TaskState};
use windlass_text as text;

use super::Args;
use crate::output::{CommandResult, Output, TextTone};
use crate::show;

/// The largest number of tasks that are named.
const MAX_NAMED_TASKS: usize = 8;
/// The column in which the second column of the table begins.
const TABLE_INDENT: usize = 13;

/// The summary of a run with several workers.
pub struct WorkerSummary<'a> {
    pub opened: &'a OpenedProject,
    pub totals: &'a RunTotals,
    pub took: Duration,
    pub args: &'a Args,
    pub assignment: &'a AgentAssignment<'a>,
}

impl WorkerSummary<'_> {
    pub fn show_summary(&self, out: &mut Output) -> CommandResult {
        let RunTotals { done, left, people, paused, .. } = self.totals;
        if out.columns().is_some() {
            out.print_line("")?;
        }
        print_table_row("done", TextTone::Good, &[format_task_ids(done)], out)?;
        print_table_row("left", TextTone::Warning, &self.describe_tasks(left.iter(), describe_left_task), out)?;
        print_table_row("left", TextTone::Warning, &self.list_unassigned(), out)?;
        print_table_row("left", TextTone::Warning, &self.list_held_tasks(), out)?;
        print_table_row(
            "left",
            TextTone::Warning,
            &self.describe_tasks(self.find_blocked_tasks().iter(), describe_blocked_task),
            out,
        )?;
        print_table_row("taken away", TextTone::Warning, &self.list_lost_tasks(), out)?;
        print_table_row(
            "for a person",
            TextTone::Warning,
            &self.describe_tasks(people.iter(), describe_blocked_task),
            out,
        )?;
        print_table_row("for a person", TextTone::Warning, &self.list_objections(), out)?;
        let paused =
            paused.as_ref().map(|why| format!("twice in a row a task could not be worked on or judged: {why}"));
        print_table_row("paused", TextTone::Bad, &paused.into_iter().collect::<Vec<_>>(), out)?;
        print_table_row("took", TextTone::Plain, &[self.format_time()], out)?;
        let used = self.totals.used;
        print_table_row(
            "used",
            TextTone::Plain,
            &if used.is_nothing() { vec![] } else { vec![used.to_string()] },
            out,
        )?;
        let unchecked = describe_unchecked_work(
            self.totals.unchecked,
            self.totals.done.len(),
            self.totals.skipped_check.as_deref(),
        );
        print_table_row("note", TextTone::Warning, &Vec::from_iter(unchecked), out)?;
        let unopened = note_work_without_change(self.opened, self.totals.done.iter().copied());
        print_table_row("note", TextTone::Warning, &unopened, out)?;
        print_table_row("next", TextTone::Name, &self.list_next_commands(), out)
    }

    /// Describes the first tasks with a reason each.
    fn describe_tasks<'t>(
        &self,
        ids: impl ExactSizeIterator<Item = &'t TaskId>,
        why: fn(&Task) -> String,
    ) -> Vec<String> {
        let one = |id: &TaskId| match self.opened.require_task(*id) {
            Ok(task) => format!("{id}  {}: {}", text::fit_to_width(&task.goal, 60), why(&task)),
            Err(_) => id.to_string(),
        };
        first_lines(ids.len(), ids.map(one), "; `windlass task list` shows them")
    }

    /// Finds ready tasks that no agent of this run may take, with the reason.
    fn find_unassigned_tasks(&self) -> Vec<(Task, String)> {
        let is_free = |task: &Task| task.lease.is_none() && !self.totals.left.contains(&task.id);
        self.select_tasks(&[TaskState::Ready, TaskState::NeedsContinuation], |task| {
            let why = if is_free(&task) { self.assignment.explain_untaken_task(self.opened, &task) } else { None };
            why.map(|why| (task, why))
        })
    }

    /// Selects tasks in these states with `pick`. An unreadable task is left out: the command that needs it reports the error.
    fn select_tasks<T>(&self, states: &[TaskState], pick: impl Fn(Task) -> Option<T>) -> Vec<T> {
        let mut found = Vec::new();
        let _ = visit_tasks_in_states(&self.opened.store, states, |task| {
            found.extend(pick(task));
            true
        });
        found
    }

    fn list_unassigned(&self) -> Vec<String> {
        let unassigned_tasks = self.find_unassigned_tasks();
        let one = |(task, why): &(Task, String)| format!("{}  {}: {why}", task.id, text::fit_to_width(&task.goal, 60));
        first_lines(unassigned_tasks.len(), unassigned_tasks.iter().map(one), " that this run may not take")
    }

    /// Finds tasks whose sessions do not continue by themselves, except those that a person is asked about.
    fn find_held_tasks(&self) -> Vec<Task> {
        let mut held = self.select_tasks(&[TaskState::Active, TaskState::Submitted], Some);
        held.retain(|task| {
            !self.totals.people.contains(&task.id) && is_held_by_idle_session(self.opened, task).unwrap_or(false)
        });
        held
    }

    /// Finds tasks that an earlier run has left to a person, and that are still blocked.
    fn find_blocked_tasks(&self) -> Vec<TaskId> {
        let is_known = |id: &TaskId| self.totals.people.contains(id) || self.totals.left.contains(id);
        self.select_tasks(&[TaskState::Blocked], |task| Some(task.id).filter(|id| !is_known(id)))
    }

    fn list_held_tasks(&self) -> Vec<String> {
        let held = self.find_held_tasks();
        let one = |task: &Task| {
            let lease = task.lease.as_ref().map(|lease| describe_holder(self.opened, task, lease));
            let why = lease.and_then(Result::ok).unwrap_or_else(|| task.state.to_string());
            format!("{}  {}: {why}", task.id, text::fit_to_width(&task.goal, 60))
        };
        first_lines(held.len(), held.iter().map(one), " that sessions hold; `windlass status` shows them")
    }

    /// Lists the tasks that were taken from this run, with the takers.
    fn list_lost_tasks(&self) -> Vec<String> {
        first_lines(self.totals.lost.len(), self.totals.lost.values().cloned(), "")
    }

    /// Lists the completed tasks for which a hook asks for a person, with its reason.
    fn list_objections(&self) -> Vec<String> {
        let one = |(id, why): (&TaskId, &String)| match self.opened.require_task(*id) {
            Ok(task) => format!("{id}  {}: {why}", text::fit_to_width(&task.goal, 60)),
            Err(_) => format!("{id}  {why}"),
        };
        let objections = &self.totals.objections;
        first_lines(objections.len(), objections.iter().map(one), " that are completed; the lines above say why")
    }

    fn format_time(&self) -> String {
        let took = show::format_millis(u64::try_from(self.took.as_millis()).unwrap_or(u64::MAX));
        let turns = match self.totals.turns {
            1 => "one turn".to_owned(),
            many => format!("{many} turns"),
        };
        format!("{took}, {turns}")
    }

    fn list_next_commands(&self) -> Vec<String> {
        let RunTotals { left, people, paused, killed, .. } = self.totals;
        let answer = people.iter().take(MAX_NAMED_TASKS).map(|id| self.advise_on_task(*id));
        let objections = self.totals.objections.keys().take(MAX_NAMED_TASKS).map(|id| format!("windlass why {id}"));
        let open = self.next_change_command();
        let again = (!left.is_empty() || paused.is_some() || *killed).then(|| match paused {
            Some(_) => format!("{}  # after you fix this; no task has lost work", self.repeat_command()),
            None => self.repeat_command(),
        });
        let lost = self.totals.lost.keys().next().map(|id| format!("windlass why {id}"));
        let held = self.find_held_tasks().into_iter().take(1);
        let held = held.filter_map(|task| find_next_step(self.opened, task.id).ok()?).map(|step| step.shell_line());
        let blocked = self.find_blocked_tasks();
        let blocked = blocked.iter().take(1).map(|id| self.advise_on_task(*id));
        answer.chain(objections).chain(again).chain(open).chain(held).chain(blocked).chain(lost).collect()
    }

    /// Returns the command for a task that waits for a person.
    fn advise_on_task(&self, id: TaskId) -> String {
        let why = format!("windlass why {id}");
        match find_next_step(self.opened, id).ok().flatten().map(|step| step.shell_line()) {
            Some(step) if step.contains('#') => step,
            Some(step) => format!("{step}  # or: {why}"),
            None => why,
        }
    }

    /// Returns the command for the first open change of a completed task.
    fn next_change_command(&self) -> Option<String> {
        let mut done: Vec<TaskId> = self.totals.done.clone();
        done.sort_unstable();
        let is_open = |id: &TaskId| self.opened.require_task(*id).is_ok_and(|task| has_open_change(&task));
        let first = done.into_iter().find(is_open)?;
        find_next_step(self.opened, first).ok()?.map(|step| step.shell_line())
    }

    /// Returns the summary for programs. It follows the last event.
    pub fn to_json(&self) -> Value {
        let RunTotals { done, left, people, paused, .. } = self.totals;
        json!({
            "type": "run_summary",
            "done": done,
            "left": left,
            "people": people.iter().chain(self.totals.objections.keys()).collect::<Vec<_>>(),
            "unassigned": self.find_unassigned_tasks().iter().map(|(task, _)| task.id).collect::<Vec<_>>(),
            "blocked": self.find_blocked_tasks(),
            "held": self.find_held_tasks().iter().map(|task| task.id).collect::<Vec<_>>(),
            "lost": self.totals.lost.keys().collect::<Vec<_>>(),
            "paused": paused,
            "unchecked": self.totals.unchecked,
            "turns": self.totals.turns,
            "next": self.list_next_commands(),
        })
    }

    fn repeat_command(&self) -> String {
        let workers = self.args.workers.unwrap_or(1);
        format_run_command(&format!(" --workers {workers}"), self.args.agent.as_deref(), self.opened.trust)
    }
}

/// Returns the first lines, and the number of the others.
fn first_lines(count: usize, lines: impl Iterator<Item = String>, about_others: &str) -> Vec<String> {
    let others = count.saturating_sub(MAX_NAMED_TASKS);
    let others = (others > 0).then(|| format!("and {others} more{about_others}"));
    lines.take(MAX_NAMED_TASKS).chain(others).collect()
}

/// Formats the number of tasks, or their ids if there are few.
fn format_task_ids(done: &[TaskId]) -> String {
    match done.len() {
        0 => "nothing".to_owned(),
        many if many > MAX_NAMED_TASKS => format!("{many} tasks"),
        _ => {
            let mut done = done.to_vec();
            done.sort_unstable();
            done.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        }
    }
}

fn describe_left_task(task: &Task) -> String {
    task.reason.clone().unwrap_or_else(|| task.state.to_string())
}

fn describe_blocked_task(task: &Task) -> String {
    task.blocked.as_ref().map_or_else(|| "a person is asked".to_owned(), |blocked| blocked.reason.clone())
}

/// Prints lines behind a label: a short label each in a pipe, a small table on a terminal.
fn print_table_row(label: &str, tone: TextTone, lines: &[String], out: &mut Output) -> CommandResult {
    for (number, line) in lines.iter().enumerate() {
        let Some(columns) = out.columns() else {
            out.print_line(format_args!("{label}: {}", text::clean_line(line)))?;
            continue;
        };
        let room = columns.saturating_sub(TABLE_INDENT + 2).max(20);
        let rows = match tone {
            // The terminal wraps commands, so that they can be copied as a whole.
            TextTone::Name => vec![text::clean_line(line).into_owned()],
            _ => text::wrap_to_width(&text::fit_to_width(line, show::MAX_SHOWN_TEXT), room, room),
        };
        for (broken, row) in rows.iter().enumerate() {
            let label = text::pad_to_width(if number + broken == 0 { label } else { "" }, TABLE_INDENT);
            out.print_line(format_args!("  {}{}", out.paint(TextTone::Faint, label), out.paint(tone, row)))?;
        }
    }
    Ok(())
}
