//! The gate decisions and the endings that the rules allow.

use super::*;

impl SessionOracle {
    /// Returns whether a gate may decide like this.
    pub(super) fn may_decide(&self, decided: &payload::GateDecided) -> bool {
        let blocked = decided.verdict == GateVerdict::Block;
        let told_to = self.asking == Some(Some(GateAnswer::Continue));
        let closes = match &decided.decision {
            GateDecision::Next(AfterIteration::Close(closing)) => match closing.ending {
                SessionEndKind::Escalated => decided.verdict != GateVerdict::Escalate,
                SessionEndKind::Limit => false,
                _ => true,
            },
            _ => false,
        };
        // The claim of an agent ends nothing while feedback of a person is pending.
        let allows_ending = !closes || !self.has_pending_person_feedback() || self.asking.is_some();
        let asks = self.terms.on_retry_limit == RetryLimitAction::Ask && self.work == WorkSource::Given;
        allows_ending
            && match decided.decision {
                GateDecision::SendBack => blocked && (told_to || self.send_backs.has_left(self.terms.max_hook_retries)),
                GateDecision::Ask => blocked && asks,
                GateDecision::Next(_) => true,
            }
    }

    pub(super) fn gate_context<'a>(
        &'a self,
        record: &EventRecord,
        name: &SessionName,
        stalls: &'a StalledWorkOracle,
    ) -> GateContext<'a> {
        let task = self.task.and_then(|task| Some((task, stalls.find_stalled(task)?)));
        GateContext {
            stalled: task.map(|(task, stalled)| (stalled, stalls.is_submitted(task, name))),
            held_back: self.is_held_back(),
            held: self.holds(),
            stopping: self.stopping.is_some(),
            passed: self.has_passed(),
            worktrees: self.is_in_worktrees(),
            terms: &self.terms,
            own: is_own(record),
        }
    }

    pub(super) fn is_bound_delivered(&self) -> bool {
        self.bound.is_subset(&self.delivered)
    }

    /// Returns whether the session itself reports its task done, without a forced command.
    pub(super) fn completes(&self, record: &EventRecord) -> bool {
        let metadata = &record.envelope.metadata;
        let own = record.envelope.session.is_some() && metadata.depth == 0 && !metadata.forced;
        own && matches!(self.hold, TaskHold::Held(_)) && record.envelope.node.task_id() == self.task
    }

    /// Returns the verdict of the gate that closed the work with this ending.
    pub(super) fn closing_verdict(&self, ending: SessionEndKind) -> Option<GateVerdict> {
        match &self.gate {
            Some((verdict, GateDecision::Next(AfterIteration::Close(closing)))) if closing.ending == ending => {
                Some(*verdict)
            }
            _ => None,
        }
    }

    /// Returns whether the gates have declared the work complete.
    pub(super) fn has_passed(&self) -> bool {
        if self.delivery.resumed {
            return true;
        }
        let claimed = self.claim == Some(Promise::Complete) || self.terms.completion == CompletionMode::Gate;
        match self.closing_verdict(SessionEndKind::Completed) {
            Some(GateVerdict::Pass) => claimed,
            Some(GateVerdict::Fail) => claimed && !self.terms.strict,
            Some(GateVerdict::Block) if self.answered == Some(GateAnswer::Ignore) => claimed,
            Some(GateVerdict::Block) => claimed && self.terms.on_retry_limit == RetryLimitAction::Complete,
            Some(GateVerdict::Continue | GateVerdict::Escalate) | None => false,
        }
    }

    /// Returns whether the session may end like this. A session on the whole graph ends when no task is left, and successfully if
    /// none was left to a person.
    pub(super) fn may_end(&self, ending: SessionEndKind, now: Timestamp) -> bool {
        let (graph, left) = (self.work == WorkSource::Graph, self.hold == TaskHold::Left);
        match ending {
            _ if self.finished && self.delivery.is_objected() => ending == SessionEndKind::Escalated,
            _ if self.stopping.as_ref().is_some_and(|asked| asked.ending == ending) => true,
            SessionEndKind::Completed if graph => {
                self.escalated.is_empty() && self.released_tasks.is_empty() && self.lost_tasks.is_empty()
            }
            SessionEndKind::Completed => self.has_passed() && (!left || self.finished || self.completed),
            SessionEndKind::Escalated => {
                let failed_so = self.delivery.remedy == Some(GateRemedy::Escalate);
                let decided = if graph {
                    !self.escalated.is_empty()
                } else {
                    self.closing_verdict(ending).is_some() || failed_so
                };
                // A session cannot continue with a broken agent, whether or not its task still exists.
                decided || self.is_broken() || self.postponements >= EngineLimits::POSTPONEMENTS_IN_A_ROW
            }
            SessionEndKind::Limit => {
                let given_up = if graph {
                    !self.released_tasks.is_empty()
                } else {
                    self.delivery.remedy == Some(GateRemedy::GiveUp)
                };
                let counted = self.iteration - self.interrupted;
                given_up || counted >= self.terms.max_iterations || self.may_be_used_up(now)
            }
            SessionEndKind::Error => self.interrupted >= EngineLimits::INTERRUPTIONS_IN_A_ROW,
            SessionEndKind::Cancelled if graph => !self.lost_tasks.is_empty(),
            SessionEndKind::Cancelled => left,
        }
    }
}
