//! The single list of the positions that an event names, besides its own.

use super::{Event, EventCause, EventEnvelope};
use crate::log::id::{EdgeId, EffectId, HookId, Seq, SeriesId};

/// An id that contains the position of the event that created it.
trait PositionalId: Copy {
    fn position(self) -> Seq;
    fn at_position(self, to: Seq) -> Self;
}

macro_rules! named {
    ($($name:ident),+) => {$(
        impl Named for $name {
            fn at(self) -> Seq {
                Seq(self.0)
            }

            fn moved(self, to: Seq) -> Self {
                Self(to.0)
            }
        }
    )+};
}

named!(Seq, EdgeId, HookId, SeriesId);

impl PositionalId for EffectId {
    fn position(self) -> Seq {
        self.seq
    }

    fn at_position(self, to: Seq) -> Self {
        Self { seq: to, ..self }
    }
}

/// A function from the old position of an event to its new one, if the event still exists.
struct PositionMap<F>(F);

impl<F: Fn(Seq) -> Option<Seq>> PositionMap<F> {
    fn map_id<T: PositionalId>(&self, named: T) -> Option<T> {
        (self.0)(named.position()).map(|to| named.at_position(to))
    }

    fn relocate_required<T: PositionalId>(&self, named: &mut T) -> Result<(), Seq> {
        *named = self.map_id(*named).ok_or_else(|| named.position())?;
        Ok(())
    }

    fn relocate_optional<T: PositionalId>(&self, named: &mut Option<T>) {
        *named = named.and_then(|named| self.map_id(named));
    }

    fn relocate_all<T: PositionalId>(&self, named: &mut Vec<T>) {
        *named = named.iter().filter_map(|named| self.map_id(*named)).collect();
    }
}

impl EventEnvelope {
    /// Replaces every position in the event by the new position of that event. A reference to a lost event is left out
    /// where the event means the same without it; otherwise the lost position is the error.
    pub fn relocate_positions(&mut self, now: impl Fn(Seq) -> Option<Seq>) -> Result<(), Seq> {
        let to = PositionMap(now);
        if let Some(EventCause::At(seq)) = self.metadata.cause {
            self.metadata.cause = to.map_id(seq).map(EventCause::At);
        }
        to.relocate_optional(&mut self.metadata.via);
        match &mut self.event {
            Event::TaskDeleted(deleted) => to.relocate_all(&mut deleted.edges_removed),
            Event::DependencyRemoved(removed) => to.relocate_required(&mut removed.edge_id)?,
            Event::FeedbackDelivered(delivered) => to.relocate_all(&mut delivered.feedback),
            Event::HooksCleared(cleared) => to.relocate_all(&mut cleared.hooks),
            Event::HookSwitched(switched) => to.relocate_required(&mut switched.hook)?,
            Event::HookEvaluated(evaluated) => {
                evaluated.series.as_mut().map_or(Ok(()), |series| to.relocate_required(series))?;
                to.relocate_optional(&mut evaluated.hook);
            }
            Event::ValidationFinished(finished) => {
                to.relocate_required(&mut finished.series)?;
                to.relocate_optional(&mut finished.hook);
            }
            Event::SeriesAdvanced(advanced) => to.relocate_required(&mut advanced.series)?,
            Event::SeriesEnded(ended) => to.relocate_required(&mut ended.series)?,
            Event::CheckpointCreated(created) => to.relocate_optional(&mut created.series),
            Event::WorkflowStarted(started) => to.relocate_required(&mut started.effect)?,
            Event::WorkflowStepStarted(started) => to.relocate_required(&mut started.effect)?,
            Event::WorkflowStepFinished(finished) => to.relocate_required(&mut finished.effect)?,
            Event::WorkflowCompleted(completed) => to.relocate_required(&mut completed.effect)?,
            Event::WorkflowFailed(failed) => to.relocate_required(&mut failed.effect)?,
            Event::HookStarted(started) => to.relocate_required(&mut started.effect)?,
            Event::HookRetrying(retrying) => to.relocate_required(&mut retrying.effect)?,
            Event::HookFinished(finished) => to.relocate_required(&mut finished.effect)?,
            Event::HookError(error) => to.relocate_optional(&mut error.effect),
            _ => {}
        }
        Ok(())
    }
}
