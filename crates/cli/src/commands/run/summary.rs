//! The summary of a session: its results, the remaining work, and the next commands.
//!
//! A terminal gets a small table, a pipe a few lines. Programs read the events instead.

use std::path::Path;

use windlass_app::Failure;
use windlass_app::changes::{has_open_change, note_work_without_change};
use windlass_app::context::Opened;
use windlass_app::next_step::{answer_gate, next_step};
use windlass_app::resume_command::{ResumeCommand, quoted, run_command};
use windlass_app::run::{AgentRestrictions, BASE_FILE, ChangedFilesQuery, RemainingTasks, SessionReport};
use windlass_app::unchecked_work::{count_completed_tasks, find_skipped_check};
use windlass_engine::{Ending, Session, SessionName, State, TaskId, Wanted, Work};
use windlass_process::Control;
use windlass_text as text;

use super::session_summary::{MAX_NAMED, SessionSummary, show_row};
use crate::output::{Done, Output, Tone};

/// The width from which on there is room for a table.
const WIDE: usize = 40;
/// A session that has ended or was interrupted.
pub struct EndedSession<'a> {
    pub opened: &'a Opened,
    pub name: &'a SessionName,
    pub report: SessionReport,
    pub control: &'a Control,
    /// `--agent`, if it was given.
    pub agent: Option<&'a str>,
    pub restrictions: AgentRestrictions<'a>,
}

