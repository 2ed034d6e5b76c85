//! Sends a hook's request to a server, and builds a report from the response.
//!
//! Invariant: secrets are masked before a response is cut: half a secret is one too.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use windlass_engine::{HookOutcome, HookReport};
use windlass_process::ProgramOutcome;

use super::{WebhookOutcome, WebhookRequest, classify_response, send_request};
use crate::report::build_report;
use crate::{HookRole, RunnableHook, SecretMask};

/// The delay after which a cancellation ends the wait.
const CANCEL_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Sends the request, and waits for its response or for a cancellation. A cancelled request stays on its own thread until
/// its timeout or until this process ends.
pub fn send_until_cancelled(
    request: WebhookRequest,
    mask: &SecretMask,
    is_cancelled: impl Fn() -> bool,
) -> Option<WebhookOutcome> {
    let (sender, receiver) = channel();
    thread::spawn(move || drop(sender.send(send_request(&request))));
    loop {
        match receiver.recv_timeout(CANCEL_POLL_INTERVAL) {
            Ok(sent) => return Some(classify_response(&sent.map(|response| mask.mask_response(response)))),
            Err(RecvTimeoutError::Timeout) if !is_cancelled() => {}
            Err(_) => return None,
        }
    }
}

/// Builds the report of a webhook from its outcome.
pub fn build_webhook_report(
    hook: &RunnableHook,
    role: HookRole,
    ended: WebhookOutcome,
    took: Duration,
    values: &Value,
) -> HookReport {
    let (outcome, why) = match ended {
        WebhookOutcome::Ok(body) => {
            let ran = ProgramOutcome { took, ..ProgramOutcome::success_with_stdout(body.into_bytes()) };
            return build_report(hook, role, &Ok(ran), values);
        }
        WebhookOutcome::TimedOut { why } => (HookOutcome::TimedOut, why),
        WebhookOutcome::Retryable { why, .. } | WebhookOutcome::Failed { why } => (HookOutcome::Failure, why),
    };
    HookReport { took: Some(took), message: Some(why), ..outcome.into() }
}
