//! The checks of a killed session: the event log, the acknowledged events and the recorder must agree.
//!
//! | violation | finding |
//! | --- | --- |
//! | `LostEvent` | the log lacks an acknowledged event, or has a different one |
//! | `UnrecordedStart` | a program ran, but the log does not record its start by that run in that order |
//! | `MissingRun` | the log records a start, but the program did not run, and no kill explains it |
//! | `RepeatedRun` | a program ran again although it may run only once |
//! | `InventedEnd` | the log records an end that did not happen, or no end |
//! | `TruncatedPayload` | a hook continued with a part of its payload |
//! | `WrongFeedback` | feedback is not in exactly one finished turn, not in the prompt that the log records, or marked incorrectly |
//! | `StaleRun` | a program of a dead run continued after another run had taken over |
//! | `DifferentResult` | the session result differs from that of a run without a crash (`session_result`) |
//! | `SurvivingProcess`, `DoctorProblem`, `UnexpectedOutput` | a process survived; `doctor` reports a problem; a command or the recorder has unexpected output |
//!
//! A run starts one program at a time. So the recorder has the same starts as the log, in the same order. Only the last one may
//! be missing, if the kill came between the log entry and the start of the program.

use std::collections::{BTreeMap, BTreeSet};

use super::log::{self, LogEvent, LoggedProgram};
use super::recorder::{self, HookFeedback, RecordedProgram};
use super::scenario::{REPEATABLE_HOOKS, SessionObservations};
use super::session_result;

/// The guarantee that is violated. The module documentation describes each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ViolationKind {
    LostEvent,
    UnrecordedStart,
    MissingRun,
    RepeatedRun,
    InventedEnd,
    TruncatedPayload,
    WrongFeedback,
    StaleRun,
    DifferentResult,
    SurvivingProcess,
    DoctorProblem,
    UnexpectedOutput,
}

/// A violation of a guarantee.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuaranteeViolation {
    pub kind: ViolationKind,
    pub details: String,
}

impl GuaranteeViolation {
    pub fn new(kind: ViolationKind, details: impl Into<String>) -> Self {
        Self { kind, details: details.into() }
    }
}

/// Returns all violations in an observed session.
pub fn find_violations(observed: &SessionObservations, baseline: &SessionObservations) -> Vec<GuaranteeViolation> {
    let log = log::parse_events(&observed.log);
    let (recorded, malformed_lines) = recorder::parse_recorder(&observed.recorder);
    let session = RecordedSession { logged: log::logged_programs(&log), log, recorded };
    let mut violations = observed.runs.violations.clone();
    violations.extend(
        malformed_lines.into_iter().map(|details| GuaranteeViolation::new(ViolationKind::UnexpectedOutput, details)),
    );
    violations.extend(find_lost_events(observed));
    violations.extend(session.check_starts());
    violations.extend(session.check_repeated_runs());
    violations.extend(session.check_ends());
    violations.extend(session.check_payloads());
    violations.extend(session.check_queued_feedback());
    violations.extend(session.check_prompts());
    violations.extend(
        recorder::find_starts_after_takeover(&observed.recorder)
            .into_iter()
            .map(|line| GuaranteeViolation::new(ViolationKind::StaleRun, line)),
    );
    let (ours, theirs) =
        (session_result::from_log(&session.log), session_result::from_log(&log::parse_events(&baseline.log)));
    violations.extend(
        session_result::first_difference(&ours, &theirs)
            .map(|details| GuaranteeViolation::new(ViolationKind::DifferentResult, details)),
    );
    violations
}

/// Returns printed events that the log does not have. A truncated line does not count as printed.
fn find_lost_events(observed: &SessionObservations) -> Vec<GuaranteeViolation> {
    let log: BTreeSet<&str> = observed.log.lines().collect();
    let printed_lines = observed.runs.acknowledged.iter().flat_map(|text| text.split_inclusive('\n'));
    let complete_lines = printed_lines.filter_map(|line| line.strip_suffix('\n'));
    complete_lines
        .filter(|line| !log.contains(line))
        .map(|line| GuaranteeViolation::new(ViolationKind::LostEvent, line))
        .collect()
}

