//! The channel to an agent: passes its output to the client, and serves its requests, until it answers.
//!
//! Invariants:
//! - The requests of the agent are served while Windlass waits for its answer; no request waits for another.
//! - An agent whose turn has to end is asked to cancel first, and its programs are ended.
//! - Paused time does not count against deadlines.

use std::time::{Duration, Instant};

use serde_json::Value;
use windlass_process::{Attended, Control, Heard, Live, Roster};

use super::breach::Breach;
use super::desk::Desk;
use super::http_server::HttpServer;
use super::talk::{Said, Talk};
use super::telling::Telling;
use super::wire::Refused;
use crate::TurnBudget;

/// The most bytes of answers that are kept for an agent that does not read them.
const UNREAD: usize = 64 * 1024 * 1024;

/// The limits of a turn and the receiver of its transcript.
pub struct Attention<'a> {
    pub roster: &'a Roster,
    pub budget: &'a mut TurnBudget,
    /// Receives the transcript while the agent works.
    pub tell: &'a mut dyn FnMut(&str),
}

impl Attention<'_> {
    /// Borrows the context again, for one call.
    pub(super) fn again(&mut self) -> Attention<'_> {
        let Self { roster, budget, tell } = self;
        Attention { roster, budget, tell: &mut **tell }
    }
}

/// Reasons why a request of ours has no answer.
pub enum Fault {
    Refused(Refused),
    Breach(Breach),
    /// The agent has exited, or has closed its output.
    Over,
    /// The agent took too long over a request before the first prompt.
    Late,
    /// The turn had to end before the answer came.
    Ended(Interference),
    Other(String),
}

/// Reasons to end a turn early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interference {
    /// The deadline of the turn has passed.
    TimedOut,
    /// The agent was silent for longer than the budget allows.
    Silent,
    Cancelled,
}

/// A running agent with its protocol client and the services for it.
pub struct Line {
    pub live: Live,
    pub talk: Talk,
    pub desk: Desk,
    /// MCP servers that listen for the agent. They end with it.
    pub servers: Vec<HttpServer>,
}

impl Line {
    /// Waits for the answer to the open request. With a grace, an agent whose turn has to end is asked to cancel first.
    pub fn attend(
        &mut self,
        attention: Attention<'_>,
        grace: Option<Duration>,
    ) -> (Result<Value, Fault>, Option<Interference>) {
        let Attention { roster, budget: TurnBudget { until, silence, control, .. }, tell } = attention;
        let (mut interference, mut leave) = (None, None);
        let mut attended = match self.live.attend(control) {
            Ok(attended) => attended,
            Err(error) => return (Err(Fault::Other(format!("cannot listen to the agent: {error}"))), None),
        };
        attended.begin_waiting();
        let mut telling = Telling::default();
        loop {
            for (id, answer) in self.desk.ended() {
                self.talk.answer(id, answer);
            }
            attended.say(&self.talk.take_out());
            if let Err(breach) = check_unread(attended.unread()) {
                return (Err(Fault::Breach(breach)), interference);
            }
            let (until, silence) = match interference {
                None => (&mut *until, *silence),
                Some(_) => (&mut leave, None),
            };
            let heard = hear(&mut attended, &mut self.desk, until, silence);
            let why = match heard {
                Next::Heard(Heard::Said(bytes)) => {
                    match heed(&bytes, &mut self.talk, &mut self.desk, roster, (&mut telling, tell)) {
                        Err(breach) => return (Err(Fault::Breach(breach)), interference),
                        Ok(Some(answer)) => return (answer.map_err(Fault::Refused), interference),
                        Ok(None) => continue,
                    }
                }
                Next::Heard(Heard::Beside) => continue,
                Next::Heard(Heard::Over) => return (Err(Fault::Over), interference),
                Next::Heard(Heard::Killed) => {
                    return (Err(Fault::Ended(Interference::Cancelled)), interference);
                }
                Next::Heard(Heard::Late) | Next::Silent if interference.is_some() => {
                    return (Err(Fault::Ended(Interference::TimedOut)), interference);
                }
                Next::Heard(Heard::Late) => Interference::TimedOut,
                Next::Silent => Interference::Silent,
                Next::Heard(Heard::Cancelled) => Interference::Cancelled,
            };
            let Some(grace) = grace else { return (Err(Fault::Ended(why)), None) };
            interference = interference.or(Some(why));
            self.talk.cancel();
            self.desk.end_turn();
            leave = Some(Instant::now() + grace);
        }
    }

