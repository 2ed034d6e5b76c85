//! The membership of a project in a fleet, kept outside the project: where the log is, and who this machine is.

use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use windlass_engine::Digest;
use windlass_fleet::FleetAccess;
use windlass_process::{MachineTag, file};

use crate::atomic_file::{self, FileReaders};
use crate::project::Project;
use crate::{Failure, FailureCode, environment};

/// The largest record that is read, in bytes.
const MAX_MEMBERSHIP_FILE: u64 = 64 * 1024;
const MEMBERSHIP_VERSION: u32 = 1;

/// The membership of a project in a fleet, as this person has entered it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetMembership {
    version: u32,
    /// For people who read the file; the name of the file is what counts.
    project: String,
    /// The address of the log: `nats://host:4222/project`.
    pub address: String,
    /// A file with the credentials of a user.
    pub credentials: Option<PathBuf>,
    /// A file with the certificates that sign those of the servers.
    pub certificates: Option<PathBuf>,
    /// The name of this machine, for people.
    pub machine_name: String,
    /// Distinguishes this copy from others of the same person on the same machine.
    salt: u64,
    /// Whether a person has accepted that the service could lose acknowledged events.
    pub accepts_loss: bool,
}

impl FleetMembership {
    /// Describes a new member.
    pub fn new(
        project: &Project,
        access: &FleetAccess,
        machine_name: &str,
        accepts_loss: bool,
    ) -> Result<Self, Failure> {
        let random = environment::random_u128()
            .map_err(|error| Failure::new(FailureCode::System, "cannot get random bytes").with_cause(error))?;
        Ok(Self {
            version: MEMBERSHIP_VERSION,
            project: project.root.to_string_lossy().into_owned(),
            address: access.address.to_string(),
            credentials: access.credentials.clone(),
            certificates: access.certificates.clone(),
            machine_name: machine_name.to_owned(),
            salt: u64::try_from(random & u128::from(u64::MAX)).expect("it was cut to size"),
            accepts_loss,
        })
    }

    /// Reads the membership of a project, if it has one.
    pub fn find(project: &Project) -> Result<Option<Self>, Failure> {
        let Some(path) = membership_file(project) else { return Ok(None) };
        let bytes = match file::read_bounded(&path, MAX_MEMBERSHIP_FILE) {
            Ok(bytes) => bytes,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
            Err(error) => return Err(unreadable_failure(&path, &error)),
        };
        let found: Self = serde_json::from_slice(&bytes).map_err(|error| unreadable_failure(&path, &error))?;
        match found.version {
            MEMBERSHIP_VERSION => Ok(Some(found)),
            other => Err(unreadable_failure(&path, &format!("it has version {other}, of a newer Windlass"))),
        }
    }

    /// Writes the membership, readable by its owner only.
    pub fn save(&self, project: &Project) -> Result<(), Failure> {
        let path = membership_file(project).ok_or_else(no_state_directory)?;
        let text = serde_json::to_string_pretty(self).expect("a membership is plain text");
        let directory = path.parent().expect("the file is in a directory");
        let written = atomic_file::make_directories(directory, 0o700)
            .and_then(|()| atomic_file::replace_file(&path, text.as_bytes(), FileReaders::Owner));
        written.map_err(|error| {
            Failure::new(FailureCode::System, format!("cannot write `{}`", path.display()))
                .with_cause(error)
                .with_hint("set `WINDLASS_STATE_DIR` to a directory of your own")
        })
    }

    /// Forgets the membership of a project.
    pub fn remove(project: &Project) -> Result<(), Failure> {
        let Some(path) = membership_file(project) else { return Ok(()) };
        match atomic_file::remove_file(&path) {
            Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                Err(Failure::new(FailureCode::System, format!("cannot remove `{}`", path.display())).with_cause(error))
            }
            _ => Ok(()),
        }
    }

    /// Returns this machine as the names of its owners carry it. A copy of the state directory on another machine is another
    /// machine.
    pub fn machine(&self, project: &Project) -> MachineTag {
        let mut text = format!("{}\n{:016x}\n", environment::machine_id(), self.salt).into_bytes();
        text.extend(project.root.as_os_str().as_bytes());
        let digest = Digest::of_bytes(&text);
        MachineTag::new(
            &self.machine_name,
            u32::from_be_bytes(digest.0[..4].try_into().expect("a digest has 32 bytes")),
        )
    }

    /// Returns how to reach the service.
    pub fn access(&self) -> Result<FleetAccess, Failure> {
        let address = self.address.parse().map_err(|error| {
            Failure::from_error(FailureCode::Fleet, &error).with_hint("`windlass fleet leave` forgets this fleet")
        })?;
        Ok(FleetAccess { address, credentials: self.credentials.clone(), certificates: self.certificates.clone() })
    }
}

fn membership_file(project: &Project) -> Option<PathBuf> {
    let digest = Digest::of_bytes(project.root.as_os_str().as_bytes());
    Some(environment::state_directory()?.join("fleets").join(format!("{digest}.json")))
}

fn no_state_directory() -> Failure {
    Failure::new(FailureCode::System, "there is no place to record the fleet of this project")
        .with_cause("`WINDLASS_STATE_DIR`, `XDG_STATE_HOME` and `HOME` are unset or not absolute")
        .with_hint("set `WINDLASS_STATE_DIR` to a directory of your own")
}

fn unreadable_failure(path: &Path, cause: &dyn std::fmt::Display) -> Failure {
    Failure::new(FailureCode::Fleet, format!("cannot read the fleet of this project from `{}`", path.display()))
        .with_cause(cause)
        .with_hint("remove the file, and join the fleet again: `windlass fleet join URL`")
}
