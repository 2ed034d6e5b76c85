//! The holder of a task, and the takeover of a task from its holder.

use serde::{Deserialize, Serialize};

use crate::log::id::{Epoch, OwnerName, SessionName};
use crate::log::time::Timestamp;

/// The holder of a task, and the end of the lease unless the holder renews it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Lease {
    pub owner: OwnerName,
    pub epoch: Epoch,
    /// The end of the lease. Without it, the lease lasts as long as the session holds the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// The session that works on the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionName>,
}

impl Lease {
    /// Returns the name of the holder for people.
    pub fn holder_name(&self) -> String {
        match &self.session {
            Some(session) => format!("session `{session}`"),
            None => self.owner.to_string(),
        }
    }
}

/// The takeover of a task from the session that worked on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskTakeover {
    pub from: SessionName,
    /// The epoch under which the session held the task.
    pub epoch: Epoch,
    /// The last holder since then, as people know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

impl TaskTakeover {
    /// Adds the new holder. Returns `None` if the same session has claimed the task again, which ends the takeover.
    pub(crate) fn claimed_by(self, lease: &Lease) -> Option<Self> {
        let by = Some(lease.holder_name());
        (lease.session.as_ref() != Some(&self.from)).then_some(Self { by, ..self })
    }
}
