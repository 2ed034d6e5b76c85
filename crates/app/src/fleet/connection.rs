//! Connections to the log of a project's fleet.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use windlass_fleet::{FleetService, connect_service};
use windlass_process::RunControl;
use windlass_store::{SequencerError, SqliteStore, StoreError};

use super::FleetMembership;
use super::heartbeats::service_failure;
use crate::context::OpenedProject;
use crate::failure::describe_with_causes;
use crate::project::Project;
use crate::{Failure, FailureCode, FrontEnd, Notice, hints, time_format};

/// Connects a store to the log of its fleet, if it is a copy of one. The first call to the log opens the connection.
pub fn attach_log(project: &Project, store: &mut SqliteStore) -> Result<(), Failure> {
    if !store.is_replica().map_err(hints::store_failure)? {
        return Ok(());
    }
    // Without a membership, a write says what is missing, and reads go on.
    let Some(membership) = FleetMembership::find(project)? else { return Ok(()) };
    let service = open_service(&membership)?;
    store.attach_log(service, membership.machine(project).to_string());
    Ok(())
}

/// How long a command waits for a log that cannot be reached.
const COMMAND_PATIENCE: Duration = Duration::from_secs(30);
/// How long the log may be away before a person is told.
const NOTED_OUTAGE: Duration = Duration::from_secs(1);
/// The wait between two calls of a service that cannot be reached.
const CALL_INTERVAL: Duration = Duration::from_millis(250);
const WAITING_NOTE: &str = "waiting for the log of the fleet";

/// A membership, and a connection to its service.
pub type FleetConnection = (FleetMembership, Box<dyn FleetService>);

/// Prepares a connection to the service of a project's fleet. None if the project is in no fleet.
pub fn connect_project(project: &Project) -> Result<Option<FleetConnection>, Failure> {
    let Some(membership) = FleetMembership::find(project)? else { return Ok(None) };
    let service = open_service(&membership)?;
    Ok(Some((membership, service)))
}

pub(super) fn open_service(membership: &FleetMembership) -> Result<Box<dyn FleetService>, Failure> {
    connect_service(membership.access()?).map_err(|error| {
        Failure::new(FailureCode::System, "cannot start the connection to the fleet").with_cause(error)
    })
}

/// Folds what is new in the fleet's log, for a command that reads. Without the log, the command reads the copy as it is.
pub fn refresh_copy(opened: &OpenedProject) -> Result<(), Failure> {
    if !opened.store.has_log() {
        return Ok(());
    }
    let error = match opened.store.catch_up() {
        Ok(_) => return Ok(()),
        Err(error) => error,
    };
    let head = opened.store.head().map_err(hints::store_failure)?;
    let last = opened.store.read_event(head).map_err(hints::store_failure)?;
    let as_of = last.map_or_else(
        || "before the first event".to_owned(),
        |record| format!("as of {}", time_format::format_local_time(record.envelope.timestamp)),
    );
    let why = match &error {
        StoreError::Unreachable(SequencerError::Unreachable { .. }) => {
            "the log of the fleet cannot be reached".to_owned()
        }
        error => describe_with_causes(error),
    };
    opened.front_end.show_notice(Notice::Warning(&format!("{why}: this is the copy of this machine, {as_of}")));
    Ok(())
}

/// Repeats a call of a service that cannot be reached, for as long as a command waits for the log.
pub fn call_patiently<T>(
    front_end: &dyn FrontEnd,
    mut call: impl FnMut() -> Result<T, SequencerError>,
) -> Result<T, Failure> {
    let began = Instant::now();
    loop {
        match call() {
            Err(SequencerError::Unreachable { .. } | SequencerError::OutcomeUnknown { .. })
                if began.elapsed() < COMMAND_PATIENCE =>
            {
                if began.elapsed() > NOTED_OUTAGE {
                    front_end.show_notice(Notice::NoteOnce(WAITING_NOTE));
                }
                thread::sleep(CALL_INTERVAL);
            }
            done => return done.map_err(|error| service_failure(&error)),
        }
    }
}

/// Makes commits wait half a minute for the log, and say so.
pub fn wait_for_log_shortly(opened: &mut OpenedProject) {
    if !opened.store.has_log() {
        return;
    }
    let front_end: Arc<dyn FrontEnd> = opened.front_end.clone();
    opened.store.set_outage_policy(move |away| {
        if away > NOTED_OUTAGE {
            front_end.show_notice(Notice::NoteOnce(WAITING_NOTE));
        }
        away < COMMAND_PATIENCE
    });
}

/// Makes commits wait for the log until a person cancels: the work goes on, and is recorded when the log is back.
pub fn wait_for_log_until_cancelled(opened: &mut OpenedProject, control: &RunControl) {
    let (control, front_end): (_, Arc<dyn FrontEnd>) = (control.clone(), opened.front_end.clone());
    opened.store.set_outage_policy(move |away| {
        if away > NOTED_OUTAGE {
            front_end.show_notice(Notice::NoteOnce(WAITING_NOTE));
        }
        !control.is_cancelled()
    });
}