impl EndedSession<'_> {
    pub fn show(self, out: &mut Output) -> Done {
        if out.is_json() {
            return Ok(());
        }
        if self.was_killed() {
            let session = self.opened.session(self.name)?;
            return self.next(&session, None)?.iter().try_for_each(|line| show_row("next:", line, out));
        }
        let summary = self.summary()?;
        if summary.session.wanted() == Wanted::Answer {
            let asked = out.paint(Tone::Warning, "a person is asked").to_string();
            let iteration = summary.session.iteration;
            let why = summary.session.still_blocked();
            out.line(format_args!("{asked} in iteration {iteration}: {}", text::line(&why)))?;
        }
        // A task of this session comes before tasks that other sessions have left.
        let own = summary.session.escalated.first().copied().filter(|_| summary.left.is_some());
        let stuck = own.or_else(|| summary.left.as_ref().and_then(RemainingTasks::first_for_person));
        let mut next = self.next(&summary.session, stuck)?;
        // A task that waits for a person comes before a completed one.
        let asked = stuck.or(summary.session.task.filter(|_| summary.session.work == Work::Given));
        let open = summary.changes.first().copied().filter(|_| stuck.is_none());
        let ours = !self.was_killed() && self.taken_away(&summary.session).is_none();
        for id in [asked, open].into_iter().flatten().filter(|_| ours).take(1) {
            let task = self.opened.task(id)?;
            if task.state == State::Completed && has_open_change(&task) {
                next.splice(..0, next_step(self.opened, id)?.map(|step| step.line()));
            }
        }
        match out.columns().filter(|columns| *columns >= WIDE) {
            Some(columns) => summary.show_table(&next, columns, out),
            None => summary.show_lines(&next, out),
        }
    }

    /// Returns whether everything was ended at once.
    fn was_killed(&self) -> bool {
        self.report.ending.is_none()
    }

    /// Returns the commands that a person types next.
    fn next(&self, session: &Session, stuck: Option<TaskId>) -> Result<Vec<String>, Failure> {
        if let Some(task) = self.taken_away(session) {
            return Ok(vec![format!("windlass why {task}")]);
        }
        let why = format!("windlass why {}", session.name);
        let given = session.task.filter(|_| session.work == Work::Given);
        let counted = session.iteration.saturating_sub(session.interrupted);
        Ok(match session.ended() {
            None if self.was_killed() && session.stopping.is_some() => {
                vec![format!("{}  # ends it in order; once more goes on with its work", self.same(session))]
            }
            _ if self.was_killed() => vec![format!("{}  # goes on with it", self.same(session))],
            None if session.wanted() == Wanted::Answer => {
                vec![answer_gate(self.opened, &session.name).line_with("or ignore-hook, reject"), why]
            }
            None => vec![self.same(session)],
            Some(Ending::Completed) => match stuck {
                Some(task) => vec![self.step(task)?, format!("windlass why {task}")],
                None => vec![why],
            },
            Some(Ending::Limit) if counted >= session.terms.max_iterations => {
                vec![self.with_more_iterations(session, given)?, why]
            }
            // In a run over the graph, the last task need not be the one that waits.
            Some(Ending::Escalated) => match given.or(stuck) {
                Some(task) => vec![self.step(task)?, why],
                None => vec![why, self.same(session)],
            },
            Some(ending) => {
                let again = given.map_or_else(|| Ok(self.same(session)), |task| self.step(task))?;
                if ending == Ending::Cancelled { vec![again] } else { vec![why, again] }
            }
        })
    }

    /// Returns the command that continues with a task.
    fn step(&self, task: TaskId) -> Result<String, Failure> {
        let step = next_step(self.opened, task)?;
        Ok(step.map_or_else(|| format!("windlass why {task}"), |step| step.line()))
    }

    /// Returns the command for the same work with twice as many iterations, if the task can be claimed.
    fn with_more_iterations(&self, session: &Session, given: Option<TaskId>) -> Result<String, Failure> {
        let iterations = session.terms.max_iterations.saturating_mul(2);
        let again = match given {
            Some(task) if !self.opened.task(task)?.state.is_claimable() => return self.step(task),
            Some(task) => ResumeCommand::for_task(self.opened, task)?.command,
            None => self.same(session),
        };
        Ok(format!("{again} --max-iterations {iterations}"))
    }

    /// Returns the command that continues the session, or the work on the graph.
    fn same(&self, session: &Session) -> String {
        let what = match (session.work, &session.goal, session.task) {
            (Work::Given, Some(goal), _) => format!(" {}", quoted(goal).unwrap_or_else(|| "GOAL".to_owned())),
            (Work::Given, None, Some(task)) => format!(" --task {task}"),
            (Work::Graph, ..) | (Work::Given, None, None) => String::new(),
        };
        run_command(&what, self.agent, self.opened.trust)
    }

    /// Returns the task that was taken away from the session, and that the session could not continue.
    fn taken_away(&self, session: &Session) -> Option<TaskId> {
        if let Some(lost) = session.lost.first() {
            return Some(lost.task);
        }
        let given = session.work == Work::Given && session.ended() == Some(Ending::Cancelled);
        let task = self.opened.task(session.task.filter(|_| given)?).ok()?;
        (!task.state.is_claimable()).then_some(task.id)
    }

    fn summary(&self) -> Result<SessionSummary, Failure> {
        let records = self.opened.project.records().join(self.name.as_str());
        let session = self.opened.session(self.name)?;
        let left = (session.work == Work::Graph).then(|| RemainingTasks::find(self.opened)).transpose()?;
        let left = left.map(|left| left.explained_for(self.restrictions, &session.agent));
        let git =
            ChangedFilesQuery { project: &self.opened.project, roster: &self.report.roster, control: self.control };
        // Work in worktrees is on its branches and changes no file here.
        let changed = if session.grounds.is_in_place() { git.run(&records) } else { Ok(None) };
        let shown = records.strip_prefix(&self.opened.project.root).unwrap_or(&records).to_owned();
        let records = has_output(&records).then_some(shown);
        let changes = self.changes(&session)?;
        let unheard = match session.task.map(|id| self.opened.task(id)).transpose()? {
            Some(task) if task.state != State::Completed => task.unheard.len(),
            _ => 0,
        };
        let skipped_check = find_skipped_check(&self.opened.store, &session)?;
        let completed_tasks = count_completed_tasks(&self.opened.store, &session)?;
        let completed = self.report.tally.completed.iter().filter_map(|id| id.parse().ok());
        let without_change = note_work_without_change(self.opened, completed);
        let tally = self.report.tally.clone();
        Ok(SessionSummary {
            session,
            tally,
            changed,
            left,
            records,
            changes,
            skipped_check,
            completed_tasks,
            without_change,
            unheard,
        })
    }

    /// Finds the open changes of this session's tasks.
    fn changes(&self, session: &Session) -> Result<Vec<TaskId>, Failure> {
        let completed = self.report.tally.completed.iter().filter_map(|id| id.parse::<TaskId>().ok());
        let mut open: Vec<TaskId> = Vec::new();
        for id in completed.chain(session.task).take(MAX_NAMED) {
            if has_open_change(&self.opened.task(id)?) && !open.contains(&id) {
                open.push(id);
            }
        }
        Ok(open)
    }
}

/// Returns whether an output was too long for the log and is in a file.
fn has_output(records: &Path) -> bool {
    std::fs::read_dir(records).is_ok_and(|found| found.flatten().any(|entry| entry.file_name() != BASE_FILE))
}
