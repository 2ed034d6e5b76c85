//! Who works on a task, and from whom it was taken.

use serde::{Deserialize, Serialize};

use crate::log::id::{Epoch, OwnerName, SessionName};
use crate::log::time::Timestamp;

/// Who is working on a task, and until when that holds unless renewed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Lease {
    pub owner: OwnerName,
    pub epoch: Epoch,
    /// Without one it lasts as long as its session has the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// The session that works on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionName>,
}

impl Lease {
    /// Returns the holder, as people know it.
    pub fn holder(&self) -> String {
        match &self.session {
            Some(session) => format!("session `{session}`"),
            None => self.owner.to_string(),
        }
    }
}

/// That a task was taken from the session that worked on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Taken {
    pub from: SessionName,
    /// The one that it was held under.
    pub epoch: Epoch,
    /// Returns the last holder, as people know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

impl Taken {
    /// Returns the same once another session has claimed the task: nothing is taken from a session that gets it back.
    pub(crate) fn by(self, lease: &Lease) -> Option<Self> {
        let by = Some(lease.holder());
        (lease.session.as_ref() != Some(&self.from)).then_some(Self { by, ..self })
    }
}
