//! What a session came to, in the end: what was done, what is left, and what to type next.
//!
//! On a terminal a small table; in a pipe the same in few lines. Programs have the events.

use std::path::{Path, PathBuf};
use std::time::Duration;

use windlass_app::Failure;
use windlass_app::changes::{has_open_change, note_work_without_change};
use windlass_app::context::Opened;
use windlass_app::next_step::{answer_gate, next_step};
use windlass_app::resume_command::{ResumeCommand, quoted, run_command};
use windlass_app::run::{
    AgentRestrictions, BASE_FILE, ChangedFiles, ChangedFilesQuery, RemainingTasks, SessionReport, SessionTally,
};
use windlass_app::unchecked_work::{count_completed_tasks, describe_unchecked_work, find_skipped_check};
use windlass_engine::{Ending, Session, SessionName, State, TaskId, Wanted, Work};
use windlass_process::Control;
use windlass_text as text;

use crate::output::{Done, Output, Tone};
use crate::show;

/// So many files, hooks and tasks are named.
const NAMED: usize = 8;
/// A table has room from so many columns on.
const WIDE: usize = 40;
/// Where the words of a table begin.
const INDENT: usize = 13;

/// A session that is over, or was left.
pub struct EndedSession<'a> {
    pub opened: &'a Opened,
    pub name: &'a SessionName,
    pub report: SessionReport,
    pub control: &'a Control,
    /// `--agent`, if it was given.
    pub agent: Option<&'a str>,
    pub restrictions: AgentRestrictions<'a>,
}

/// What there is to say, without a word about how.
struct Summary {
    session: Session,
    tally: SessionTally,
    changed: Result<Option<ChangedFiles>, String>,
    /// Of the graph, where the session works on it.
    left: Option<RemainingTasks>,
    records: Option<PathBuf>,
    /// The changes of tasks that were completed, or that wait for a person.
    changes: Vec<TaskId>,
    /// A check that was skipped, where nothing checked the work.
    skipped_check: Option<String>,
    /// How many tasks it has completed, where nothing checked the work on some of them.
    completed_tasks: usize,
    /// That work of completed tasks is in no change.
    without_change: Vec<String>,
    /// How many pieces of feedback wait for the next session of its task.
    unheard: usize,
}