/// A session according to the log and according to the recorder.
struct RecordedSession {
    log: Vec<LogEvent>,
    logged: Vec<LoggedProgram>,
    recorded: Vec<RecordedProgram>,
}

impl RecordedSession {
    /// Returns every program in the log, with its entry in the recorder.
    fn pair_with_recorder(&self) -> Vec<(&LoggedProgram, Option<&RecordedProgram>)> {
        let mut next: BTreeMap<&str, usize> = BTreeMap::new();
        let mut pairs = Vec::with_capacity(self.logged.len());
        for logged in &self.logged {
            let position = next.entry(&logged.owner).or_default();
            let mut of_owner = self.recorded.iter().filter(|recorded| recorded.owner() == logged.owner);
            pairs.push((logged, of_owner.nth(*position)));
            *position += 1;
        }
        pairs
    }

    /// Returns the owner of the last run, which was not killed unless the session had ended before.
    fn last_owner(&self) -> &str {
        let is_start = |event: &&LogEvent| ["session_started", "session_resumed"].contains(&event.event_type());
        self.log.iter().rfind(is_start).map(|event| event.text_field("owner")).unwrap_or_default()
    }

    fn is_stopped(&self) -> bool {
        self.log.iter().any(|event| event.event_type() == "session_stopping")
    }

    /// Checks that the starts in the recorder are the starts in the log.
    fn check_starts(&self) -> Vec<GuaranteeViolation> {
        let owners: BTreeSet<&str> = self
            .logged
            .iter()
            .map(|logged| &*logged.owner)
            .chain(self.recorded.iter().map(RecordedProgram::owner))
            .collect();
        let last_owner = self.last_owner();
        let mut violations = Vec::new();
        for owner in owners {
            let logged_starts: Vec<_> = self
                .logged
                .iter()
                .filter(|logged| logged.owner == owner)
                .map(|logged| (&*logged.name, logged.iteration))
                .collect();
            let recorded_starts: Vec<_> = self
                .recorded
                .iter()
                .filter(|recorded| recorded.owner() == owner)
                .map(|recorded| (&*recorded.name, recorded.iteration))
                .collect();
            if !logged_starts.starts_with(&recorded_starts) {
                violations.push(GuaranteeViolation::new(
                    ViolationKind::UnrecordedStart,
                    format!("{owner} ran {recorded_starts:?}, and the log says {logged_starts:?}"),
                ));
            } else if logged_starts.len() - recorded_starts.len() > usize::from(owner != last_owner) {
                violations.push(GuaranteeViolation::new(
                    ViolationKind::MissingRun,
                    format!("{owner} ran {recorded_starts:?}, and the log says {logged_starts:?}"),
                ));
            }
        }
        violations
    }

    /// Checks that only repeatable hooks run again, and that the log counts the attempts.
    fn check_repeated_runs(&self) -> Vec<GuaranteeViolation> {
        let mut attempts: BTreeMap<&str, u64> = BTreeMap::new();
        let mut violations = Vec::new();
        for logged in &self.logged {
            let times = attempts.entry(&logged.debt).or_default();
            *times += 1;
            if logged.attempt != *times || (*times > 1 && !REPEATABLE_HOOKS.contains(&&*logged.name)) {
                let details =
                    format!("{} {}: attempt {}, for the {times}. time", logged.name, logged.debt, logged.attempt);
                violations.push(GuaranteeViolation::new(ViolationKind::RepeatedRun, details));
            }
        }
        violations
    }

