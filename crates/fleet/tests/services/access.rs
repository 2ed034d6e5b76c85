//! Encryption and credentials.

use std::fs;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;
use windlass_fleet::{
    FleetAccess, FleetService, OwnerHeartbeat, PublishedEvent, connect_service, describe_permissions,
};
use windlass_store::{SequencedMessage, SequencerError};
use windlass_testkit::certificates::ServerCertificate;
use windlass_testkit::nats_cluster::find_free_ports;
use windlass_testkit::nats_server::NatsServer;
use windlass_testkit::postgres_server::{DATABASE_USER, PostgresServer};

use crate::{ONE_COPY, access_log, assert_refused, connect, start_postgres};

/// The seed and the public key of a user.
const NKEY_SEED: &str = "SUAIO3FHUX5PNV2LQIIP7TZ3N4L7TX3W53MQGEIVYFIGA635OZCKEYHFLM";
const NKEY: &str = "UD2FLLGFERQVQQ3SBKONNG2QMIMTZQKKLTU3AVG5I3EQEFHBPGPE2XQS";

/// Calls a service that has the text of a file of credentials, and the certificate of an authority.
fn call_with<T>(
    address: &str,
    credentials: Option<&str>,
    authority: Option<&Path>,
    call: impl FnOnce(&mut dyn FleetService) -> T,
) -> T {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("credentials");
    let mut access = FleetAccess { certificates: authority.map(Path::to_owned), ..access_log(address) };
    if let Some(text) = credentials {
        fs::write(&file, text).unwrap();
        access.credentials = Some(file);
    }
    call(&mut *connect_service(access).unwrap())
}

fn try_create(address: &str, credentials: Option<&str>, authority: Option<&Path>) -> Result<(), SequencerError> {
    call_with(address, credentials, authority, |service| service.create_log(ONE_COPY))
}

#[test]
fn plain_address_of_another_machine_is_refused() {
    let mut service = connect("nats://localhost,192.0.2.1/pump");
    assert_refused(service.publish(b"one"), "write `tls://` instead");
}

#[test]
fn nats_needs_known_certificate_and_credentials() {
    let (certificate, foreign) = (ServerCertificate::create(), ServerCertificate::create());
    let configuration = format!(
        "tls {{ cert_file: '{}', key_file: '{}' }}\n\
         authorization {{ users: [{{ user: mill, password: 's:3cret' }}, {{ nkey: {NKEY} }}] }}\n",
        certificate.server().display(),
        certificate.key().display()
    );
    let server = NatsServer::start_with(&configuration).expect("`scripts/clients` installs nats-server");
    let address = format!("tls://localhost:{}/pump", server.port());
    let authority = certificate.authority();
    let try_create = |credentials: Option<&str>, authority: Option<&Path>| try_create(&address, credentials, authority);
    try_create(Some("mill:s:3cret\n"), Some(&authority)).unwrap();
    try_create(Some(&format!("{NKEY_SEED}\n")), Some(&authority)).unwrap();
    for credentials in [None, Some("mill:other")] {
        assert_refused(try_create(credentials, Some(&authority)), "does not accept the credentials");
    }
    assert_refused(try_create(Some("something"), Some(&authority)), "nor the seed of an NKey");
    assert_refused(try_create(Some("mill:s:3cret"), Some(&foreign.authority())), "certificate");
    assert_refused(try_create(Some("mill:s:3cret"), None), "certificate");
    let missing = FleetAccess { credentials: Some("/nonexistent/file".into()), ..access_log(&address) };
    assert_refused(connect_service(missing).unwrap().inspect_service(), "cannot read the credentials");
}

#[test]
fn member_of_nats_needs_only_described_permissions() {
    let configuration = format!(
        "authorization {{ users: [\n{{ user: admin, password: a }}\n{{ user: mill, password: m, {} }}\n] }}\n",
        describe_permissions(&"nats://localhost/pump".parse().unwrap())
    );
    let server = NatsServer::start_with(&configuration).expect("`scripts/clients` installs nats-server");
    let address = server.log_address("pump");
    try_create(&address, Some("admin:a"), None).unwrap();
    call_with(&address, Some("mill:m"), None, |service| {
        use_service(service);
        let event =
            PublishedEvent { position: 1, session: None, event_type: "task.created".to_owned(), body: b"{}".to_vec() };
        service.publish_events(&[event]).unwrap();
        assert_eq!(service.last_published_event().unwrap(), 1);
    });
}

