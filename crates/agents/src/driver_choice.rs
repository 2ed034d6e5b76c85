//! The driver of each kind of agent.

use windlass_process::{Launcher, Roster};

use crate::acp::AcpDriver;
use crate::command::CommandDriver;
use crate::headless::HeadlessDriver;
use crate::{Agent, AgentDriver, AgentKind};

impl Agent {
    /// Returns the driver of this agent. Without a launcher, a persistent agent cannot be started.
    pub fn driver<'a>(&self, launcher: Option<&Launcher>, roster: &'a Roster) -> Box<dyn AgentDriver + 'a> {
        let agent = self.clone();
        match self.kind {
            AgentKind::Command(_) => Box::new(CommandDriver::new(agent)),
            AgentKind::Headless(dialect) => Box::new(HeadlessDriver::new(agent, dialect)),
            AgentKind::Acp(_) | AgentKind::Scripted(_) => Box::new(AcpDriver::new(agent, launcher.cloned(), roster)),
        }
    }
}
