//! Connections to the log of a project's fleet.

use windlass_fleet::{FleetService, connect_service};
use windlass_store::{SequencerError, SqliteStore, StoreError};

use super::FleetMembership;
use crate::project::Project;
use crate::{Failure, FailureCode, hints};

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

/// Prepares a connection to the service of a project's fleet. None if the project is in no fleet.
pub fn connect_project(project: &Project) -> Result<Option<(FleetMembership, Box<dyn FleetService>)>, Failure> {
    let Some(membership) = FleetMembership::find(project)? else { return Ok(None) };
    let service = open_service(&membership)?;
    Ok(Some((membership, service)))
}

fn open_service(membership: &FleetMembership) -> Result<Box<dyn FleetService>, Failure> {
    connect_service(membership.access()?)
        .map_err(|error| Failure::new(FailureCode::System, "cannot start the connection to the fleet").with_cause(error))
}

/// Describes why the log cannot be reached now, if that is what an error says.
pub fn describe_outage(error: &StoreError) -> Option<String> {
    let StoreError::Unreachable(cause) = error else { return None };
    let (SequencerError::Unreachable { source } | SequencerError::Refused { source } | SequencerError::OutcomeUnknown { source }) =
        cause;
    Some(source.to_string())
}
