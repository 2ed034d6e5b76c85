//! The single list of the positions that an event names, besides its own.

use super::{Cause, Envelope, Event};
use crate::log::id::{EdgeId, EffectId, HookId, Seq, SeriesId};

/// An id that contains the position of the event that created it.
trait Named: Copy {
    fn at(self) -> Seq;
    fn moved(self, to: Seq) -> Self;
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

impl Named for EffectId {
    fn at(self) -> Seq {
        self.seq
    }

    fn moved(self, to: Seq) -> Self {
        Self { seq: to, ..self }
    }
}

/// A function from the old position of an event to its new one, if the event still exists.
struct Move<F>(F);

impl<F: Fn(Seq) -> Option<Seq>> Move<F> {
    fn now<T: Named>(&self, named: T) -> Option<T> {
        (self.0)(named.at()).map(|to| named.moved(to))
    }

    fn one<T: Named>(&self, named: &mut T) -> Result<(), Seq> {
        *named = self.now(*named).ok_or_else(|| named.at())?;
        Ok(())
    }

    fn perhaps<T: Named>(&self, named: &mut Option<T>) {
        *named = named.and_then(|named| self.now(named));
    }

    fn several<T: Named>(&self, named: &mut Vec<T>) {
        *named = named.iter().filter_map(|named| self.now(*named)).collect();
    }
}

impl Envelope {
    /// Replaces every position in the event by the new position of that event. A reference to a lost event is left out
    /// where the event means the same without it; otherwise the lost position is the error.
    pub fn relocate(&mut self, now: impl Fn(Seq) -> Option<Seq>) -> Result<(), Seq> {
        let to = Move(now);
        if let Some(Cause::At(seq)) = self.metadata.cause {
            self.metadata.cause = to.now(seq).map(Cause::At);
        }
        to.perhaps(&mut self.metadata.via);
        match &mut self.event {
            Event::TaskDeleted(deleted) => to.several(&mut deleted.edges_removed),
            Event::DependencyRemoved(removed) => to.one(&mut removed.edge_id)?,
            Event::FeedbackDelivered(delivered) => to.several(&mut delivered.feedback),
            Event::HooksCleared(cleared) => to.several(&mut cleared.hooks),
            Event::HookSwitched(switched) => to.one(&mut switched.hook)?,
            Event::HookEvaluated(evaluated) => {
                evaluated.series.as_mut().map_or(Ok(()), |series| to.one(series))?;
                to.perhaps(&mut evaluated.hook);
            }
            Event::ValidationFinished(finished) => {
                to.one(&mut finished.series)?;
                to.perhaps(&mut finished.hook);
            }
            Event::SeriesAdvanced(advanced) => to.one(&mut advanced.series)?,
            Event::SeriesEnded(ended) => to.one(&mut ended.series)?,
            Event::CheckpointCreated(created) => to.perhaps(&mut created.series),
            Event::WorkflowStarted(started) => to.one(&mut started.effect)?,
            Event::WorkflowStepStarted(started) => to.one(&mut started.effect)?,
            Event::WorkflowStepFinished(finished) => to.one(&mut finished.effect)?,
            Event::WorkflowCompleted(completed) => to.one(&mut completed.effect)?,
            Event::WorkflowFailed(failed) => to.one(&mut failed.effect)?,
            Event::HookStarted(started) => to.one(&mut started.effect)?,
            Event::HookRetrying(retrying) => to.one(&mut retrying.effect)?,
            Event::HookFinished(finished) => to.one(&mut finished.effect)?,
            Event::HookError(error) => to.perhaps(&mut error.effect),
            _ => {}
        }
        Ok(())
    }
}
