//! Messages of any length, and repeated ones.

use std::thread;
use std::time::{Duration, Instant};

use windlass_engine::Digest;
use windlass_fleet::FleetService;
use windlass_store::SequencedMessage;
use windlass_testkit::nats_server::NatsServer;

use crate::{assert_refused, connect, create_log, start_nats, start_postgres};

const KIB: usize = 1024;

/// Returns the body of a message, without a pattern that repeats at the length of a part.
fn long_body(length: usize, seed: u8) -> Vec<u8> {
    (0..length).map(|index| (index % 251) as u8 ^ (index / 65_536) as u8 ^ seed).collect()
}

/// Publishes messages around the length of one part, and returns their sequences with the digest of their bodies.
fn publish_bodies(address: &str) -> Vec<(u64, String)> {
    let (mut service, mut reader) = (create_log(address), connect(address));
    let lengths = [1, 900 * KIB, 900 * KIB + 1, 4_500_000, 2];
    let bodies: Vec<_> = (0..).zip(lengths).map(|(seed, length)| long_body(length, seed)).collect();
    let sequences: Vec<u64> = bodies.iter().map(|body| service.publish(body).unwrap()).collect();
    let mut found: Vec<SequencedMessage> = Vec::new();
    loop {
        let read = reader.read_after(found.last().map_or(0, |last| last.sequence), 3).unwrap();
        if read.is_empty() {
            break;
        }
        found.extend(read);
    }
    assert!(found.iter().map(|message| &message.body).eq(&bodies), "every body arrives as it was sent");
    assert!(
        found.iter().map(|message| &message.sequence).eq(&sequences),
        "a message has the place of its acknowledgement"
    );
    let digest = |message: &SequencedMessage| Digest::of_bytes(&message.body).to_string()[..8].to_owned();
    found.iter().map(|message| (message.sequence, digest(message))).collect()
}

/// The digests of the bodies of [`publish_bodies`], by another program.
const DIGESTS: [&str; 5] = ["6e340b9c", "8cc973e1", "9a06ec34", "a725c613", "2fa1b377"];

#[test]
fn long_message_is_stored_in_parts_by_nats() {
    let found = publish_bodies(&start_nats().log_address("pump"));
    let sequences: Vec<u64> = found.iter().map(|(sequence, _)| *sequence).collect();
    assert_eq!(sequences, [1, 2, 4, 9, 10], "the last of two and of five parts gives the place");
    assert!(found.iter().map(|(_, digest)| digest).eq(&DIGESTS), "{found:?}");
}

#[test]
fn message_is_stored_in_parts_that_server_takes() {
    let server = NatsServer::start_with("max_payload: 65536").expect("`scripts/clients` installs nats-server");
    let mut service = create_log(&server.log_address("pump"));
    let body = long_body(300 * KIB, 0);
    assert_eq!(service.publish(&body).unwrap(), 5, "parts of 60 KiB");
    assert_eq!(service.read_after(0, 1).unwrap(), [SequencedMessage { sequence: 5, body }]);
}

#[test]
fn long_message_is_stored_in_one_row_by_postgres() {
    let found = publish_bodies(&start_postgres().log_address("pump"));
    let sequences: Vec<u64> = found.iter().map(|(sequence, _)| *sequence).collect();
    assert_eq!(sequences, [1, 2, 3, 4, 5]);
    assert!(found.iter().map(|(_, digest)| digest).eq(&DIGESTS), "{found:?}");
}

fn check_repetition(address: &str) {
    let (mut first, mut second) = (create_log(address), connect(address));
    let body = br#"{"v":1}"#;
    assert_eq!((first.publish(body).unwrap(), second.publish(b"other").unwrap()), (1, 2));
    assert_eq!((first.publish(body).unwrap(), second.publish(body).unwrap()), (1, 1), "the place of the first one");
    assert_eq!(first.read_after(0, 10).unwrap().len(), 2);
    assert_eq!(first.read_after(1, 10).unwrap(), [SequencedMessage { sequence: 2, body: b"other".to_vec() }]);
    assert_refused(second.create_log(crate::ONE_COPY), "the log exists already and has 2 messages");
}

