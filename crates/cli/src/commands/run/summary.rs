//! The summary of a session: its results, the remaining work, and the next commands.
//!
//! A terminal gets a small table, a pipe a few lines. Programs read the events instead.

use std::path::Path;

use windlass_app::Failure;
use windlass_app::changes::{has_open_change, note_work_without_change};
use windlass_app::context::OpenedProject;
use windlass_app::next_step::{answer_gate_step, find_next_step};
use windlass_app::resume_command::{ResumeCommand, format_run_command, quote_typed_word};
use windlass_app::run::{AgentRestrictions, BASE_FILE, ChangedFilesQuery, RemainingTasks, SessionReport};
use windlass_app::unchecked_work::{count_completed_tasks, find_skipped_check};
use windlass_engine::{NextAction, Session, SessionEndKind, SessionName, TaskId, TaskState, WorkSource};
use windlass_process::RunControl;
use windlass_text as text;

use super::session_summary::{MAX_NAMED, SessionEndSummary, print_labelled_row};
use crate::output::{CommandResult, Output, TextTone};

/// The width from which on there is room for a table.
const MIN_TABLE_COLUMNS: usize = 40;
/// A session that has ended or was interrupted.
pub struct EndedSession<'a> {
    pub opened: &'a OpenedProject,
    pub name: &'a SessionName,
    pub report: SessionReport,
    pub control: &'a RunControl,
    /// `--agent`, if it was given.
    pub agent: Option<&'a str>,
    pub restrictions: AgentRestrictions<'a>,
}

