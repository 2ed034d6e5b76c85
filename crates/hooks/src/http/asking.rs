//! Sends a hook's request to a server, and builds a report from the response.
//!
//! Invariant: secrets are masked before a response is cut: half a secret is one too.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use windlass_engine::{HookOutcome, HookReport};
use windlass_process::Finished;

use super::{Ended, Request, meaning, send};
use crate::{HookRole, Mask, RunnableHook, answer};

/// The delay after which a cancellation ends the wait.
const NOTICED: Duration = Duration::from_millis(20);

/// Sends the request, and waits for its response or for a cancellation. A cancelled request stays on its own thread until
/// its timeout or until this process ends.
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

/// Builds the report of a webhook from its outcome.
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