    /// Handles output that follows an answer, for at most this long.
    pub fn linger(&mut self, attention: Attention<'_>, most: Duration) {
        let Attention { roster, budget, tell } = attention;
        let Ok(mut attended) = self.live.attend(&budget.control) else { return };
        let (mut until, mut telling) = (Some(Instant::now() + most), Telling::default());
        while let Heard::Said(bytes) = attended.hear(&mut until) {
            if heed(&bytes, &mut self.talk, &mut self.desk, roster, (&mut telling, &mut *tell)).is_err() {
                return;
            }
            attended.say(&self.talk.take_out());
        }
    }

    /// Handles output since the last turn, for at most this long. Returns whether the agent runs and is silent now.
    pub fn catch_up(&mut self, control: &Control, roster: &Roster, most: Duration) -> bool {
        let Ok(mut attended) = self.live.attend(control) else { return false };
        let until = Instant::now() + most;
        while Instant::now() < until {
            match attended.hear_now() {
                Heard::Said(bytes) => {
                    let nobody: (_, &mut dyn FnMut(&str)) = (&mut Telling::default(), &mut |_| {});
                    if heed(&bytes, &mut self.talk, &mut self.desk, roster, nobody).is_err() {
                        return false;
                    }
                    attended.say(&self.talk.take_out());
                }
                Heard::Over => return false,
                Heard::Beside => {}
                Heard::Late | Heard::Cancelled | Heard::Killed => return true,
            }
        }
        false
    }
}

enum Next {
    Heard(Heard),
    Silent,
}

/// Waits for the next event, or until the agent has been silent for too long.
fn hear(attended: &mut Attended<'_>, desk: &mut Desk, until: &mut Option<Instant>, silence: Option<Duration>) -> Next {
    loop {
        let quiet = silence.and_then(|silence| attended.last_moved().checked_add(silence));
        let mut next = until.iter().chain(&quiet).min().copied();
        let before = next;
        let heard = attended.hear_beside(&mut next, desk.programs());
        let paused = next.zip(before).map_or(Duration::ZERO, |(next, before)| next - before);
        *until = until.and_then(|until| until.checked_add(paused));
        if heard != Heard::Late || until.is_some_and(|until| Instant::now() >= until) {
            return Next::Heard(heard);
        }
        // Programs beside the agent may have been active without an event.
        if silence.is_some_and(|silence| attended.last_moved().elapsed() >= silence) {
            return Next::Silent;
        }
    }
}

/// Handles output of the agent: renders it, serves its requests, and returns the answer if it is there.
fn heed(
    bytes: &[u8],
    talk: &mut Talk,
    desk: &mut Desk,
    roster: &Roster,
    (telling, tell): (&mut Telling, &mut dyn FnMut(&str)),
) -> Result<Option<Result<Value, Refused>>, Breach> {
    let mut answer = None;
    for said in talk.hear(bytes)? {
        telling.tell(&said, tell);
        match said {
            Said::Answer(outcome) => {
                // Requests that arrive together with the answer are too late.
                desk.end_turn();
                answer = Some(outcome);
            }
            Said::Wish { id, wish } => {
                let served = desk.serve(&id, wish, roster);
                if let Some(told) = served.told {
                    telling.aside(&told, tell);
                }
                if let Some(outcome) = served.answer {
                    talk.answer(id, outcome);
                }
                check_unread(talk.unsaid())?;
            }
            _ => {}
        }
    }
    Ok(answer)
}

/// Returns an error if an agent sends requests without reading the answers, which would fill the memory.
fn check_unread(bytes: usize) -> Result<(), Breach> {
    if bytes > UNREAD { Err(Breach::Unread { most: UNREAD }) } else { Ok(()) }
}
