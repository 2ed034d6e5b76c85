//! Webhooks.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use windlass_engine::{Digest, HookOutcome, HookReport, encode};
use windlass_hooks::http::{self, Ended, Request};
use windlass_hooks::{Address, answer};
use windlass_process::Finished;

use super::{Attempt, Running};
use crate::{Dispatch, RunError};

/// How soon a request is given up once somebody asks for the end.
const NOTICED: Duration = Duration::from_millis(20);

impl Dispatch<'_> {
    pub(super) fn send(&mut self, running: &Running<'_>, address: &Address) -> Result<Attempt, RunError> {
        let request = match address.request(&self.call(running), running.hook.timeout, key(running)) {
            Ok(request) => request,
            Err(error) => return Ok(never(error.to_string())),
        };
        let began = Instant::now();
        let Some(sent) = self.sent(running, request) else {
            return Ok(HookReport::from(HookOutcome::Cancelled).into());
        };
        let took = began.elapsed();
        Ok(match sent {
            Ended::Ok(body) => {
                let ran = Ok(Finished { took, ..Finished::said(body.into_bytes()) });
                answer(running.hook, running.role(), &ran, &running.values).into()
            }
            Ended::Again { why, after } => Attempt {
                again: Some(after.unwrap_or_default()),
                report: HookReport { took: Some(took), ..failed(why) },
            },
            Ended::TimedOut { why } => {
                HookReport { took: Some(took), message: Some(why), ..HookOutcome::TimedOut.into() }.into()
            }
            Ended::Failed { why } => Attempt { again: None, report: HookReport { took: Some(took), ..failed(why) } },
        })
    }

    /// Waits for the answer, unless somebody asks for the end meanwhile. The request is then on its own: it ends with its
    /// timeout, or with us.
    fn sent(&self, running: &Running<'_>, request: Request) -> Option<Ended> {
        let (tell, told) = channel();
        thread::spawn(move || drop(tell.send(http::meaning(&http::send(&request)))));
        let control = self.control_for(running.resolve);
        loop {
            match told.recv_timeout(NOTICED) {
                Ok(ended) => return Some(ended),
                Err(RecvTimeoutError::Timeout) if !control.is_cancelled() => {}
                Err(_) => return None,
            }
        }
    }
}

/// The same for every attempt, and for no other event of any project.
fn key(running: &Running<'_>) -> String {
    let event = Digest::of(&encode(&running.scene.event.envelope)).to_string();
    format!("{}-{}", &event[..32], running.debt)
}

fn failed(why: String) -> HookReport {
    HookReport { message: Some(why), ..HookOutcome::Failure.into() }
}

/// What cannot be sent now cannot be sent later either.
fn never(why: String) -> Attempt {
    Attempt { report: failed(why), again: None }
}