impl EndedSession<'_> {
    pub fn show(self, out: &mut Output) -> Done {
        if out.is_json() {
            return Ok(());
        }
        if self.was_killed() {
            let session = self.opened.session(self.name)?;
            return self.next(&session, None)?.iter().try_for_each(|line| short("next:", line, out));
        }
        let summary = self.summary()?;
        if summary.session.wanted() == Wanted::Answer {
            let asked = out.paint(Tone::Warning, "a person is asked").to_string();
            let iteration = summary.session.iteration;
            let why = summary.session.still_blocked();
            out.line(format_args!("{asked} in iteration {iteration}: {}", text::line(&why)))?;
        }
        // One of this session comes before what others have left.
        let own = summary.session.escalated.first().copied().filter(|_| summary.left.is_some());
        let stuck = own.or_else(|| summary.left.as_ref().and_then(RemainingTasks::first_for_person));
        let mut next = self.next(&summary.session, stuck)?;
        // What was left to a person comes before what was completed.
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
            Some(columns) => summary.table(&next, columns, out),
            None => summary.lines(&next, out),
        }
    }

    /// Returns whether everything was ended at once.
    fn was_killed(&self) -> bool {
        self.report.ending.is_none()
    }

    /// Returns what a person types next.
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
            // Of the graph the last task need not be the one that waits.
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

    /// What leads on with a task.
    fn step(&self, task: TaskId) -> Result<String, Failure> {
        let step = next_step(self.opened, task)?;
        Ok(step.map_or_else(|| format!("windlass why {task}"), |step| step.line()))
    }

    /// The same work with twice as many iterations, where the task may be taken.
    fn with_more_iterations(&self, session: &Session, given: Option<TaskId>) -> Result<String, Failure> {
        let iterations = session.terms.max_iterations.saturating_mul(2);
        let again = match given {
            Some(task) if !self.opened.task(task)?.state.is_claimable() => return self.step(task),
            Some(task) => ResumeCommand::for_task(self.opened, task)?.command,
            None => self.same(session),
        };
        Ok(format!("{again} --max-iterations {iterations}"))
    }

    /// The command that goes on with a session that has not ended, or with the graph.
    fn same(&self, session: &Session) -> String {
        let what = match (session.work, &session.goal, session.task) {
            (Work::Given, Some(goal), _) => format!(" {}", quoted(goal).unwrap_or_else(|| "GOAL".to_owned())),
            (Work::Given, None, Some(task)) => format!(" --task {task}"),
            (Work::Graph, ..) | (Work::Given, None, None) => String::new(),
        };
        run_command(&what, self.agent, self.opened.trust)
    }

    /// The task that was taken away from a session, and that it could not go on with.
    fn taken_away(&self, session: &Session) -> Option<TaskId> {
        if let Some(lost) = session.lost.first() {
            return Some(lost.task);
        }
        let given = session.work == Work::Given && session.ended() == Some(Ending::Cancelled);
        let task = self.opened.task(session.task.filter(|_| given)?).ok()?;
        (!task.state.is_claimable()).then_some(task.id)
    }

    fn summary(&self) -> Result<Summary, Failure> {
        let records = self.opened.project.records().join(self.name.as_str());
        let session = self.opened.session(self.name)?;
        let left = (session.work == Work::Graph).then(|| RemainingTasks::find(self.opened)).transpose()?;
        let left = left.map(|left| left.explained_for(self.restrictions, &session.agent));
        let git =
            ChangedFilesQuery { project: &self.opened.project, roster: &self.report.roster, control: self.control };
        // Work in worktrees changes nothing here: it is on its branches.
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
        Ok(Summary {
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

    /// Open changes that this session has to do with.
    fn changes(&self, session: &Session) -> Result<Vec<TaskId>, Failure> {
        let completed = self.report.tally.completed.iter().filter_map(|id| id.parse::<TaskId>().ok());
        let mut open: Vec<TaskId> = Vec::new();
        for id in completed.chain(session.task).take(NAMED) {
            if has_open_change(&self.opened.task(id)?) && !open.contains(&id) {
                open.push(id);
            }
        }
        Ok(open)
    }
}

impl Summary {
    /// In a pipe: only what the lines above have not said.
    fn lines(&self, next: &[String], out: &mut Output) -> Done {
        short("took", &self.time(), out)?;
        self.used().iter().try_for_each(|used| short("used", used, out))?;
        if let Ok(Some(changed)) = &self.changed
            && !changed.files.is_empty()
        {
            short("changed", &sum(changed), out)?;
        }
        self.notes().iter().try_for_each(|line| short("note:", line, out))?;
        self.left().iter().try_for_each(|line| short("left:", line, out))?;
        if self.session.ended() != Some(Ending::Completed)
            || self.left.as_ref().is_some_and(|left| left.first_for_person().is_some())
            || !self.changes.is_empty()
        {
            next.first().map_or(Ok(()), |line| short("next:", line, out))?;
        }
        Ok(())
    }

    fn table(&self, next: &[String], columns: usize, out: &mut Output) -> Done {
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
                // The terminal breaks what is to be typed, so that it can be copied as a whole.
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

    /// Tokens and money, where the agent has told of any.
    fn used(&self) -> Vec<String> {
        let used = self.session.watch.used;
        if used.is_nothing() { vec![] } else { vec![used.to_string()] }
    }

    /// That nothing checked the work, and what of it is in no change.
    fn notes(&self) -> Vec<String> {
        let skipped = self.skipped_check.as_deref();
        let unchecked = describe_unchecked_work(self.session.unchecked, self.completed_tasks, skipped);
        unchecked.into_iter().chain(self.without_change.iter().cloned()).collect()
    }

    fn blocked(&self) -> Vec<String> {
        let times = |count: u32| if count == 1 { "once".to_owned() } else { format!("{count} times") };
        self.tally.blocked.iter().map(|(hook, count)| format!("{hook} {}", times(*count))).take(NAMED).collect()
    }

    fn changes(&self) -> Vec<String> {
        let changed = match &self.changed {
            Ok(Some(changed)) if !changed.files.is_empty() => changed,
            Ok(Some(_)) => return vec!["no files".to_owned()],
            Ok(None) => return vec![],
            Err(why) => return vec![format!("not known: {why}")],
        };
        let named = changed.files.iter().take(NAMED).map(|file| text::line(file).into_owned());
        let more = changed.files.len().saturating_sub(NAMED);
        let more = (more > 0).then(|| format!("and {more} more"));
        std::iter::once(sum(changed)).chain(named).chain(more).collect()
    }

    fn completed(&self) -> Vec<String> {
        let completed = &self.tally.completed;
        match completed.len() {
            0 => vec![],
            many if many > NAMED => vec![format!("{many} tasks")],
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

/// Whether something was too long for memory.
fn has_output(records: &Path) -> bool {
    std::fs::read_dir(records).is_ok_and(|found| found.flatten().any(|entry| entry.file_name() != BASE_FILE))
}

fn sum(changed: &ChangedFiles) -> String {
    let more = if changed.cut { "at least " } else { "" };
    let files = match changed.files.len() {
        1 => "one file".to_owned(),
        many => format!("{many} files"),
    };
    format!("{more}{files}")
}

/// One line of a pipe.
fn short(label: &str, line: &str, out: &mut Output) -> Done {
    out.line(format_args!("  {label} {}", text::line(line)))
}
