//! Heartbeats of the owners of other machines, and who has been silent for too long.

use std::collections::BTreeMap;
use std::time::Duration;

use windlass_fleet::FleetService;
use windlass_store::SequencerError;

use crate::{Failure, FailureCode};

/// Returns those of these owners of other machines that have been silent for longer than `limit`, by the clock of the service.
/// The service forgets a heartbeat only after a longer time, so an owner without one is silent.
pub fn silent_owners(
    service: &mut dyn FleetService,
    owners: &[String],
    limit: Duration,
) -> Result<Vec<String>, Failure> {
    let found = service.list_heartbeats().map_err(|error| service_failure(&error))?;
    let ages: BTreeMap<String, Duration> = found.into_iter().map(|(heartbeat, age)| (heartbeat.owner, age)).collect();
    let is_silent = |owner: &&String| ages.get(*owner).is_none_or(|age| *age > limit);
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
