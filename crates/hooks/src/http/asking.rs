//! Asks a server on behalf of a hook, and makes a report of what comes.
//!
//! Invariant: secrets are masked before anything is cut out of an answer: half a secret is one too.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use windlass_engine::{HookOutcome, HookReport};
use windlass_process::Finished;

use super::{Ended, Request, meaning, send};
use crate::{HookRole, Mask, RunnableHook, answer};

/// How soon a request is given up once somebody asks for the end.
const NOTICED: Duration = Duration::from_millis(20);

/// Waits for the answer, unless somebody asks for the end meanwhile. The request is then on its own: it ends with its
/// timeout, or with us.
pub fn ask(request: Request, mask: &Mask, is_cancelled: impl Fn() -> bool) -> Option<Ended> {
    let (tell, told) = channel();
    thread::spawn(move || drop(tell.send(send(&request))));
    loop {
        match told.recv_timeout(NOTICED) {
            Ok(sent) => return Some(meaning(&sent.map(|response| mask.response(response)))),
            Err(RecvTimeoutError::Timeout) if !is_cancelled() => {}
            Err(_) => return None,
        }
    }
}

/// What an answer, or the lack of one, comes to.
pub fn report(hook: &RunnableHook, role: HookRole, ended: Ended, took: Duration, values: &Value) -> HookReport {
    let (outcome, why) = match ended {
        Ended::Ok(body) => {
            let ran = Finished { took, ..Finished::said(body.into_bytes()) };
            return answer(hook, role, &Ok(ran), values);
        }
        Ended::TimedOut { why } => (HookOutcome::TimedOut, why),
        Ended::Again { why, .. } | Ended::Failed { why } => (HookOutcome::Failure, why),
    };
    HookReport { took: Some(took), message: Some(why), ..outcome.into() }
}
