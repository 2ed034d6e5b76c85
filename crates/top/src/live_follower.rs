//! The output of the agent in the session that is shown, read from the record that its runner writes.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::time::Duration;

use windlass_app::Failure;
use windlass_app::context::OpenedProject;
use windlass_app::live_output::LiveOutputReader;
use windlass_engine::{Seq, SessionName};
use windlass_hooks::SecretMask;
use windlass_store::Store;

use crate::event::{LiveUpdate, TopEvent};

/// The interval at which the record of a turn in progress is read. Without a turn, the log is waited for.
const OUTPUT_POLL_INTERVAL: Duration = Duration::from_millis(100);
const QUIET_INTERVAL: Duration = Duration::from_millis(250);

/// Follows the session that the receiver names last, until the receiver closes.
pub struct LiveFollower {
    pub wanted: Receiver<Option<String>>,
    pub events: Sender<TopEvent>,
    pub mask: SecretMask,
}

impl LiveFollower {
    pub fn follow_sessions(self, open: &dyn Fn() -> Result<OpenedProject, Failure>) {
        let mut session: Option<String> = None;
        loop {
            session = match session {
                // Without a store, or when the session is over, the next wish is waited for.
                Some(name) => {
                    open().map_err(drop).and_then(|opened| self.follow_session(&opened, &name)).unwrap_or_default()
                }
                None => match self.wanted.recv() {
                    Ok(wanted) => wanted,
                    Err(_) => return,
                },
            };
        }
    }

    /// Follows one session until another one is wanted. Fails when the session is over.
    fn follow_session(&self, opened: &OpenedProject, name: &str) -> Result<Option<String>, ()> {
        let session: SessionName = name.parse().map_err(drop)?;
        let mut reader: Option<LiveOutputReader> = None;
        loop {
            match self.wanted.try_recv() {
                Ok(next) => return Ok(next),
                Err(TryRecvError::Disconnected) => return Err(()),
                Err(TryRecvError::Empty) => {}
            }
            let head = opened.store.head().map_err(drop)?;
            let is_over = self.read_turn(opened, &session, &mut reader).map_err(drop)?;
            if is_over {
                return Err(());
            }
            if reader.is_some() {
                match self.wanted.recv_timeout(OUTPUT_POLL_INTERVAL) {
                    Ok(next) => return Ok(next),
                    Err(RecvTimeoutError::Disconnected) => return Err(()),
                    Err(RecvTimeoutError::Timeout) => {}
                }
            } else {
                self.await_commit(opened, head)?;
            }
        }
    }

    fn await_commit(&self, opened: &OpenedProject, head: Seq) -> Result<(), ()> {
        opened.store.wait_for_events(head, QUIET_INTERVAL).map_err(drop)
    }

    /// Sends what the turn in progress has written since the last time. Returns whether the session is over.
    fn read_turn(
        &self,
        opened: &OpenedProject,
        name: &SessionName,
        reader: &mut Option<LiveOutputReader>,
    ) -> Result<bool, Failure> {
        let snapshot = opened.require_session(name)?;
        let turn = snapshot.current_turn().map(|turn| turn.effect);
        if reader.as_ref().map(LiveOutputReader::effect) != turn {
            if let Some(mut ended) = reader.take() {
                self.send_lines(name, ended.read_last_lines().unwrap_or_default());
                self.send(LiveUpdate::TurnEnded(name.to_string()));
            }
            *reader = LiveOutputReader::for_current_turn(opened, &snapshot);
            if reader.is_some() {
                self.send(LiveUpdate::TurnStarted(name.to_string()));
            }
        }
        if let Some(reader) = reader {
            self.send_lines(name, reader.read_new_lines().unwrap_or_default());
        }
        Ok(snapshot.is_over())
    }

    fn send_lines(&self, name: &SessionName, lines: Vec<String>) {
        if !lines.is_empty() {
            let lines = lines.iter().map(|line| self.mask.mask_text(line).into_owned()).collect();
            self.send(LiveUpdate::Lines(name.to_string(), lines));
        }
    }

    fn send(&self, update: LiveUpdate) {
        // Without a receiver, the program ends.
        let _ = self.events.send(TopEvent::Live(update));
    }
}
