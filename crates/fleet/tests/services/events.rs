//! Events for other programs: what the official client of NATS for Python receives.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;

use serde_json::{Value, json};
use windlass_fleet::PublishedEvent;
use windlass_testkit::nats_server::{NatsServer, find_python};

use crate::{assert_refused, connect, create_log, start_nats, start_postgres};

fn event(position: u64, session: Option<&str>, event_type: &str) -> PublishedEvent {
    let body = format!(r#"{{"at":{position}}}"#).into_bytes();
    PublishedEvent { position, session: session.map(str::to_owned), event_type: event_type.to_owned(), body }
}

/// A program that subscribes. Dropping it ends the process.
struct EventSubscriber {
    process: Child,
    output: BufReader<ChildStdout>,
}

impl EventSubscriber {
    #[expect(clippy::disallowed_methods, reason = "the program of a stranger is a child of the test")]
    fn start(server: &NatsServer, subject: &str, count: u32) -> Self {
        let python = find_python().expect("`scripts/clients` installs nats-py");
        let mut process = Command::new(python)
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/services/subscriber.py"))
            .args([&format!("nats://127.0.0.1:{}", server.port()), subject, &count.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let mut subscriber = Self { process, output };
        assert_eq!(subscriber.read_line(), "subscribed\n");
        subscriber
    }

    fn read_line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line
    }

    fn read_event(&mut self) -> Value {
        serde_json::from_str(&self.read_line()).unwrap()
    }
}

impl Drop for EventSubscriber {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn subscriber_of_python_gets_events_with_their_positions() {
    let server = start_nats();
    let mut service = create_log(&server.log_address("pump"));
    assert_eq!(service.last_published_event().unwrap(), 0);
    // The first published event need not be the first one of the project.
    service.publish_events(&[event(7, None, "task.created"), event(8, Some("main"), "session.started")]).unwrap();
    let mut all = EventSubscriber::start(&server, "windlass.pump.events.>", 4);
    let mut of_session = EventSubscriber::start(&server, "windlass.pump.events.main.>", 2);
    service.publish_events(&[event(9, Some("main"), "turn.finished"), event(10, None, "task.completed")]).unwrap();
    assert_eq!(service.last_published_event().unwrap(), 10);
    let line = |position: u64, subject: &str| json!({ "position": position, "subject": subject, "body": format!(r#"{{"at":{position}}}"#) });
    assert_eq!(all.read_event(), line(7, "windlass.pump.events.-.task.created"));
    assert_eq!(all.read_event(), line(8, "windlass.pump.events.main.session.started"));
    assert_eq!(all.read_event(), line(9, "windlass.pump.events.main.turn.finished"));
    assert_eq!(all.read_event(), line(10, "windlass.pump.events.-.task.completed"));
    assert_eq!(of_session.read_event(), line(8, "windlass.pump.events.main.session.started"));
    assert_eq!(of_session.read_event(), line(9, "windlass.pump.events.main.turn.finished"));
}

#[test]
fn events_that_several_processes_publish_are_there_once() {
    let server = start_nats();
    let address = server.log_address("pump");
    create_log(&address);
    let events: Vec<_> = (1..=500).map(|position| event(position, None, "task.created")).collect();
    thread::scope(|scope| {
        for size in [7, 50, 500] {
            let (address, events) = (&address, &events);
            scope.spawn(move || {
                let mut service = connect(address);
                events.chunks(size).for_each(|chunk| service.publish_events(chunk).unwrap());
            });
        }
    });
    assert_eq!(connect(&address).last_published_event().unwrap(), 500);
    let mut subscriber = EventSubscriber::start(&server, "windlass.pump.events.>", 500);
    for position in 1..=500_u64 {
        let found = subscriber.read_event();
        assert_eq!(found["position"], position);
        assert_eq!(found["body"], format!(r#"{{"at":{position}}}"#));
    }
}

#[test]
fn events_behind_a_gap_are_refused() {
    let server = start_nats();
    let mut service = create_log(&server.log_address("pump"));
    service.publish_events(&[event(1, None, "task.created")]).unwrap();
    assert_refused(service.publish_events(&[event(3, None, "task.created")]), "the last published event is 1");
    assert_refused(service.publish_events(&[event(2, None, "a"), event(4, None, "b")]), "have a gap");
    let long = PublishedEvent { body: vec![b' '; 2 * 1024 * 1024], ..event(2, None, "task.created") };
    service.publish_events(&[long, event(3, None, "task.created")]).unwrap();
    assert_eq!(service.last_published_event().unwrap(), 3, "an event that is too long keeps its position");
}

#[test]
fn postgres_publishes_no_events() {
    let server = start_postgres();
    let mut service = create_log(&server.log_address("pump"));
    assert_refused(service.publish_events(&[event(1, None, "task.created")]), "read the table `windlass_log`");
    assert_refused(service.last_published_event(), "read the table `windlass_log`");
}