#[test]
fn repeated_message_keeps_its_place_in_nats() {
    check_repetition(&start_nats().log_address("pump"));
}

#[test]
fn repeated_message_keeps_its_place_in_postgres() {
    check_repetition(&start_postgres().log_address("pump"));
}

const WRITER_COUNT: u8 = 4;
const MESSAGES_PER_WRITER: usize = 12;
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// Gets some messages after a place.
type MessageReader = fn(&mut dyn FleetService, u64) -> Vec<SequencedMessage>;

fn read_some(service: &mut dyn FleetService, after: u64) -> Vec<SequencedMessage> {
    service.read_after(after, 5).unwrap()
}

fn receive_some(service: &mut dyn FleetService, after: u64) -> Vec<SequencedMessage> {
    let received = service.receive_after(after, READ_TIMEOUT).unwrap();
    received.unwrap_or_else(|| {
        service.subscribe_after(after).unwrap();
        Vec::new()
    })
}

/// Publishes from several writers while a reader follows. The reader must not miss a message that comes before one that it has.
fn check_reader_beside_writers(address: &str, read: MessageReader) {
    let mut reader = create_log(address);
    let (mut published, found) = thread::scope(|scope| {
        let write = |writer: u8| {
            let mut service = connect(address);
            let publish = |number: usize| {
                // Every third message is too long for one part.
                let length = if number.is_multiple_of(3) { 1000 * KIB } else { 100 };
                let body = [&[writer, number as u8][..], &long_body(length, writer)].concat();
                SequencedMessage { sequence: service.publish(&body).unwrap(), body }
            };
            (0..MESSAGES_PER_WRITER).map(publish).collect::<Vec<_>>()
        };
        let writers: Vec<_> = (0..WRITER_COUNT).map(|writer| scope.spawn(move || write(writer))).collect();
        let (began, mut found) = (Instant::now(), Vec::<SequencedMessage>::new());
        while found.len() < usize::from(WRITER_COUNT) * MESSAGES_PER_WRITER {
            let last = found.last().map_or(0, |last| last.sequence);
            found.extend(read(&mut *reader, last));
            assert!(began.elapsed() < READ_TIMEOUT, "only {} messages are read", found.len());
        }
        (writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect::<Vec<_>>(), found)
    });
    published.sort_by_key(|message| message.sequence);
    assert!(published == found, "every message is read at its place, once and whole");
}

#[test]
fn reader_beside_writers_of_nats_misses_no_message() {
    check_reader_beside_writers(&start_nats().log_address("pump"), read_some);
}

#[test]
fn subscriber_beside_writers_of_nats_misses_no_message() {
    check_reader_beside_writers(&start_nats().log_address("pump"), receive_some);
}

#[test]
fn reader_beside_writers_of_postgres_misses_no_message() {
    check_reader_beside_writers(&start_postgres().log_address("pump"), read_some);
}

#[test]
fn subscriber_beside_writers_of_postgres_misses_no_message() {
    check_reader_beside_writers(&start_postgres().log_address("pump"), receive_some);
}

#[test]
fn subscription_does_not_serve_messages_before_those_it_has_given_out() {
    let server = start_nats();
    let mut service = create_log(&server.log_address("pump"));
    for body in [b"one", b"two"] {
        service.publish(body).unwrap();
    }
    assert_eq!(service.receive_after(0, Duration::ZERO).unwrap(), None, "nothing is subscribed");
    service.subscribe_after(0).unwrap();
    let mut found = Vec::new();
    while found.len() < 2 {
        found.extend(receive_some(&mut *service, found.len() as u64));
    }
    assert_eq!(service.receive_after(2, Duration::ZERO).unwrap(), Some(Vec::new()));
    assert_eq!(service.receive_after(0, Duration::ZERO).unwrap(), None);
    service.subscribe_after(1).unwrap();
    let again = service.receive_after(1, READ_TIMEOUT).unwrap();
    assert_eq!(again, Some(vec![SequencedMessage { sequence: 2, body: b"two".to_vec() }]));
}
