//! The time that an agent gives its hooks.
//!
//! Invariant: the agent is answered once, and in time, whatever keeps us: a hook, the store, or the agent itself that does not
//! say all that it has to say.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use windlass_app::{Failure, environment};
use windlass_engine::in_words;
use windlass_text as text;

/// How long the agent waits. Whatever keeps us, it is answered in time.
pub struct Clock {
    began: Instant,
    within: Option<Duration>,
    /// Whether somebody has answered, or is about to.
    answered: Arc<AtomicBool>,
}

impl Clock {
    /// `late` is what is said when time has run out.
    pub fn start(within: Option<Duration>, late: impl FnOnce(String) + Send + 'static) -> Self {
        let answered = Arc::new(AtomicBool::new(false));
        let clock = Self { began: Instant::now(), within, answered: answered.clone() };
        if let Some(within) = within {
            let message = clock.late();
            // Hooks are asked to end when it is time, and have a moment for that.
            let patience = within + (within / 4).min(Duration::from_secs(1));
            thread::spawn(move || {
                thread::sleep(patience);
                if !answered.swap(true, Ordering::SeqCst) {
                    late(message);
                    environment::exit(0);
                }
            });
        }
        clock
    }

    /// From now on nobody else answers.
    pub fn stop(&self) {
        // Somebody else may have answered, and is about to end this process.
        while self.answered.swap(true, Ordering::SeqCst) {
            thread::park();
        }
    }

    fn late(&self) -> String {
        let time = self.within.map(in_words).unwrap_or_default();
        format!("windlass: after {time} nothing was decided, and the agent goes on: a hook or the store took too long")
    }

    /// How much of the time is left.
    pub fn left(&self) -> Option<Duration> {
        self.within.map(|within| within.saturating_sub(self.began.elapsed()))
    }

    /// What a person is told where nothing could be checked.
    pub fn went_wrong(&self, failure: &Failure) -> String {
        if self.within.is_some_and(|within| self.began.elapsed() >= within) {
            return self.late();
        }
        let causes: String = failure.causes.iter().map(|cause| format!(": {cause}")).collect();
        let hint = failure.hint.as_deref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        text::line(&format!("windlass: nothing was checked: {failure}{causes}{hint}")).into_owned()
    }
}
