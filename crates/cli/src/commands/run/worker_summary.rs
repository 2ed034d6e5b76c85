//! The summary of a run with several workers: the results, the remaining work with reasons, and the next commands.

use std::time::Duration;

use serde_json::{Value, json};
use windlass_app::changes::{has_open_change, note_work_without_change};
use windlass_app::context::{Opened, visit_tasks};
use windlass_app::next_step::next_step;
use windlass_app::resume_command::run_command;
use windlass_app::run::workers::{AgentAssignment, RunTotals};
use windlass_app::run::{held_in_words, is_left};
use windlass_app::unchecked_work::describe_unchecked_work;
use windlass_engine::{State, Task, TaskId};
use windlass_text as text;

use super::Args;
use crate::output::{Done, Output, Tone};
use crate::show;

/// The largest number of tasks that are named.
const NAMED: usize = 8;
/// The column in which the second column of the table begins.
const INDENT: usize = 13;

/// The summary of a run with several workers.
pub struct WorkerSummary<'a> {
    pub opened: &'a Opened,
    pub totals: &'a RunTotals,
    pub took: Duration,
    pub args: &'a Args,
    pub assignment: &'a AgentAssignment<'a>,
}

impl WorkerSummary<'_> {
    pub fn show(&self, out: &mut Output) -> Done {
        let RunTotals { done, left, people, paused, .. } = self.totals;
        if out.columns().is_some() {
            out.line("")?;
        }
        row("done", Tone::Good, &[tasks(done)], out)?;
        row("left", Tone::Warning, &self.each(left.iter(), why_left), out)?;
        row("left", Tone::Warning, &self.unassigned(), out)?;
        row("left", Tone::Warning, &self.held_lines(), out)?;
        row("left", Tone::Warning, &self.each(self.still_blocked().iter(), why_blocked), out)?;
        row("taken away", Tone::Warning, &self.lost(), out)?;
        row("for a person", Tone::Warning, &self.each(people.iter(), why_blocked), out)?;
        row("for a person", Tone::Warning, &self.objections(), out)?;
        let paused =
            paused.as_ref().map(|why| format!("twice in a row a task could not be worked on or judged: {why}"));
        row("paused", Tone::Bad, &paused.into_iter().collect::<Vec<_>>(), out)?;
        row("took", Tone::Plain, &[self.time()], out)?;
        let used = self.totals.used;
        row("used", Tone::Plain, &if used.is_nothing() { vec![] } else { vec![used.to_string()] }, out)?;
        let unchecked = describe_unchecked_work(
            self.totals.unchecked,
            self.totals.done.len(),
            self.totals.skipped_check.as_deref(),
        );
        row("note", Tone::Warning, &Vec::from_iter(unchecked), out)?;
        let unopened = note_work_without_change(self.opened, self.totals.done.iter().copied());
        row("note", Tone::Warning, &unopened, out)?;
        row("next", Tone::Name, &self.next(), out)
    }

    /// Describes the first tasks with a reason each.
    fn each<'t>(&self, ids: impl ExactSizeIterator<Item = &'t TaskId>, why: fn(&Task) -> String) -> Vec<String> {
        let one = |id: &TaskId| match self.opened.task(*id) {
            Ok(task) => format!("{id}  {}: {}", text::fit(&task.goal, 60), why(&task)),
            Err(_) => id.to_string(),
        };
        first_lines(ids.len(), ids.map(one), "; `windlass task list` shows them")
    }

    /// Finds ready tasks that no agent of this run may take, with the reason.
    fn unassigned_tasks(&self) -> Vec<(Task, String)> {
        let is_free = |task: &Task| task.lease.is_none() && !self.totals.left.contains(&task.id);
        self.tasks_in(&[State::Ready, State::NeedsContinuation], |task| {
            let why = if is_free(&task) { self.assignment.why_not(self.opened, &task) } else { None };
            why.map(|why| (task, why))
        })
    }

    /// Selects tasks in these states with `pick`. An unreadable task is left out: the command that needs it reports the error.
    fn tasks_in<T>(&self, states: &[State], pick: impl Fn(Task) -> Option<T>) -> Vec<T> {
        let mut found = Vec::new();
        let _ = visit_tasks(&self.opened.store, states, |task| {
            found.extend(pick(task));
            true
        });
        found
    }

    fn unassigned(&self) -> Vec<String> {
        let unassigned_tasks = self.unassigned_tasks();
        let one = |(task, why): &(Task, String)| format!("{}  {}: {why}", task.id, text::fit(&task.goal, 60));
        first_lines(unassigned_tasks.len(), unassigned_tasks.iter().map(one), " that this run may not take")
    }

    /// Finds tasks whose sessions do not continue by themselves, except those that a person is asked about.
    fn held(&self) -> Vec<Task> {
        let mut held = self.tasks_in(&[State::Active, State::Submitted], Some);
        held.retain(|task| !self.totals.people.contains(&task.id) && is_left(self.opened, task).unwrap_or(false));
        held
    }

    /// Finds tasks that an earlier run has left to a person, and that are still blocked.
    fn still_blocked(&self) -> Vec<TaskId> {
        let is_known = |id: &TaskId| self.totals.people.contains(id) || self.totals.left.contains(id);
        self.tasks_in(&[State::Blocked], |task| Some(task.id).filter(|id| !is_known(id)))
    }

    fn held_lines(&self) -> Vec<String> {
        let held = self.held();
        let one = |task: &Task| {
            let lease = task.lease.as_ref().map(|lease| held_in_words(self.opened, task, lease));
            let why = lease.and_then(Result::ok).unwrap_or_else(|| task.state.to_string());
            format!("{}  {}: {why}", task.id, text::fit(&task.goal, 60))
        };
        first_lines(held.len(), held.iter().map(one), " that sessions hold; `windlass status` shows them")
    }

    /// Lists the tasks that were taken from this run, with the takers.
    fn lost(&self) -> Vec<String> {
        first_lines(self.totals.lost.len(), self.totals.lost.values().cloned(), "")
    }

    /// Lists the completed tasks for which a hook asks for a person, with its reason.
    fn objections(&self) -> Vec<String> {
        let one = |(id, why): (&TaskId, &String)| match self.opened.task(*id) {
            Ok(task) => format!("{id}  {}: {why}", text::fit(&task.goal, 60)),
            Err(_) => format!("{id}  {why}"),
        };
        let objections = &self.totals.objections;
        first_lines(objections.len(), objections.iter().map(one), " that are completed; the lines above tell why")
    }

    fn time(&self) -> String {
        let took = show::millis(u64::try_from(self.took.as_millis()).unwrap_or(u64::MAX));
        let turns = match self.totals.turns {
            1 => "one turn".to_owned(),
            many => format!("{many} turns"),
        };
        format!("{took}, {turns}")
    }

    fn next(&self) -> Vec<String> {
        let RunTotals { left, people, paused, killed, .. } = self.totals;
        let answer = people.iter().take(NAMED).map(|id| self.advice(*id));
        let objections = self.totals.objections.keys().take(NAMED).map(|id| format!("windlass why {id}"));
        let open = self.open_change();
        let again = (!left.is_empty() || paused.is_some() || *killed).then(|| match paused {
            Some(_) => format!("{}  # when that is mended; no task has lost anything", self.again()),
            None => self.again(),
        });
        let lost = self.totals.lost.keys().next().map(|id| format!("windlass why {id}"));
        let held = self.held().into_iter().take(1);
        let held = held.filter_map(|task| next_step(self.opened, task.id).ok()?).map(|step| step.line());
        let blocked = self.still_blocked();
        let blocked = blocked.iter().take(1).map(|id| self.advice(*id));
        answer.chain(objections).chain(again).chain(open).chain(held).chain(blocked).chain(lost).collect()
    }

    /// Returns the command for a task that waits for a person.
    fn advice(&self, id: TaskId) -> String {
        let why = format!("windlass why {id}");
        match next_step(self.opened, id).ok().flatten().map(|step| step.line()) {
            Some(step) if step.contains('#') => step,
            Some(step) => format!("{step}  # or: {why}"),
            None => why,
        }
    }

    /// Returns the command for the first open change of a completed task.
    fn open_change(&self) -> Option<String> {
        let mut done: Vec<TaskId> = self.totals.done.clone();
        done.sort_unstable();
        let is_open = |id: &TaskId| self.opened.task(*id).is_ok_and(|task| has_open_change(&task));
        let first = done.into_iter().find(is_open)?;
        next_step(self.opened, first).ok()?.map(|step| step.line())
    }

    /// Returns the summary for programs. It follows the last event.
    pub fn to_json(&self) -> Value {
        let RunTotals { done, left, people, paused, .. } = self.totals;
        json!({
            "type": "run_summary",
            "done": done,
            "left": left,
            "people": people.iter().chain(self.totals.objections.keys()).collect::<Vec<_>>(),
            "unassigned": self.unassigned_tasks().iter().map(|(task, _)| task.id).collect::<Vec<_>>(),
            "blocked": self.still_blocked(),
            "held": self.held().iter().map(|task| task.id).collect::<Vec<_>>(),
            "lost": self.totals.lost.keys().collect::<Vec<_>>(),
            "paused": paused,
            "unchecked": self.totals.unchecked,
            "turns": self.totals.turns,
            "next": self.next(),
        })
    }

    fn again(&self) -> String {
        let workers = self.args.workers.unwrap_or(1);
        run_command(&format!(" --workers {workers}"), self.args.agent.as_deref(), self.opened.trust)
    }
}

