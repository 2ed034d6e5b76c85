//! The driver of each kind of agent.

use windlass_process::{OwnerLock, SupervisorLauncher};

use crate::acp::AcpDriver;
use crate::command_driver::CommandDriver;
use crate::headless::HeadlessDriver;
use crate::{Agent, AgentDriver, AgentKind};

impl Agent {
    /// Returns the driver of this agent. Without a launcher, a persistent agent cannot be started.
    pub fn create_driver<'a>(
        &self,
        launcher: Option<&SupervisorLauncher>,
        owner_lock: &'a OwnerLock,
    ) -> Box<dyn AgentDriver + 'a> {
        let agent = self.clone();
        match self.kind {
            AgentKind::Command(_) => Box::new(CommandDriver::new(agent)),
            AgentKind::Headless(dialect) => Box::new(HeadlessDriver::new(agent, dialect)),
            AgentKind::Acp(_) | AgentKind::Scripted(_) => {
                Box::new(AcpDriver::new(agent, launcher.cloned(), owner_lock))
            }
        }
    }
}
