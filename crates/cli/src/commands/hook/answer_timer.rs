//! The time limit for an answer to an agent's hook call.
//!
//! Invariant: the agent gets exactly one answer, and in time, even if a hook, the store or an agent that never closes its
//! output delays the command.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use windlass_app::{Failure, environment};
use windlass_engine::duration_in_words;
use windlass_text as text;

/// The timer of one call. It answers the agent when the time has run out.
pub struct AnswerTimer {
    began: Instant,
    within: Option<Duration>,
    /// Whether an answer has been given, or is about to be.
    answered: Arc<AtomicBool>,
}

impl AnswerTimer {
    /// Starts the timer. `late` writes the answer when time has run out.
    pub fn start(within: Option<Duration>, late: impl FnOnce(String) + Send + 'static) -> Self {
        let answered = Arc::new(AtomicBool::new(false));
        let clock = Self { began: Instant::now(), within, answered: answered.clone() };
        if let Some(within) = within {
            let message = clock.timeout_message();
            // Hooks are asked to end at the limit, and have a moment for that.
            let patience = within + (within / 4).min(Duration::from_secs(1));
            thread::spawn(move || {
                thread::sleep(patience);
                if !answered.swap(true, Ordering::SeqCst) {
                    late(message);
                    environment::exit_process(0);
                }
            });
        }
        clock
    }

    /// Claims the answer, so that the timer gives none.
    pub fn claim_answer(&self) {
        // The timer may have answered already and is about to end this process.
        while self.answered.swap(true, Ordering::SeqCst) {
            thread::park();
        }
    }

    fn timeout_message(&self) -> String {
        let time = self.within.map(duration_in_words).unwrap_or_default();
        format!(
            "windlass: after {time} nothing was decided, and the agent continues: a hook or the store took too long"
        )
    }

    /// Returns the time that is left.
    pub fn remaining_time(&self) -> Option<Duration> {
        self.within.map(|within| within.saturating_sub(self.began.elapsed()))
    }

    /// Returns the message for the person when nothing could be checked.
    pub fn failure_message(&self, failure: &Failure) -> String {
        if self.within.is_some_and(|within| self.began.elapsed() >= within) {
            return self.timeout_message();
        }
        let causes: String = failure.causes.iter().map(|cause| format!(": {cause}")).collect();
        let hint = failure.hint.as_deref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        text::clean_line(&format!("windlass: nothing was checked: {failure}{causes}{hint}")).into_owned()
    }
}
