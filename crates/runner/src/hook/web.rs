//! Webhooks.

use std::time::{Duration, Instant};

use windlass_engine::{Digest, HookOutcome, HookReport, encode};
use windlass_hooks::WebhookAddress;
use windlass_hooks::http::{self, Ended};

use super::{HookAttempt, HookRun};
use crate::{EffectRunner, RunError};

impl EffectRunner<'_> {
    pub(super) fn send(&mut self, run: &HookRun<'_>, address: &WebhookAddress) -> Result<HookAttempt, RunError> {
        let request = match address.request(&self.input(run), run.timeout(), key(run)) {
            Ok(request) => request,
            Err(error) => return Ok(never(error.to_string())),
        };
        let began = Instant::now();
        let Some(ended) = http::ask(request, &self.settings.mask, || self.control.is_cancelled()) else {
            return Ok(HookReport::from(HookOutcome::Cancelled).into());
        };
        let ended = match ended {
            // A notice decides nothing, so its answer does not count.
            Ended::Ok(_) if run.is_notice() => Ended::Ok(String::new()),
            ended => ended,
        };
        let least = match &ended {
            Ended::Again { after, .. } => Some(after.unwrap_or_default()),
            Ended::Ok(_) | Ended::TimedOut { .. } => Some(Duration::ZERO),
            Ended::Failed { .. } => None,
        };
        let report = http::report(run.hook, run.role(), ended, began.elapsed(), &run.values);
        let attempt = HookAttempt::from(report);
        Ok(HookAttempt { retry_after: attempt.retry_after.and(least), ..attempt })
    }
}

/// Returns an idempotency key: the same for every attempt, and different for every event of every project.
fn key(run: &HookRun<'_>) -> String {
    let event = Digest::of(&encode(&run.subject.event.envelope)).to_string();
    format!("{}-{}", &event[..32], run.effect)
}

/// Reports a request that no retry can send.
fn never(why: String) -> HookAttempt {
    let report = HookReport { message: Some(why), ..HookOutcome::Failure.into() };
    HookAttempt { report, retry_after: None, response: None }
}
