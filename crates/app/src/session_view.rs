//! The view of a session: its state, what it waits for, and the next commands.

use windlass_engine::{EffectKind, NextAction, Session, SessionEndKind, StateView, TaskId, TaskState, TurnPurpose};
use windlass_process::MachineTag;
use windlass_store::StoreSnapshot;

use crate::context::OpenedProject;
use crate::next_step::{answer_gate_step, find_next_step};
use crate::resume_command::ResumeCommand;
use crate::typed_step::NextStep;
use crate::{Failure, hints, time_format};

/// How many tasks are named.
const MAX_NAMED_TASKS: usize = 8;

/// A session, and whether a living process runs it.
pub struct SessionView {
    pub session: Session,
    pub alive: bool,
    /// In a fleet, the name of the machine that runs the session, or has run it.
    pub machine: Option<String>,
    /// Whether that is another machine.
    pub is_elsewhere: bool,
}

impl SessionView {
    pub fn from_session(opened: &OpenedProject, session: Session) -> Self {
        let alive = opened.is_session_running(&session);
        let owner = session.owner.as_str();
        let machine = MachineTag::find_in_owner_name(owner).map(|tag| tag.name().to_owned());
        let is_elsewhere = opened.project.other_machine(owner).is_some();
        Self { session, alive, machine, is_elsewhere }
    }

    /// Returns where the session runs, in words that follow its state; empty outside a fleet.
    pub fn describe_machine(&self) -> String {
        self.machine.as_ref().map(|machine| format!(" on {machine}")).unwrap_or_default()
    }

    /// Returns the state as a word for programs. A session that has ended is still running while its last hooks run.
    pub fn state_name(&self) -> &'static str {
        match (self.session.is_over(), self.alive) {
            (true, _) => "ended",
            (false, true) => "running",
            (false, false) => "unfinished",
        }
    }

    /// Returns whether no process runs an open session that needs one. A session that asks a person needs none until the answer.
    pub fn is_deserted(&self) -> bool {
        !self.alive && !self.session.is_over() && self.session.next_action() != NextAction::Answer
    }

    /// Describes a session that no process runs, and what its resume command does. It does not say why: a process that died and one
    /// that ended with a question leave the same record.
    pub fn describe_desertion(&self) -> Option<&'static str> {
        self.is_deserted().then_some(match (&self.session.stopping, self.session.ending_kind()) {
            (_, Some(_)) => "It has ended, but its last hooks have not run; this runs them",
            (Some(_), None) => "It was cancelled, but no process runs it; this ends it",
            (None, None) => "No process runs it; this continues it",
        })
    }

    /// Returns the command that goes on with a session that no process runs.
    pub fn find_resume_command(&self, opened: &OpenedProject) -> Result<Option<String>, Failure> {
        let steps = if self.is_deserted() { self.list_next_steps(opened)? } else { Vec::new() };
        Ok(steps.first().map(NextStep::shell_line))
    }

    /// Returns what the session waits for.
    pub fn describe_awaited(&self, snapshot: &StoreSnapshot<'_>) -> Result<Option<String>, Failure> {
        let session = &self.session;
        Ok(match session.next_action() {
            NextAction::Nothing => None,
            NextAction::Workspace => Some("a worktree for its task".to_owned()),
            NextAction::Work => Some("its work to be committed, so that it can be submitted".to_owned()),
            NextAction::Decision => Some("its process to resume".to_owned()),
            NextAction::Answer => Some("a person: stop hooks block, and may not send the agent back again".to_owned()),
            NextAction::WaitUntil(until) if !session.is_rate_limited() => {
                Some(format!("the next try after a failure, at {}", time_format::format_local_time(until)))
            }
            NextAction::WaitUntil(until) => {
                Some(format!("the agent's rate limit to end, at {}", time_format::format_local_time(until)))
            }
            NextAction::Turn(_) if session.current_turn().is_some_and(|turn| turn.purpose == TurnPurpose::Delivery) => {
                Some("the agent (feedback pending)".to_owned())
            }
            NextAction::Turn(_) if self.alive => Some("the agent (turn in progress)".to_owned()),
            NextAction::Turn(_) => Some("the agent (turn interrupted)".to_owned()),
            NextAction::Hook(effect) => {
                let owed = snapshot.find_effect(effect).map_err(hints::view_failure)?;
                Some(match owed.map(|owed| owed.kind) {
                    Some(EffectKind::Hook(hook)) => format!("the hook {} at {}", hook.hook, hook.point),
                    _ => "a hook".to_owned(),
                })
            }
        })
    }

    /// Returns the next commands for a person, in the present state of the session's task.
    pub fn list_next_steps(&self, opened: &OpenedProject) -> Result<Vec<NextStep>, Failure> {
        let name = &self.session.name;
        if self.session.next_action() == NextAction::Answer {
            return Ok(vec![answer_gate_step(opened, name)]);
        }
        if !self.session.is_over() && self.alive {
            // The output of an agent stays on its machine.
            let watch = NextStep::new(format!("windlass session logs {name} --follow"), "watch it");
            let steps = (!self.is_elsewhere).then_some(watch);
            return Ok(steps
                .into_iter()
                .chain([
                    NextStep::new(format!("windlass say \"…\" --session {name}"), "say something to the agent"),
                    NextStep::new(format!("windlass session cancel {name}"), "end it"),
                ])
                .collect());
        }
        let why = NextStep::new(format!("windlass why {name}"), "see who decided what");
        Ok(match (self.session.is_over(), &self.session.stopping, self.session.ending_kind()) {
            (false, None, None) => vec![
                ResumeCommand::for_session(opened, &self.session).to_next_step("resume it"),
                NextStep::new(format!("windlass session cancel {name}"), "end it"),
            ],
            (false, ..) => vec![NextStep::new("windlass doctor --settle", "finish ending it")],
            (true, _, Some(SessionEndKind::Completed)) => vec![why],
            (true, ..) => {
                let tasks = self.unfinished_tasks().into_iter().map(|id| find_step_for_left_task(opened, id));
                let tasks: Vec<Option<NextStep>> = tasks.collect::<Result<_, _>>()?;
                std::iter::once(why).chain(tasks.into_iter().flatten()).collect()
            }
        })
    }

    /// Returns the unfinished tasks of the session: those left to a person, and the last one.
    fn unfinished_tasks(&self) -> Vec<TaskId> {
        let last = self.session.task.filter(|id| !self.session.escalated.contains(id));
        self.session.escalated.iter().copied().chain(last).take(MAX_NAMED_TASKS).collect()
    }
}

/// Returns the next command for a task that a session has left, if a person can act on it now.
fn find_step_for_left_task(opened: &OpenedProject, id: TaskId) -> Result<Option<NextStep>, Failure> {
    let task = opened.require_task(id)?;
    let is_over = matches!(task.state, TaskState::Completed | TaskState::Deleted);
    if is_over || task.lease.is_some() { Ok(None) } else { find_next_step(opened, id) }
}
