//! The least rights of a member of a fleet.

use super::names::ProjectSubjects;

/// Returns the rights of a user who works on a project whose log exists, as lines of the configuration of a server of NATS.
pub fn list_rights(project: &str) -> String {
    let subjects = ProjectSubjects::new(project);
    let (log, beats, events) = (subjects.log_stream(), subjects.beat_stream(), subjects.event_stream());
    let mut publish = vec![subjects.log_subject(), subjects.all_beats(), subjects.all_events()];
    for stream in [&log, &beats, &events] {
        publish.push(format!("$JS.API.STREAM.INFO.{stream}"));
    }
    publish.extend([&log, &beats].map(|stream| format!("$JS.API.DIRECT.GET.{stream}")));
    // A restart of all servers loses the heartbeats; the first event for other programs creates their stream.
    publish.extend([&beats, &events].map(|stream| format!("$JS.API.STREAM.CREATE.{stream}")));
    publish.push(format!("$JS.API.STREAM.PURGE.{beats}"));
    publish.push(format!("$JS.API.CONSUMER.CREATE.{log}.*"));
    let subscribe = ["_INBOX.>".to_owned()];
    let quote = |subjects: &[String]| {
        let quoted: Vec<String> = subjects.iter().map(|subject| format!("    \"{subject}\"\n")).collect();
        quoted.concat()
    };
    format!("permissions {{\n  publish: [\n{}  ]\n  subscribe: [\n{}  ]\n}}\n", quote(&publish), quote(&subscribe))
}
