//! An agent that is spoken with: what it says is heeded, and what it wants is served, until it has answered.
//!
//! Invariants:
//! - Whatever the agent asks is served while it is listened to; nothing waits for anything else.
//! - An agent that is to end its turn is asked to first, and what runs for it is ended.
//! - Time that passes in a pause counts for nothing.

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

/// The most that is kept for an agent that asks and does not read the answers.
const UNREAD: usize = 64 * 1024 * 1024;

/// Who may interrupt a turn, and who watches it.
pub struct Attention<'a> {
    pub roster: &'a Roster,
    pub budget: &'a mut TurnBudget,
    /// Sees what the agent says and does, as it happens.
    pub tell: &'a mut dyn FnMut(&str),
}

impl Attention<'_> {
    /// The same, for a while.
    pub(super) fn again(&mut self) -> Attention<'_> {
        let Self { roster, budget, tell } = self;
        Attention { roster, budget, tell: &mut **tell }
    }
}

/// Why a question has no answer.
pub enum Fault {
    Refused(Refused),
    Breach(Breach),
    /// The agent is gone, or will never say anything again.
    Over,
    /// It took too long over a question before the first prompt.
    Late,
    /// It was not given more time.
    Ended(Interference),
    Other(String),
}

/// Why a turn was asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interference {
    /// The time of the turn is up.
    TimedOut,
    /// It was silent for longer than it may.
    Silent,
    Cancelled,
}

/// An agent, what is said to it, and what is done for it.
pub struct Line {
    pub live: Live,
    pub talk: Talk,
    pub desk: Desk,
    /// Servers of tools that listen for the agent. They end with it.
    pub servers: Vec<HttpServer>,
}

impl Line {
    /// Listens until the open question is answered. With a grace, an agent that is to end is asked to first.
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

    /// Heeds what comes behind an answer, for so long.
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

    /// Heeds what was said while nobody listened, for so long at most. Answers whether the agent is there and silent now.
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

/// What comes next, or that nothing has come for too long.
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
        // Something may have moved that is told to nobody.
        if silence.is_some_and(|silence| attended.last_moved().elapsed() >= silence) {
            return Next::Silent;
        }
    }
}

/// Takes what was said, passes it on, and serves what is wanted. The answer, if it is among it.
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
                // What it wants in the same breath comes too late.
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

/// One that asks without ever reading would fill all memory.
fn check_unread(bytes: usize) -> Result<(), Breach> {
    if bytes > UNREAD { Err(Breach::Unread { most: UNREAD }) } else { Ok(()) }
}