#[test]
fn missing_right_of_nats_is_named() {
    let rights = describe_permissions(&"nats://localhost/pump".parse().unwrap());
    let without = |right: &str| rights.lines().filter(|line| !line.contains(right)).collect::<Vec<_>>().join("\n");
    let configuration = format!(
        "authorization {{ users: [\n{{ user: admin, password: a }}\n{{ user: reader, password: r, {} }}\n\
         {{ user: writer, password: w, {} }}\n] }}\n",
        without("windlass.pump.log"),
        without("DIRECT.GET"),
    );
    let server = NatsServer::start_with(&configuration).expect("`scripts/clients` installs nats-server");
    let address = server.log_address("pump");
    try_create(&address, Some("admin:a"), None).unwrap();
    call_with(&address, Some("reader:r"), None, |service| {
        assert_refused(service.publish(b"one"), "Permissions Violation for Publish to \"windlass.pump.log\"");
        assert_refused(service.publish(&vec![b'x'; 2_000_000]), "Permissions Violation");
        assert_eq!(service.read_after(0, 1).unwrap().len(), 0);
    });
    call_with(&address, Some("writer:w"), None, |service| {
        assert_refused(service.read_after(0, 1), "Permissions Violation for Publish to \"$JS.API.DIRECT.GET");
        assert_eq!(service.publish(b"one").unwrap(), 1);
    });
}

#[test]
fn member_of_postgres_needs_only_described_permissions() {
    let server = start_postgres();
    let address = server.log_address("pump");
    try_create(&address, None, None).unwrap();
    let member = address.replace(DATABASE_USER, "mill");
    let grants = describe_permissions(&member.parse().unwrap());
    run_statements(&server, 5432, &format!("CREATE ROLE mill LOGIN; {grants}"));
    call_with(&member, None, None, use_service);
    assert_refused(try_create(&member.replace("/pump", "/other"), None, None), "permission denied");
}

/// Calls everything that a member needs.
fn use_service(service: &mut dyn FleetService) {
    service.publish(b"one").unwrap();
    let last = service.publish(&vec![b'x'; 2_000_000]).unwrap();
    assert_eq!(service.read_after(0, 10).unwrap().len(), 2);
    service.subscribe_after(1).unwrap();
    let received = service.receive_after(1, Duration::from_secs(5)).unwrap().unwrap();
    assert_eq!(received, [SequencedMessage { sequence: last, body: vec![b'x'; 2_000_000] }]);
    service.inspect_service().unwrap();
    let heartbeat = OwnerHeartbeat {
        machine: "mill".to_owned(),
        owner: "run.1".to_owned(),
        version: String::new(),
        config: String::new(),
        position: 1,
        chain: "7e".to_owned(),
    };
    service.record_heartbeat(&heartbeat, Duration::from_secs(60)).unwrap();
    assert_eq!(service.list_heartbeats().unwrap().heartbeats.len(), 1);
    service.remove_heartbeat("mill", "run.1").unwrap();
}

/// Runs statements through the socket, where the server asks for no password.
fn run_statements(server: &PostgresServer, port: u16, statements: &str) {
    let mut config = tokio_postgres::Config::new();
    config.host(server.socket_directory()).port(port).user(DATABASE_USER).dbname("postgres");
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        let (client, connection) = config.connect(tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute(statements).await.unwrap();
    });
}

#[test]
fn postgres_needs_known_certificate_and_password() {
    let (certificate, foreign) = (ServerCertificate::create(), ServerCertificate::create());
    let port = find_free_ports(1)[0];
    let configuration =
        "listen_addresses = '127.0.0.1'\nssl = on\nssl_cert_file = 'server.pem'\nssl_key_file = 'server.key'";
    let server = PostgresServer::start_on(port, configuration, |data| {
        fs::copy(certificate.server(), data.join("server.pem")).unwrap();
        fs::copy(certificate.key(), data.join("server.key")).unwrap();
        fs::write(data.join("pg_hba.conf"), "local all all trust\nhostssl all all all scram-sha-256\n").unwrap();
    });
    let server = server.expect("`scripts/setup` installs postgresql");
    run_statements(&server, port, &format!("ALTER ROLE {DATABASE_USER} PASSWORD 's:3cret'"));
    let address = format!("postgres://localhost:{port}/postgres/pump");
    let authority = certificate.authority();
    try_create(&address, Some("*:*:*:windlass:s\\:3cret\n"), Some(&authority)).unwrap();
    let with_user = address.replace("//", "//windlass@");
    try_create(&with_user, Some(&format!("localhost:{port}:postgres:*:s\\:3cret")), Some(&authority)).unwrap();
    assert_refused(try_create(&with_user, Some("*:*:*:*:other"), Some(&authority)), "password authentication failed");
    assert_refused(try_create(&with_user, None, Some(&authority)), "password");
    assert_refused(try_create(&address, None, Some(&authority)), "no user is known");
    assert_refused(try_create(&with_user, Some("db:*:*:*:other"), Some(&authority)), "no line of the password file");
    assert_refused(try_create(&with_user, Some("*:*:*:*:s\\:3cret"), Some(&foreign.authority())), "certificate");
    // Without TLS, the server does not let it in.
    assert_refused(try_create(&with_user, Some("*:*:*:*:s\\:3cret"), None), "no pg_hba.conf entry");
    assert_refused(
        try_create(&server.log_address("pump").replace("/postgres/", "/other/"), None, None),
        "database \"other\" does not exist",
    );
}
