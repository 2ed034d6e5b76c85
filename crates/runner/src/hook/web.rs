//! Webhooks.

use std::time::{Duration, Instant};

use windlass_engine::{Digest, HookOutcome, HookReport, encode};
use windlass_hooks::Address;
use windlass_hooks::http::{self, Ended};

use super::{Attempt, Running};
use crate::{Dispatch, RunError};

impl Dispatch<'_> {
    pub(super) fn send(&mut self, running: &Running<'_>, address: &Address) -> Result<Attempt, RunError> {
        let request = match address.request(&self.call(running), running.timeout(), key(running)) {
            Ok(request) => request,
            Err(error) => return Ok(never(error.to_string())),
        };
        let began = Instant::now();
        let Some(ended) = http::ask(request, &self.settings.mask, || self.control.is_cancelled()) else {
            return Ok(HookReport::from(HookOutcome::Cancelled).into());
        };
        let ended = match ended {
            // Whoever is told has nothing to decide.
            Ended::Ok(_) if running.is_notice() => Ended::Ok(String::new()),
            ended => ended,
        };
        let least = match &ended {
            Ended::Again { after, .. } => Some(after.unwrap_or_default()),
            Ended::Ok(_) | Ended::TimedOut { .. } => Some(Duration::ZERO),
            Ended::Failed { .. } => None,
        };
        let report = http::report(running.hook, running.role(), ended, began.elapsed(), &running.values);
        let attempt = Attempt::from(report);
        Ok(Attempt { again: attempt.again.and(least), ..attempt })
    }
}

/// The same for every attempt, and for no other event of any project.
fn key(running: &Running<'_>) -> String {
    let event = Digest::of(&encode(&running.scene.event.envelope)).to_string();
    format!("{}-{}", &event[..32], running.effect)
}

/// What cannot be sent now cannot be sent later either.
fn never(why: String) -> Attempt {
    let report = HookReport { message: Some(why), ..HookOutcome::Failure.into() };
    Attempt { report, again: None, said: None }
}
