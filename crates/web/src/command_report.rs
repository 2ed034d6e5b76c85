//! The answer to a command: its result, and the notices that a terminal would have shown.

use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use windlass_app::context::OpenedProject;
use windlass_app::{FrontEnd, Notice};

use crate::error::{CommandNotices, RequestError};
use crate::state::ServerState;

/// The most notices of one command.
const MAX_NOTICES: usize = 50;

/// The result of a command with its notices, as one object.
#[derive(Debug, Serialize)]
pub struct CommandReport<T> {
    #[serde(flatten)]
    result: T,
    #[serde(flatten)]
    notices: CommandNotices,
}

/// A front end that keeps the notices of one command.
#[derive(Debug, Default)]
struct NoticeCollector(Mutex<Vec<String>>);

impl FrontEnd for NoticeCollector {
    fn show_notice(&self, notice: Notice<'_>) {
        let mut notices = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if notices.len() < MAX_NOTICES {
            notices.push(notice.to_string());
        }
    }
}

/// Runs a command, and collects its notices without secrets, also if it fails.
pub fn run_with_notices<T>(
    state: &ServerState,
    opened: &mut OpenedProject,
    command: impl FnOnce(&mut OpenedProject) -> Result<T, RequestError>,
) -> Result<CommandReport<T>, RequestError> {
    let collector = Arc::new(NoticeCollector::default());
    let front_end = std::mem::replace(&mut opened.front_end, collector.clone());
    let done = command(opened);
    opened.front_end = front_end;
    let (texts, mask) = (collector.0.lock().unwrap_or_else(PoisonError::into_inner), state.mask());
    let notices = texts.iter().map(|text| mask.mask_text(text).into_owned()).collect();
    let notices = CommandNotices { notices };
    match done {
        Ok(result) => Ok(CommandReport { result, notices }),
        Err(error) => Err(error.mask_secrets(&mask).with_notices(notices)),
    }
}
