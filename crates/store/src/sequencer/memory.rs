//! A sequencer in memory, which misbehaves on demand.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{SequencedMessage, Sequencer, SequencerError};

/// What happens to one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SequencerFault {
    /// The service cannot be reached.
    Unreachable,
    /// The message is appended, and its acknowledgement is lost.
    LostAcknowledgement,
    /// The message is lost, and the caller cannot tell.
    LostMessage,
    /// The message is appended twice.
    RepeatedMessage,
    /// The message is appended only after the next one.
    DelayedMessage,
}

/// Chooses the fault of each call to publish.
type FaultChoice = dyn FnMut() -> Option<SequencerFault> + Send;

#[derive(Default)]
struct MemoryOrder {
    bodies: Vec<Vec<u8>>,
    /// Messages that are on their way for longer.
    delayed: Vec<Vec<u8>>,
}

/// A sequencer in memory. Clones share one order, as machines share one service.
#[derive(Clone, Default)]
pub struct MemorySequencer {
    order: Arc<(Mutex<MemoryOrder>, Condvar)>,
    faults: Option<Arc<Mutex<FaultChoice>>>,
    is_subscribed: bool,
}

impl MemorySequencer {
    /// Returns a handle of the same order whose calls to publish fail as `choose` says.
    pub fn with_faults(&self, choose: impl FnMut() -> Option<SequencerFault> + Send + 'static) -> Self {
        Self { order: Arc::clone(&self.order), faults: Some(Arc::new(Mutex::new(choose))), is_subscribed: false }
    }

    /// Returns the bodies of all messages, in their order.
    pub fn list_bodies(&self) -> Vec<Vec<u8>> {
        self.lock_order().bodies.clone()
    }

    fn lock_order(&self) -> MutexGuard<'_, MemoryOrder> {
        self.order.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn choose_fault(&self) -> Option<SequencerFault> {
        let choose = self.faults.as_ref()?;
        choose.lock().unwrap_or_else(PoisonError::into_inner)()
    }
}

impl Sequencer for MemorySequencer {
    fn publish(&mut self, body: &[u8]) -> Result<u64, SequencerError> {
        let fault = self.choose_fault();
        let unknown = || Err(SequencerError::OutcomeUnknown { source: "the acknowledgement is lost".into() });
        let mut order = self.lock_order();
        match fault {
            Some(SequencerFault::Unreachable) => {
                return Err(SequencerError::Unreachable { source: "the service is away".into() });
            }
            Some(SequencerFault::LostMessage) => return unknown(),
            Some(SequencerFault::DelayedMessage) => {
                order.delayed.push(body.to_vec());
                return unknown();
            }
            Some(SequencerFault::RepeatedMessage) => order.bodies.push(body.to_vec()),
            Some(SequencerFault::LostAcknowledgement) | None => {}
        }
        order.bodies.push(body.to_vec());
        let place = order.bodies.len() as u64;
        let late = std::mem::take(&mut order.delayed);
        order.bodies.extend(late);
        self.order.1.notify_all();
        if fault == Some(SequencerFault::LostAcknowledgement) { unknown() } else { Ok(place) }
    }

    fn read_after(&mut self, sequence: u64, most: usize) -> Result<Vec<SequencedMessage>, SequencerError> {
        let order = self.lock_order();
        let skipped = usize::try_from(sequence).unwrap_or(usize::MAX);
        let found = order.bodies.iter().zip(1..).skip(skipped).take(most);
        Ok(found.map(|(body, sequence)| SequencedMessage { sequence, body: body.clone() }).collect())
    }

    fn subscribe_after(&mut self, _sequence: u64) -> Result<(), SequencerError> {
        self.is_subscribed = true;
        Ok(())
    }

    fn receive_after(
        &mut self,
        sequence: u64,
        patience: Duration,
    ) -> Result<Option<Vec<SequencedMessage>>, SequencerError> {
        if !self.is_subscribed {
            return Ok(None);
        }
        let is_quiet = |order: &mut MemoryOrder| order.bodies.len() as u64 <= sequence;
        drop(self.order.1.wait_timeout_while(self.lock_order(), patience, is_quiet));
        self.read_after(sequence, usize::MAX).map(Some)
    }
}