impl EndedSession<'_> {
    pub fn show_summary(self, out: &mut Output) -> CommandResult {
        if out.is_json() {
            return Ok(());
        }
        if self.was_killed() {
            let session = self.opened.require_session(self.name)?;
            return self
                .list_next_commands(&session, None)?
                .iter()
                .try_for_each(|line| print_labelled_row("next:", line, out));
        }
        let summary = self.build_summary()?;
        if summary.session.next_action() == NextAction::Answer {
            let asked = out.paint(TextTone::Warning, "a person is asked").to_string();
            let iteration = summary.session.iteration;
            let why = summary.session.describe_block_state();
            out.print_line(format_args!("{asked} in iteration {iteration}: {}", text::clean_line(&why)))?;
        }
        // A task of this session comes before tasks that other sessions have left.
        let own = summary.session.escalated.first().copied().filter(|_| summary.remaining_tasks.is_some());
        let stuck = own.or_else(|| summary.remaining_tasks.as_ref().and_then(RemainingTasks::first_task_for_person));
        let mut next = self.list_next_commands(&summary.session, stuck)?;
        // A task that waits for a person comes before a completed one.
        let asked = stuck.or(summary.session.task.filter(|_| summary.session.work == WorkSource::Given));
        let open = summary.changes.first().copied().filter(|_| stuck.is_none());
        let ours = !self.was_killed() && self.find_lost_task(&summary.session).is_none();
        for id in [asked, open].into_iter().flatten().filter(|_| ours).take(1) {
            let task = self.opened.require_task(id)?;
            if task.state == TaskState::Completed && has_open_change(&task) {
                next.splice(..0, find_next_step(self.opened, id)?.map(|step| step.shell_line()));
            }
        }
        match out.columns().filter(|columns| *columns >= MIN_TABLE_COLUMNS) {
            Some(columns) => summary.show_table(&next, columns, out),
            None => summary.show_lines(&next, out),
        }
    }

    /// Returns whether everything was ended at once.
    fn was_killed(&self) -> bool {
        self.report.ending.is_none()
    }

    /// Returns the commands that a person types next.
    fn list_next_commands(&self, session: &Session, stuck: Option<TaskId>) -> Result<Vec<String>, Failure> {
        if let Some(task) = self.find_lost_task(session) {
            return Ok(vec![format!("windlass why {task}")]);
        }
        let why = format!("windlass why {}", session.name);
        let given = session.task.filter(|_| session.work == WorkSource::Given);
        let counted = session.iteration.saturating_sub(session.interrupted);
        Ok(match session.ending_kind() {
            None if self.was_killed() && session.stopping.is_some() => {
                vec![format!("{}  # ends the session; run it again to resume the work", self.repeat_command(session))]
            }
            _ if self.was_killed() => vec![format!("{}  # resumes it", self.repeat_command(session))],
            None if session.next_action() == NextAction::Answer => {
                vec![
                    answer_gate_step(self.opened, &session.name).shell_line_with_comment("or ignore-hook, reject"),
                    why,
                ]
            }
            None => vec![self.repeat_command(session)],
            Some(SessionEndKind::Completed) => match stuck {
                Some(task) => vec![self.next_command_for(task)?, format!("windlass why {task}")],
                None => vec![why],
            },
            Some(SessionEndKind::Limit) if counted >= session.terms.max_iterations => {
                vec![self.command_with_more_iterations(session, given)?, why]
            }
            // In a run over the graph, the last task need not be the one that waits.
            Some(SessionEndKind::Escalated) => match given.or(stuck) {
                Some(task) => vec![self.next_command_for(task)?, why],
                None => vec![why, self.repeat_command(session)],
            },
            Some(ending) => {
                let again =
                    given.map_or_else(|| Ok(self.repeat_command(session)), |task| self.next_command_for(task))?;
                if ending == SessionEndKind::Cancelled { vec![again] } else { vec![why, again] }
            }
        })
    }

    /// Returns the command that continues with a task.
    fn next_command_for(&self, task: TaskId) -> Result<String, Failure> {
        let step = find_next_step(self.opened, task)?;
        Ok(step.map_or_else(|| format!("windlass why {task}"), |step| step.shell_line()))
    }

    /// Returns the command for the same work with twice as many iterations, if the task can be claimed.
    fn command_with_more_iterations(&self, session: &Session, given: Option<TaskId>) -> Result<String, Failure> {
        let iterations = session.terms.max_iterations.saturating_mul(2);
        let again = match given {
            Some(task) if !self.opened.require_task(task)?.state.is_claimable() => return self.next_command_for(task),
            Some(task) => ResumeCommand::for_task(self.opened, task)?.command,
            None => self.repeat_command(session),
        };
        Ok(format!("{again} --max-iterations {iterations}"))
    }

    /// Returns the command that continues the session, or the work on the graph.
    fn repeat_command(&self, session: &Session) -> String {
        let what = match (session.work, &session.goal, session.task) {
            (WorkSource::Given, Some(goal), _) => {
                format!(" {}", quote_typed_word(goal).unwrap_or_else(|| "GOAL".to_owned()))
            }
            (WorkSource::Given, None, Some(task)) => format!(" --task {task}"),
            (WorkSource::Graph, ..) | (WorkSource::Given, None, None) => String::new(),
        };
        format_run_command(&what, self.agent, self.opened.trust)
    }

    /// Returns the task that was taken away from the session, and that the session could not continue.
    fn find_lost_task(&self, session: &Session) -> Option<TaskId> {
        if let Some(lost) = session.lost_tasks.first() {
            return Some(lost.task);
        }
        let given = session.work == WorkSource::Given && session.ending_kind() == Some(SessionEndKind::Cancelled);
        let task = self.opened.require_task(session.task.filter(|_| given)?).ok()?;
        (!task.state.is_claimable()).then_some(task.id)
    }

    fn build_summary(&self) -> Result<SessionEndSummary, Failure> {
        let records = self.opened.project.record_directory().join(self.name.as_str());
        let session = self.opened.require_session(self.name)?;
        let left =
            (session.work == WorkSource::Graph).then(|| RemainingTasks::find_remaining(self.opened)).transpose()?;
        let left = left.map(|left| left.explain_for_agent(self.restrictions, &session.agent));
        let git = ChangedFilesQuery {
            project: &self.opened.project,
            owner_lock: &self.report.owner_lock,
            control: self.control,
        };
        // Work in worktrees is on its branches and changes no file here.
        let changed = if session.workspace_mode.is_in_place() { git.find_changed_files(&records) } else { Ok(None) };
        let shown = records.strip_prefix(&self.opened.project.root).unwrap_or(&records).to_owned();
        let records = has_spilled_output(&records).then_some(shown);
        let changes = self.find_open_changes(&session)?;
        let undelivered = match session.task.map(|id| self.opened.require_task(id)).transpose()? {
            Some(task) if task.state != TaskState::Completed => task.undelivered_feedback.len(),
            _ => 0,
        };
        let skipped_check = find_skipped_check(&self.opened.store, &session)?;
        let completed_tasks = count_completed_tasks(&self.opened.store, &session)?;
        let completed = self.report.tally.completed.iter().filter_map(|id| id.parse().ok());
        let without_change = note_work_without_change(self.opened, completed);
        let tally = self.report.tally.clone();
        Ok(SessionEndSummary {
            session,
            tally,
            changed,
            remaining_tasks: left,
            records,
            changes,
            skipped_check,
            completed_tasks,
            without_change,
            undelivered_feedback: undelivered,
        })
    }

    /// Finds the open changes of this session's tasks.
    fn find_open_changes(&self, session: &Session) -> Result<Vec<TaskId>, Failure> {
        let completed = self.report.tally.completed.iter().filter_map(|id| id.parse::<TaskId>().ok());
        let mut open: Vec<TaskId> = Vec::new();
        for id in completed.chain(session.task).take(MAX_NAMED) {
            if has_open_change(&self.opened.require_task(id)?) && !open.contains(&id) {
                open.push(id);
            }
        }
        Ok(open)
    }
}

/// Returns whether an output was too long for the log and is in a file.
fn has_spilled_output(records: &Path) -> bool {
    std::fs::read_dir(records).is_ok_and(|found| found.flatten().any(|entry| entry.file_name() != BASE_FILE))
}
