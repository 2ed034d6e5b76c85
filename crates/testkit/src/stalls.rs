//! Work that was judged done while a gate could not be asked about it, worked out from the log alone.

use std::collections::BTreeMap;

use windlass_engine::{
    Claim, ConfigDigest, Event, Field, Gate, Move, Record, Remedy, SessionName, Stalled, TaskId, Why, payload,
};

use crate::gates::Passage;
use crate::sessions::Told;

/// The tasks whose work goes on at a gate.
#[derive(Default)]
pub struct Stalls {
    tasks: BTreeMap<TaskId, Stalled>,
    /// What sessions were started with: their configuration, and their agent.
    started: BTreeMap<SessionName, (ConfigDigest, String)>,
    claims: BTreeMap<TaskId, Claim>,
    /// The agent of the session that has last left a task, and its conversation, if that is gone on with.
    pub conversations: BTreeMap<TaskId, (String, Option<String>)>,
}

impl Stalls {
    pub fn of(&self, task: TaskId) -> Option<&Stalled> {
        self.tasks.get(&task)
    }

    /// Whether whoever takes up the task of a session has all the hooks before its gate behind them.
    pub fn is_submitted(&self, task: TaskId, session: &SessionName) -> bool {
        let (config, agent) = &self.started[session];
        let same = |it: &&Stalled| it.gate == Gate::BeforeMerge && it.config == *config && it.agent == *agent;
        self.tasks.get(&task).filter(same).is_some()
    }

    /// Hears an event before its session does.
    pub fn hear(&mut self, record: &Record, told: Option<&Told>) {
        if let (Event::SessionStarted(started), Some(name)) = (&record.envelope.event, &record.envelope.session) {
            self.started.insert(name.clone(), (started.config, started.agent.clone()));
        }
        let Some(task) = record.envelope.node.task() else { return };
        match &record.envelope.event {
            Event::CompletionClaimed(claim) => drop(self.claims.insert(task, claim.clone())),
            Event::TaskUpdated(patch) => {
                let text = patch.goal.is_some() || patch.body.is_some() || patch.deliverables.is_some();
                if text || patch.kind.is_some() {
                    self.tasks.remove(&task);
                }
            }
            Event::TaskAnswered(_) | Event::IterationStarted(_) => drop(self.tasks.remove(&task)),
            Event::SubmissionStarted(_) => {
                self.tasks.entry(task).and_modify(|stalled| stalled.gate = Gate::BeforeSubmit);
            }
            Event::HookFinished(finished) => {
                if let Some(head) = &finished.head {
                    self.tasks.entry(task).and_modify(|stalled| {
                        (stalled.head, stalled.gate) = (head.clone(), Gate::BeforeSubmit);
                    });
                }
            }
            Event::PipelineFailed(failed) if failed.remedy != Remedy::Again => self.fail(record, task, failed, told),
            _ => {}
        }
        let clears = |field| Move::on(record.kind()).is_some_and(|row| row.clears.contains(&field));
        if clears(Field::Stalled) {
            self.tasks.remove(&task);
        }
        if clears(Field::Claim) {
            self.claims.remove(&task);
        }
    }

    fn fail(&mut self, record: &Record, task: TaskId, failed: &payload::PipelineFailed, told: Option<&Told>) {
        let before = self.tasks.remove(&task);
        let unasked = (failed.why, failed.remedy) == (Why::Failed, Remedy::GiveUp);
        let way = told.filter(|_| unasked).map(Told::passage);
        let head = way.and_then(Passage::head);
        let (Some(head), Some(name)) = (head, &record.envelope.session) else { return };
        let unstarted = way.is_some_and(Passage::is_unstarted);
        let (config, agent) = self.started[name].clone();
        let (agent, claim) = match before {
            Some(before) => (before.agent, before.claim),
            None => (agent, self.claims.get(&task).cloned()),
        };
        self.tasks.insert(
            task,
            Stalled { gate: failed.gate, head, config, agent, claim, unstarted, checked: false, rebased: false },
        );
    }
}
