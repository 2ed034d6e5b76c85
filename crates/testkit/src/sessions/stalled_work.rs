//! Stalled work, computed from the log alone: finished work whose gate could not run.

use std::collections::BTreeMap;

use windlass_engine::{
    AfterIteration, CompletionClaim, ConfigDigest, DeliveryGate, Event, EventRecord, GateDecision, GateFailureKind,
    GateRemedy, SessionName, StalledWork, StateField, TaskId, TaskTransition, payload,
};

use super::SessionOracle;

/// The tasks whose work resumes at a gate.
#[derive(Default)]
pub struct StalledWorkOracle {
    tasks: BTreeMap<TaskId, StalledWork>,
    /// The configuration and the agent of each session.
    started: BTreeMap<SessionName, (ConfigDigest, String)>,
    completion_claims: BTreeMap<TaskId, CompletionClaim>,
    /// The agent of the last session that left a task, and its conversation if it can be continued.
    pub conversations: BTreeMap<TaskId, (String, Option<String>)>,
}

impl StalledWorkOracle {
    pub fn find_stalled(&self, task: TaskId) -> Option<&StalledWork> {
        self.tasks.get(&task)
    }

    /// Returns whether the work of a task has passed all hooks before its gate, for this session.
    pub fn is_submitted(&self, task: TaskId, session: &SessionName) -> bool {
        let (config, agent) = &self.started[session];
        let same =
            |it: &&StalledWork| it.gate == DeliveryGate::BeforeMerge && it.config == *config && it.agent == *agent;
        self.tasks.get(&task).filter(same).is_some()
    }

    /// Observes an event before its session does.
    pub fn observe(&mut self, record: &EventRecord, oracle: Option<&SessionOracle>) {
        if let (Event::SessionStarted(started), Some(name)) = (&record.envelope.event, &record.envelope.session) {
            self.started.insert(name.clone(), (started.config, started.agent.clone()));
        }
        let Some(task) = record.envelope.node.task_id() else { return };
        match &record.envelope.event {
            Event::CompletionClaimed(claim) => drop(self.completion_claims.insert(task, claim.clone())),
            Event::TaskUpdated(patch) => {
                let text = patch.goal.is_some() || patch.body.is_some() || patch.deliverables.is_some();
                if text || patch.kind.is_some() {
                    self.tasks.remove(&task);
                }
            }
            Event::TaskAnswered(_) | Event::IterationStarted(_) => drop(self.tasks.remove(&task)),
            Event::SubmissionStarted(started) => {
                self.tasks.entry(task).and_modify(|stalled| {
                    stalled.gate = DeliveryGate::BeforeSubmit;
                    stalled.head = started.work.as_ref().map_or(stalled.head.clone(), |work| work.head.clone());
                });
            }
            Event::HookFinished(finished) => {
                if let Some(head) = &finished.head {
                    self.tasks.entry(task).and_modify(|stalled| {
                        (stalled.head, stalled.gate) = (head.clone(), DeliveryGate::BeforeSubmit);
                    });
                }
            }
            Event::PipelineFailed(failed) if failed.remedy != GateRemedy::Again => {
                self.observe_failure(record, task, failed, oracle)
            }
            Event::TaskNeedsContinuation(_) => {
                oracle.into_iter().for_each(|oracle| self.observe_release(record, task, oracle))
            }
            _ => {}
        }
        let clears =
            |field| TaskTransition::for_event_type(record.kind()).is_some_and(|row| row.clears.contains(&field));
        if clears(StateField::Stalled) {
            self.tasks.remove(&task);
        }
        if clears(StateField::Claim) {
            self.completion_claims.remove(&task);
        }
    }

    fn observe_failure(
        &mut self,
        record: &EventRecord,
        task: TaskId,
        failed: &payload::PipelineFailed,
        oracle: Option<&SessionOracle>,
    ) {
        let is_unjudged = (failed.why, failed.remedy) == (GateFailureKind::Failed, GateRemedy::GiveUp);
        match oracle.filter(|oracle| is_unjudged && oracle.delivery().head().is_some()) {
            Some(oracle) => self.record_stall(record, task, failed.gate, oracle),
            None => drop(self.tasks.remove(&task)),
        }
    }

    /// Observes a session that leaves its task while the work is on its way.
    fn observe_release(&mut self, record: &EventRecord, task: TaskId, oracle: &SessionOracle) {
        let metadata = &record.envelope.metadata;
        let itself = metadata.depth == 0 && !metadata.forced && oracle.holds() && oracle.task == Some(task);
        if let Some(gate) = oracle.delivery().resumption_gate().filter(|_| itself) {
            self.record_stall(record, task, gate, oracle);
        }
    }

    fn record_stall(&mut self, record: &EventRecord, task: TaskId, gate: DeliveryGate, oracle: &SessionOracle) {
        let (Some(head), Some(name)) = (oracle.delivery().head(), &record.envelope.session) else { return };
        let unstarted = oracle.delivery().is_unstarted();
        let (config, agent) = self.started[name].clone();
        let (gate, agent, claim, waived) = match self.tasks.remove(&task) {
            Some(before) => {
                let gate = if before.agent == agent { gate } else { DeliveryGate::BeforeSubmit };
                (gate, before.agent, before.claim, before.waived)
            }
            None => (gate, agent, self.completion_claims.get(&task).cloned(), waiver(oracle)),
        };
        self.tasks.insert(
            task,
            StalledWork { gate, head, config, agent, claim, unstarted, checked: false, rejudged: false, waived },
        );
    }
}

/// Returns why the gate let the work of a session pass although a hook did not.
fn waiver(oracle: &SessionOracle) -> Option<String> {
    match &oracle.gate {
        Some((_, GateDecision::Next(AfterIteration::Close(closing)))) => closing.reason.clone(),
        _ => None,
    }
}