/// Returns the first lines, and the number of the others.
fn first_lines(count: usize, lines: impl Iterator<Item = String>, about_others: &str) -> Vec<String> {
    let others = count.saturating_sub(NAMED);
    let others = (others > 0).then(|| format!("and {others} more{about_others}"));
    lines.take(NAMED).chain(others).collect()
}

/// Formats the number of tasks, or their ids if there are few.
fn tasks(done: &[TaskId]) -> String {
    match done.len() {
        0 => "nothing".to_owned(),
        many if many > NAMED => format!("{many} tasks"),
        _ => {
            let mut done = done.to_vec();
            done.sort_unstable();
            done.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        }
    }
}

fn why_left(task: &Task) -> String {
    task.reason.clone().unwrap_or_else(|| task.state.to_string())
}

fn why_blocked(task: &Task) -> String {
    task.blocked.as_ref().map_or_else(|| "a person is asked".to_owned(), |blocked| blocked.reason.clone())
}

/// Prints lines behind a label: a short label each in a pipe, a small table on a terminal.
fn row(label: &str, tone: Tone, lines: &[String], out: &mut Output) -> Done {
    for (number, line) in lines.iter().enumerate() {
        let Some(columns) = out.columns() else {
            out.line(format_args!("{label}: {}", text::line(line)))?;
            continue;
        };
        let room = columns.saturating_sub(INDENT + 2).max(20);
        let rows = match tone {
            // The terminal wraps commands, so that they can be copied as a whole.
            Tone::Name => vec![text::line(line).into_owned()],
            _ => text::wrap(&text::fit(line, show::LONG), room, room),
        };
        for (broken, row) in rows.iter().enumerate() {
            let label = text::pad(if number + broken == 0 { label } else { "" }, INDENT);
            out.line(format_args!("  {}{}", out.paint(Tone::Faint, label), out.paint(tone, row)))?;
        }
    }
    Ok(())
}
