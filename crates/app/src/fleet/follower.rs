//! A thread of a long-lived process that follows the fleet's log: it folds new messages into this machine's copy, so that the
//! rest of the process sees them as commits of another process; and it sends the heartbeats of this process's owners.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use windlass_engine::{EventType, Seq, StateView};
use windlass_fleet::{FleetService, OwnerHeartbeat};
use windlass_process::wake_owner;
use windlass_store::{EventFilter, Lifetime, SqliteStore, Store, StoreError};

use super::connection::call_patiently;
use super::publication::publish_new_events;
use super::{FleetMembership, connect_project};
use crate::context::OpenedProject;
use crate::failure::describe_with_causes;
use crate::project::Project;
use crate::{Failure, FailureCode, FrontEnd, Notice, hints, store_records};

/// The longest wait for messages, after which the thread looks whether it has to end.
const FOLLOW_SLICE: Duration = Duration::from_millis(250);
/// The wait after a failed call.
const RETRY_WAIT: Duration = Duration::from_secs(1);
/// How far the clock of a machine may differ from the clock of the service before it is named, and before it takes no tasks.
const NAMED_SKEW: Duration = Duration::from_secs(5);
const REFUSED_SKEW: Duration = Duration::from_secs(60);

/// How a process follows the log.
#[derive(Debug, Clone, Default)]
pub struct FollowSettings {
    /// The owners whose heartbeats it sends.
    pub owners: Vec<String>,
    /// The time between two heartbeats.
    pub interval: Duration,
    /// How long the service keeps a heartbeat.
    pub lifetime: Duration,
    /// The digest of the configuration that the owners work with.
    pub config: String,
    /// Whether accepted events are published for other programs.
    pub publishes: bool,
}

/// The running thread. Dropping it ends the thread with its next look, after the last events are published and its heartbeats are
/// gone. A log that is away is not waited for.
#[derive(Debug)]
pub struct FleetFollower {
    is_stopped: Arc<AtomicBool>,
    is_away: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for FleetFollower {
    fn drop(&mut self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        let thread = self.thread.take().filter(|_| !self.is_away.load(Ordering::Relaxed));
        if let Some(thread) = thread {
            // A thread that has panicked does nothing more.
            let _ = thread.join();
        }
    }
}

impl FleetFollower {
    /// Starts to follow the log, once the service has the first heartbeats. None if the project is in no fleet.
    pub fn start(opened: &OpenedProject, settings: FollowSettings) -> Result<Option<Self>, Failure> {
        if !opened.store.has_log() {
            return Ok(None);
        }
        let Some((membership, mut service)) = connect_project(&opened.project)? else { return Ok(None) };
        if !settings.owners.is_empty() {
            check_clock(service.as_mut(), &*opened.front_end)?;
        }
        let store = store_records::open_store(&opened.project, Lifetime::Service, opened.trust)?;
        let (is_stopped, is_away) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let mut work = FollowWork {
            project: opened.project.clone(),
            membership,
            settings,
            service,
            front_end: opened.front_end.clone(),
            is_stopped: is_stopped.clone(),
            is_away: is_away.clone(),
        };
        let head = store.head().map_err(hints::store_failure)?;
        let chain = store.chain_link_at(head).map_err(hints::store_failure)?.unwrap_or_default();
        call_patiently(&*opened.front_end, || work.send_heartbeats(head, &chain))?;
        let thread = thread::Builder::new().name("fleet-follower".to_owned()).spawn(move || work.follow(store));
        let thread = thread.map_err(|error| {
            Failure::new(FailureCode::System, "cannot start to follow the fleet's log").with_cause(error)
        })?;
        Ok(Some(Self { is_stopped, is_away, thread: Some(thread) }))
    }
}

/// Warns of a clock that differs from the clock of the service, and refuses work with one that differs too much.
fn check_clock(service: &mut dyn FleetService, front_end: &dyn FrontEnd) -> Result<(), Failure> {
    let report = call_patiently(front_end, || service.inspect_service())?;
    if let Some(warning) = judge_clock_skew(&report.name, report.clock_skew_millis)? {
        front_end.show_notice(Notice::Warning(&warning));
    }
    Ok(())
}

/// Returns the warning about a clock that is ahead of the clock of the service by this much.
fn judge_clock_skew(service: &str, skew_millis: i64) -> Result<Option<String>, Failure> {
    let skew = Duration::from_millis(skew_millis.unsigned_abs());
    let direction = if skew_millis > 0 { "ahead of" } else { "behind" };
    let text = format!("the clock of this machine is {} s {direction} the clock of {service}", skew.as_secs());
    if skew > REFUSED_SKEW {
        return Err(Failure::new(FailureCode::Fleet, "cannot work on tasks with a wrong clock")
            .with_cause(text)
            .with_hint("set the clock, for example with NTP"));
    }
    Ok((skew > NAMED_SKEW).then_some(text))
}

struct FollowWork {
    project: Project,
    membership: FleetMembership,
    settings: FollowSettings,
    service: Box<dyn FleetService>,
    front_end: Arc<dyn FrontEnd>,
    is_stopped: Arc<AtomicBool>,
    /// Whether the log was away at the last call.
    is_away: Arc<AtomicBool>,
}

impl FollowWork {
    fn follow(&mut self, mut store: SqliteStore) {
        store.set_outage_policy(|_| false);
        let mut next_beat = Instant::now() + self.settings.interval;
        let mut seen = store.head().unwrap_or(Seq::START);
        while !self.is_stopped.load(Ordering::Relaxed) {
            let followed = self.follow_once(&mut store, &mut next_beat);
            self.note_outage(followed.err());
            seen = self.wake_cancelled_owners(&store, seen);
            if self.is_away.load(Ordering::Relaxed) {
                thread::sleep(RETRY_WAIT);
            }
        }
        if self.is_away.load(Ordering::Relaxed) {
            return;
        }
        self.publish_events(&store);
        let machine = self.membership.machine(&self.project).to_string();
        for owner in &self.settings.owners {
            // The service forgets it after a while.
            let _ = self.service.remove_heartbeat(&machine, owner);
        }
    }

