//! What is left of the graph when nothing more can be worked on, and why.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use windlass_app::context::{Opened, tasks_in};
use windlass_app::{Failure, hints};
use windlass_engine::{Grounds, State, Task, TaskId, TypeName, Types};
use windlass_store::TaskFilter;
use windlass_text as text;

use super::in_place;
use super::wish::{held_in_words, is_left, list, waits_for};
use crate::output::{Done, Output};

/// How many are named to a person.
const NAMED: usize = 10;

/// What keeps an agent from tasks that are ready.
#[derive(Clone, Copy)]
pub struct WhyNot<'a> {
    pub opened: &'a Opened,
    pub grounds: Grounds,
    pub types: &'a Types,
    /// Types that are left alone, each with why.
    pub held_back: &'a BTreeMap<TypeName, String>,
}

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
    pub fn look(opened: &Opened) -> Result<Self, Failure> {
        let snapshot = opened.store.snapshot().map_err(hints::store)?;
        let counts = snapshot.counts().map_err(hints::store)?;
        let open = |state: State| !matches!(state, State::Completed | State::Deleted);
        let stuck = |state: State| matches!(state, State::Blocked | State::Failed);
        let all: u64 = counts.iter().filter(|(state, _)| open(*state)).map(|(_, count)| count).sum();
        let mut needs_a_person = counts.iter().any(|(state, count)| stuck(*state) && *count > 0);
        let mut found = Vec::new();
        let states = State::ALL.into_iter().filter(|state| open(*state)).collect();
        let filter = TaskFilter { states, ..TaskFilter::default() };
        snapshot
            .tasks(&filter, |task| {
                found.push(task);
                found.len() < NAMED
            })
            .map_err(hints::store)?;
        let mut tasks = Vec::new();
        for task in found {
            let why = match task.state {
                State::Created => format!("waits for {}", list(&waits_for(&snapshot, &task)?)),
                _ => why(opened, &task)?,
            };
            tasks.push((task, why));
        }
        needs_a_person = needs_a_person || is_any_left(opened)?;
        let more = usize::try_from(all).unwrap_or(usize::MAX).saturating_sub(tasks.len());
        Ok(Self { tasks, more, needs_a_person, any: !counts.is_empty() })
    }

    /// The same for an agent that may not work on all of it: who may is named, or what is missing.
    pub fn for_others(self, why_not: WhyNot<'_>, agent: &str) -> Self {
        self.because(|task| {
            let held_back = || task.kind.as_ref().and_then(|kind| why_not.held_back.get(kind)).cloned();
            match why_not.types.implementers(task.kind.as_ref()) {
                _ if in_place::is_elsewhere(task, why_not.grounds) => Some(in_place::in_words(why_not.opened, task.id)),
                Some(names) if names.is_empty() => Some("nobody may".to_owned()),
                Some(names) if !names.contains(agent) => {
                    Some(format!("{} may", names.iter().map(String::as_str).collect::<Vec<_>>().join(", ")))
                }
                _ => held_back(),
            }
        })
    }

    /// The same where somebody knows why a task that is ready is not taken.
    pub fn because(mut self, why_not: impl Fn(&Task) -> Option<String>) -> Self {
        for (task, why) in &mut self.tasks {
            if task.state.is_claimable() && task.lease.is_none() {
                *why = why_not(task).unwrap_or(std::mem::take(why));
            }
        }
        self
    }

    /// What a script gets to know where nothing was ready.
    pub fn exit(&self) -> u8 {
        if self.needs_a_person { 4 } else { 0 }
    }

    /// The first one that goes on only when a person does something. The end of a dependency is no question to a person.
    pub fn stuck(&self) -> Option<TaskId> {
        let asks = |task: &Task| match task.state {
            State::Blocked => task.blocked.as_ref().is_none_or(|blocked| blocked.by.is_none()),
            state => state == State::Failed,
        };
        self.tasks.iter().map(|(task, _)| task).find(|task| asks(task)).map(|task| task.id)
    }

    /// Says that nothing is ready, in these words where something is left, and what there is instead.
    pub fn show_nothing_ready(&self, said: &str, out: &mut Output) -> Done {
        if out.is_json() {
            return out.object(&json!({"ready": 0, "left": self.to_json(), "more": self.more}));
        }
        match (self.tasks.is_empty(), self.any) {
            (true, false) => {
                out.line("no tasks; `windlass task add GOAL` makes one, `windlass run GOAL` works on it at once")
            }
            (true, true) => out.line("every task is completed"),
            (false, _) => {
                out.line(text::line(said))?;
                self.lines().iter().try_for_each(|line| out.line(format_args!("  left: {}", text::line(line))))
            }
        }
    }

    /// Each of them, and how many there are besides.
    pub fn lines(&self) -> Vec<String> {
        let one = |(task, why): &(Task, String)| format!("{}  {}  {}: {why}", task.id, task.state, task.goal);
        let more = (self.more > 0).then(|| format!("and {} more; `windlass task list` shows them", self.more));
        self.tasks.iter().map(one).chain(more).collect()
    }

    fn to_json(&self) -> Vec<Value> {
        let one =
            |(task, why): &(Task, String)| json!({"id": task.id, "state": task.state, "goal": task.goal, "why": why});
        self.tasks.iter().map(one).collect()
    }
}

/// Whether any task is held by a session that does not move by itself.
fn is_any_left(opened: &Opened) -> Result<bool, Failure> {
    for task in tasks_in(&opened.store, &[State::Active, State::Submitted])? {
        if is_left(opened, &task)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn why(opened: &Opened, task: &Task) -> Result<String, Failure> {
    Ok(match (&task.blocked, &task.lease, &task.reason) {
        (Some(blocked), ..) => blocked.reason.clone(),
        (None, Some(lease), _) => held_in_words(opened, task, lease)?,
        (None, None, Some(reason)) => reason.clone(),
        (None, None, None) if task.state == State::Active => "started by hand".to_owned(),
        (None, None, None) => "it can be worked on".to_owned(),
    })
}
