//! Webhooks.

use std::time::{Duration, Instant};

use windlass_engine::{Digest, HookOutcome, HookReport, encode_event};
use windlass_hooks::WebhookTemplate;
use windlass_hooks::http::{self, WebhookOutcome};

use super::{HookAttempt, HookRun};
use crate::{EffectRunner, RunError};

impl EffectRunner<'_> {
    pub(super) fn send_webhook(
        &mut self,
        run: &HookRun<'_>,
        address: &WebhookTemplate,
    ) -> Result<HookAttempt, RunError> {
        let request = match address.request(&self.hook_input(run), run.attempt_timeout(), idempotency_key(run)) {
            Ok(request) => request,
            Err(error) => return Ok(permanent_failure(error.to_string())),
        };
        let began = Instant::now();
        let Some(ended) = http::send_until_cancelled(request, &self.settings.mask, || self.control.is_cancelled())
        else {
            return Ok(HookReport::from(HookOutcome::Cancelled).into());
        };
        let ended = match ended {
            // A notice decides nothing, so its answer does not count.
            WebhookOutcome::Ok(_) if run.is_notice() => WebhookOutcome::Ok(String::new()),
            ended => ended,
        };
        let least = match &ended {
            WebhookOutcome::Retryable { after, .. } => Some(after.unwrap_or_default()),
            WebhookOutcome::Ok(_) | WebhookOutcome::TimedOut { .. } => Some(Duration::ZERO),
            WebhookOutcome::Failed { .. } => None,
        };
        let report = http::build_webhook_report(run.hook, run.hook_role(), ended, began.elapsed(), &run.values);
        let attempt = HookAttempt::from(report);
        Ok(HookAttempt { retry_after: attempt.retry_after.and(least), ..attempt })
    }
}

/// Returns an idempotency key: the same for every attempt, and different for every event of every project.
fn idempotency_key(run: &HookRun<'_>) -> String {
    let event = Digest::of_bytes(&encode_event(&run.subject.event.envelope)).to_string();
    format!("{}-{}", &event[..32], run.effect)
}

/// Reports a request that no retry can send.
fn permanent_failure(why: String) -> HookAttempt {
    let report = HookReport { message: Some(why), ..HookOutcome::Failure.into() };
    HookAttempt { report, retry_after: None, response: None }
}
