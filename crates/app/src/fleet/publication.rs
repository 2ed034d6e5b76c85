//! The publication of accepted events for other programs, if the configuration asks for it.

use windlass_engine::{Seq, encode_event};
use windlass_fleet::{FleetService, PublishedEvent};
use windlass_store::{EventFilter, SqliteStore, Store};

use super::connect_project;
use super::heartbeats::service_failure;
use crate::context::OpenedProject;
use crate::{Failure, Notice, hints};

/// The most events that are published at once.
const MAX_PUBLISHED_EVENTS: usize = 256;

/// Publishes the events of a store that follow the last published one.
pub fn publish_new_events(service: &mut dyn FleetService, store: &SqliteStore) -> Result<(), Failure> {
    let mut last = service.last_published_event().map_err(|error| service_failure(&error))?;
    loop {
        let records = store
            .read_events(&EventFilter::default(), Seq(last), MAX_PUBLISHED_EVENTS)
            .map_err(hints::store_failure)?;
        let Some(newest) = records.last() else { return Ok(()) };
        last = newest.seq.0;
        let events: Vec<PublishedEvent> = records
            .iter()
            .map(|record| PublishedEvent {
                position: record.seq.0,
                session: record.envelope.session.as_ref().map(ToString::to_string),
                event_type: record.kind().name().to_owned(),
                body: encode_event(&record.envelope),
            })
            .collect();
        service.publish_events(&events).map_err(|error| service_failure(&error))?;
    }
}

/// Publishes the events of a command. The command has succeeded, so a failure is a notice.
pub fn publish_after_command(opened: &OpenedProject) {
    let published = match connect_project(&opened.project) {
        Ok(Some((_, mut service))) if opened.store.has_log() => publish_new_events(service.as_mut(), &opened.store),
        Ok(_) => Ok(()),
        Err(failure) => Err(failure),
    };
    if let Err(failure) = published {
        opened
            .front_end
            .show_notice(Notice::Warning(&format!("the events are not published yet: {}", failure.message)));
    }
}
