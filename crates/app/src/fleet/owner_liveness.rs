//! Whether the owner of a session or an effect is alive, as far as this machine can tell.

use windlass_process::{MachineTag, is_owner_alive, is_this_process};

use super::FleetMembership;
use crate::project::Project;

/// The state of an owner, as far as this machine can tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OwnerLiveness {
    Alive,
    Dead,
    /// It is a process of another machine of the fleet, which alone can tell.
    Elsewhere(MachineTag),
}

impl Project {
    /// Returns whether an owner is alive.
    pub fn owner_liveness(&self, owner: &str) -> OwnerLiveness {
        match self.other_machine(owner) {
            Some(machine) => OwnerLiveness::Elsewhere(machine),
            None if is_owner_alive(&self.owner_directory(), owner) => OwnerLiveness::Alive,
            None => OwnerLiveness::Dead,
        }
    }

    /// Returns whether an owner is a process of this machine that has ended.
    pub fn is_owner_dead(&self, owner: &str) -> bool {
        self.owner_liveness(owner) == OwnerLiveness::Dead
    }

    /// Returns whether an owner is this process.
    pub fn is_own_process(&self, owner: &str) -> bool {
        is_this_process(owner) && self.other_machine(owner).is_none()
    }

    /// Returns the machine of an owner, if it is another one. After a copy has left its fleet, all owners are its own: no other
    /// machine writes to it.
    pub fn other_machine(&self, owner: &str) -> Option<MachineTag> {
        let machine = MachineTag::find_in_owner_name(owner)?;
        match FleetMembership::find(self) {
            Ok(None) => None,
            Ok(Some(membership)) => (membership.machine(self) != machine).then_some(machine),
            // Who this machine is cannot be read, so its owners cannot be told from others.
            Err(_) => Some(machine),
        }
    }
}
