//! One project on several machines: membership, connections, who is alive where, and the commands of a fleet.
//!
//! ```text
//!   membership (outside the project) ─► store + connection ─► commits go through the fleet's log
//!                                  └─► FleetFollower: folds new messages, sends heartbeats
//! ```
//!
//! Invariants:
//! - A store is connected only if the file says that it is a copy, and this person's own record says where its log is. A
//!   repository names no server.
//! - Only a machine itself says that one of its processes is dead. Others see silence.
//!
//! Not here: the log and its copies (`store`), the services (`fleet`).

mod connection;
mod entry;
mod fleet_report;
mod follower;
mod heartbeats;
mod local_servers;
mod membership;
mod open_task_import;
mod owner_liveness;
mod publication;

pub use windlass_fleet::{FleetAddress, LogSettings, ServiceReport, describe_permissions};

pub use connection::{attach_log, connect_project, refresh_copy, wait_for_log_shortly, wait_for_log_until_cancelled};
pub use entry::{
    EntryReport, EntryRequest, LeaveReport, OwnLogPolicy, create_fleet, join_fleet, leave_fleet, repair_fleet,
};
pub use fleet_report::{FleetFinding, FleetReport, MachineReport, build_fleet_report, config_digest};
pub use follower::{FleetFollower, FollowSettings};
pub use heartbeats::{find_silent_owners, service_failure};
pub use local_servers::{LocalServers, start_local_servers};
pub use membership::FleetMembership;
pub use owner_liveness::OwnerLiveness;
pub use publication::publish_after_command;
