//! What is left of the graph when nothing more can be worked on, and why.

use serde_json::{Value, json};
use windlass_engine::{State, Task};
use windlass_store::{Sqlite, TaskFilter};

use super::wish::{list, waits_for};
use crate::failure::Failure;
use crate::output::{Done, Output, Tone};
use crate::{remedy, show, text};

/// How many are named to a person.
const NAMED: usize = 10;

/// Tasks that are not completed, each with what it waits for.
pub struct Left {
    tasks: Vec<(Task, String)>,
    /// How many there are besides.
    more: usize,
    /// Whether some of it goes on only when a person does something.
    needs_a_person: bool,
    /// Whether there is any task at all.
    any: bool,
}

impl Left {
    pub fn look(store: &Sqlite) -> Result<Self, Failure> {
        let snapshot = store.snapshot().map_err(remedy::store)?;
        let counts = snapshot.counts().map_err(remedy::store)?;
        let open = |state: State| !matches!(state, State::Completed | State::Deleted);
        let stuck = |state: State| matches!(state, State::Blocked | State::Failed);
        let all: u64 = counts.iter().filter(|(state, _)| open(*state)).map(|(_, count)| count).sum();
        let needs_a_person = counts.iter().any(|(state, count)| stuck(*state) && *count > 0);
        let mut found = Vec::new();
        let states = State::ALL.into_iter().filter(|state| open(*state)).collect();
        let filter = TaskFilter { states, ..TaskFilter::default() };
        snapshot
            .tasks(&filter, |task| {
                found.push(task);
                found.len() < NAMED
            })
            .map_err(remedy::store)?;
        let mut tasks = Vec::new();
        for task in found {
            let why = match task.state {
                State::Created => format!("waits for {}", list(&waits_for(&snapshot, &task)?)),
                _ => why(&task),
            };
            tasks.push((task, why));
        }
        let more = usize::try_from(all).unwrap_or(usize::MAX).saturating_sub(tasks.len());
        Ok(Self { tasks, more, needs_a_person, any: !counts.is_empty() })
    }

    /// What a script gets to know where nothing was ready.
    pub fn exit(&self) -> u8 {
        if self.needs_a_person { 4 } else { 0 }
    }

    /// Says that nothing is ready, and what there is instead.
    pub fn show_nothing_ready(&self, out: &mut Output) -> Done {
        if out.is_json() {
            return out.object(&json!({"ready": 0, "left": self.to_json(), "more": self.more}));
        }
        match (self.tasks.is_empty(), self.any) {
            (true, false) => {
                out.line("no tasks; `windlass task add GOAL` makes one, `windlass run GOAL` works on it at once")
            }
            (true, true) => out.line("every task is completed"),
            (false, _) => {
                out.line("nothing is ready")?;
                self.show(out)
            }
        }
    }

    pub fn show(&self, out: &mut Output) -> Done {
        if self.tasks.is_empty() {
            return Ok(());
        }
        out.line(out.paint(Tone::Strong, "left"))?;
        let room = out.columns().unwrap_or(usize::MAX).saturating_sub(2);
        for (task, why) in &self.tasks {
            let state = out.paint(show::tone(task.state), task.state).to_string();
            let rest = text::fit(&format!("{}: {why}", task.goal), room.saturating_sub(24).max(20));
            out.line(format_args!("  {}  {state}  {rest}", task.id))?;
        }
        match self.more {
            0 => Ok(()),
            more => {
                out.line(out.paint(Tone::Faint, format_args!("  and {more} more; `windlass task list` shows them")))
            }
        }
    }

    fn to_json(&self) -> Vec<Value> {
        let one =
            |(task, why): &(Task, String)| json!({"id": task.id, "state": task.state, "goal": task.goal, "why": why});
        self.tasks.iter().map(one).collect()
    }
}

fn why(task: &Task) -> String {
    match (&task.blocked, &task.lease, &task.reason) {
        (Some(blocked), ..) => blocked.reason.clone(),
        (None, Some(lease), _) => format!("held by {}", lease.holder()),
        (None, None, Some(reason)) => reason.clone(),
        (None, None, None) if task.state == State::Active => "started by hand".to_owned(),
        (None, None, None) => "it can be worked on".to_owned(),
    }
}
