//! Heartbeats of the owners of other machines, and who has been silent for too long.

use std::collections::BTreeMap;
use std::time::Duration;

use windlass_store::SequencerError;

use super::connect_project;
use crate::project::Project;
use crate::{Failure, FailureCode};

/// Returns those of these owners of other machines that have been silent for longer than `limit`, by the clock of the service.
/// The service forgets a heartbeat only after a longer time, so an owner without one is silent, unless the service itself is
/// younger. A service that cannot be reached says nothing about anyone.
pub fn find_silent_owners(project: &Project, owners: &[String], limit: Duration) -> Result<Vec<String>, Failure> {
    if owners.is_empty() {
        return Ok(Vec::new());
    }
    let Some((_, mut service)) = connect_project(project)? else { return Ok(Vec::new()) };
    let list = match service.list_heartbeats() {
        Ok(list) => list,
        Err(SequencerError::Refused { source }) => {
            return Err(service_failure(&SequencerError::Refused { source }));
        }
        Err(SequencerError::Unreachable { .. } | SequencerError::OutcomeUnknown { .. }) => return Ok(Vec::new()),
    };
    let ages: BTreeMap<String, Duration> =
        list.heartbeats.into_iter().map(|(heartbeat, age)| (heartbeat.owner, age)).collect();
    let is_silent = |owner: &&String| *ages.get(*owner).unwrap_or(&list.kept_for) > limit;
    Ok(owners.iter().filter(is_silent).cloned().collect())
}

/// Returns the failure of a call to the service of a fleet.
pub fn service_failure(error: &SequencerError) -> Failure {
    let hint = match error {
        SequencerError::Unreachable { .. } => "check that the servers run and that this machine can reach them",
        SequencerError::Refused { .. } => "check the address, the credentials and the version of the servers",
        SequencerError::OutcomeUnknown { .. } => {
            "look before you try again: `windlass events` shows whether it was recorded"
        }
    };
    Failure::from_error(FailureCode::Fleet, error).with_hint(hint)
}