    /// Sends what is due, waits a moment for messages, and folds them. An error says why the log is away.
    fn follow_once(&mut self, store: &mut SqliteStore, next_beat: &mut Instant) -> Result<(), String> {
        let text = |error: StoreError| describe_with_causes(&error);
        if !self.settings.owners.is_empty() && Instant::now() >= *next_beat {
            // Before the fold, which may take long: this process is alive.
            let head = store.head().map_err(text)?;
            let chain = store.chain_link_at(head).map_err(text)?.unwrap_or_default();
            self.send_heartbeats(head, &chain).map_err(|error| describe_with_causes(&error))?;
            *next_beat = Instant::now() + self.settings.interval;
        }
        self.publish_events(store);
        let until_beat = next_beat.saturating_duration_since(Instant::now());
        let patience = if self.settings.owners.is_empty() { FOLLOW_SLICE } else { FOLLOW_SLICE.min(until_beat) };
        store.follow_log(patience).map_err(text)
    }

    /// Publishes events for other programs, until the service refuses it.
    fn publish_events(&mut self, store: &SqliteStore) {
        if !self.settings.publishes {
            return;
        }
        if let Err(failure) = publish_new_events(self.service.as_mut(), store)
            && !self.is_away.load(Ordering::Relaxed)
        {
            let cause = failure.causes.first().map(|cause| format!(": {cause}")).unwrap_or_default();
            let text = format!("this run publishes no more events: {}{cause}", failure.message);
            self.front_end.show_notice(Notice::Warning(&text));
            self.settings.publishes = false;
        }
    }

    fn send_heartbeats(&mut self, head: Seq, chain: &str) -> Result<(), windlass_store::SequencerError> {
        let machine = self.membership.machine(&self.project).to_string();
        for owner in &self.settings.owners {
            let heartbeat = OwnerHeartbeat {
                machine: machine.clone(),
                owner: owner.clone(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                config: self.settings.config.clone(),
                position: head.0,
                chain: chain.to_owned(),
            };
            self.service.record_heartbeat(&heartbeat, self.settings.lifetime)?;
        }
        Ok(())
    }

    /// Makes the runners of this process look for a cancellation, if another machine has cancelled their session since a position.
    /// Returns the last position that was looked at.
    fn wake_cancelled_owners(&self, store: &SqliteStore, seen: Seq) -> Seq {
        let Ok(head) = store.head() else { return seen };
        if head == seen || self.settings.owners.is_empty() {
            return head;
        }
        let filter = EventFilter { types: vec![EventType::SessionStopping], ..EventFilter::default() };
        let stopping = store.read_events(&filter, seen, usize::MAX).unwrap_or_default();
        let snapshot = store.begin_snapshot().ok();
        for name in stopping.into_iter().filter_map(|record| record.envelope.session) {
            let session = snapshot.as_ref().and_then(|snapshot| snapshot.find_session(&name).ok().flatten());
            // A runner of this session listens to the signal; the rest of the process may not.
            let owner = session.map(|session| session.owner.to_string());
            if let Some(owner) = owner.filter(|owner| self.settings.owners.contains(owner)) {
                wake_owner(&self.project.owner_directory(), &owner);
            }
        }
        head
    }

    /// Notes once that the log is away, and once that it is back.
    fn note_outage(&mut self, error: Option<String>) {
        let was_away = self.is_away.swap(error.is_some(), Ordering::Relaxed);
        match error {
            Some(why) if !was_away => {
                let text = format!("{why}; the work goes on, and waits to be recorded");
                self.front_end.show_notice(Notice::Warning(&text));
            }
            None if was_away => self.front_end.show_notice(Notice::Note("the log of the fleet is back")),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_is_named_from_five_seconds_and_refused_from_a_minute() {
        let judge = |millis| judge_clock_skew("NATS", millis).map_err(|failure| failure.causes);
        for near in [0, 5000, -5000] {
            assert_eq!(judge(near), Ok(None));
        }
        let ahead = "the clock of this machine is 6 s ahead of the clock of NATS".to_owned();
        assert_eq!(judge(6000), Ok(Some(ahead)));
        let behind = "the clock of this machine is 60 s behind the clock of NATS".to_owned();
        assert_eq!(judge(-60_000), Ok(Some(behind)));
        assert_eq!(judge(61_000), Err(vec!["the clock of this machine is 61 s ahead of the clock of NATS".to_owned()]));
    }
}