    /// Checks that the ends in the log agree with the recorder.
    fn check_ends(&self) -> Vec<GuaranteeViolation> {
        let mut violations = Vec::new();
        for (logged, recorded) in self.pair_with_recorder() {
            let has_ended = recorded.is_some_and(|recorded| recorded.end.is_some());
            let is_consistent = match logged.end.as_deref() {
                None => false,
                Some("taken over") => logged.owner != self.last_owner(),
                Some("interrupted") if logged.name == "agent" => logged.owner != self.last_owner() || self.is_stopped(),
                Some("interrupted") => logged.owner != self.last_owner() && !REPEATABLE_HOOKS.contains(&&*logged.name),
                Some(_) => has_ended,
            };
            if !is_consistent {
                let details =
                    format!("{} {}: {:?}, by the recorder {recorded:?}", logged.name, logged.debt, logged.end);
                violations.push(GuaranteeViolation::new(ViolationKind::InventedEnd, details));
            }
        }
        violations
    }

    /// Checks that every hook got its complete payload.
    fn check_payloads(&self) -> Vec<GuaranteeViolation> {
        let truncated = self.recorded.iter().filter(|recorded| recorded.is_truncated);
        truncated
            .map(|recorded| {
                GuaranteeViolation::new(ViolationKind::TruncatedPayload, format!("{} {}", recorded.name, recorded.tag))
            })
            .collect()
    }

    /// Checks that the log queues the feedback of each finished hook once, and no other feedback.
    fn check_queued_feedback(&self) -> Vec<GuaranteeViolation> {
        let mut violations = Vec::new();
        let mut markers: Vec<String> = log::queued_markers(&self.log).into_values().collect();
        let has_feedback = |recorded: &&RecordedProgram| recorded.end == Some(HookFeedback::Present);
        for (logged, recorded) in self.pair_with_recorder() {
            let has_ended = !matches!(logged.end.as_deref(), None | Some("taken over" | "interrupted"));
            let Some(recorded) = recorded.filter(has_feedback).filter(|_| has_ended) else { continue };
            match markers.iter().position(|marker| *marker == recorded.tag) {
                Some(place) => drop(markers.remove(place)),
                None => violations.push(GuaranteeViolation::new(
                    ViolationKind::WrongFeedback,
                    format!("{} of {} is not queued", recorded.tag, recorded.name),
                )),
            }
        }
        violations.extend(
            markers
                .into_iter()
                .map(|marker| GuaranteeViolation::new(ViolationKind::WrongFeedback, format!("no event said {marker}"))),
        );
        violations
    }

    /// Checks that the agent got the prompts of the log, and that each piece of feedback is in exactly one finished turn.
    /// Feedback that was queued after the last turn stays with the task.
    fn check_prompts(&self) -> Vec<GuaranteeViolation> {
        let markers = log::queued_markers(&self.log);
        let mut violations = Vec::new();
        for (turn, recorded) in self.pair_with_recorder().into_iter().filter(|(logged, _)| logged.name == "agent") {
            let expected = turn.prompt_markers(&markers);
            if let Some(prompt) = recorded.and_then(|recorded| recorded.prompt.as_ref())
                && *prompt != expected
            {
                let details = format!("turn {} got {prompt:?}, and the log says {expected:?}", turn.debt);
                violations.push(GuaranteeViolation::new(ViolationKind::WrongFeedback, details));
            }
        }
        let single_iteration = log::single_iteration_feedback(&self.log);
        let was_replaced = |seq, counts| counts == (0, 0) && single_iteration.contains(&seq);
        let last_turn = self.log.iter().rfind(|event| event.is_turn_finished()).map_or(0, LogEvent::seq);
        let is_kept = |seq, counts| counts == (0, 0) && seq > last_turn;
        let misdelivered = log::count_deliveries(&self.log, &self.logged)
            .into_iter()
            .filter(|(seq, counts)| *counts != (1, 1) && !was_replaced(*seq, *counts) && !is_kept(*seq, *counts));
        violations.extend(misdelivered.map(|(seq, counts)| misdelivery_violation(seq, counts)));
        violations
    }
}

/// Returns the violation of feedback that is not in exactly one finished turn.
pub fn misdelivery_violation(seq: u64, (turns, deliveries): (usize, usize)) -> GuaranteeViolation {
    GuaranteeViolation::new(
        ViolationKind::WrongFeedback,
        format!("feedback {seq} is in {turns} finished turns, and was delivered {deliveries} times"),
    )
}
