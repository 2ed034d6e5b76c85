//! The proxy of a sandbox, with clients and servers of this machine.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "these are tests, which start real clients and servers"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use windlass_sandbox::{
    DenialReason, ForwarderSetup, NetworkProxy, ProxyAddress, ProxyEvent, ProxyListener, ProxySettings,
    proxy_environment, run_forwarder,
};

const TOKEN: &str = "secret-token";
/// `windlass:secret-token`.
const CREDENTIALS: &str = "Proxy-Authorization: Basic d2luZGxhc3M6c2VjcmV0LXRva2Vu\r\n";

/// The longest time that a test waits for bytes of the proxy.
const MAX_ANSWER_TIME: Duration = Duration::from_secs(20);

/// The longest time that the end of a proxy may take. It gives up on threads that do not end in five seconds.
const MAX_DROP_TIME: Duration = Duration::from_secs(4);

/// A proxy on a port of this machine, and what it reports.
struct ProxyUnderTest {
    proxy: NetworkProxy,
    port: u16,
    events: Receiver<ProxyEvent>,
}

impl ProxyUnderTest {
    fn start(patterns: &[&str]) -> Self {
        Self::start_with(settings(patterns, ProxyListener::Loopback))
    }

    fn start_with(settings: ProxySettings) -> Self {
        let (sender, events) = mpsc::channel();
        let proxy = NetworkProxy::start(settings, move |event| _ = sender.send(event)).unwrap();
        let ProxyAddress::Loopback(address) = *proxy.address() else { panic!("a port") };
        Self { proxy, port: address.port(), events }
    }

    fn connect(&self) -> TcpStream {
        let client = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).unwrap();
        // A tunnel that should not be there fails the test.
        client.set_read_timeout(Some(MAX_ANSWER_TIME)).unwrap();
        client
    }

    /// Sends a request without the empty line at its end, and returns the whole response.
    fn ask(&self, request: &str) -> String {
        self.send(&format!("{request}\r\n{CREDENTIALS}\r\n"))
    }

    fn send(&self, bytes: &str) -> String {
        let mut client = self.connect();
        client.write_all(bytes.as_bytes()).unwrap();
        read_all(&mut client)
    }

    fn tunnel(&self, authority: &str) -> TcpStream {
        let mut client = self.connect();
        write!(client, "CONNECT {authority} HTTP/1.1\r\n{CREDENTIALS}\r\n").unwrap();
        expect_established(&mut client);
        client
    }
}

fn settings(patterns: &[&str], listen: ProxyListener) -> ProxySettings {
    let hosts = patterns.iter().map(|pattern| pattern.parse().unwrap()).collect();
    let loopback = |_: &str| Ok(vec![IpAddr::V4(Ipv4Addr::LOCALHOST)]);
    ProxySettings { resolver: loopback, ..ProxySettings::new(hosts, listen, TOKEN.into()) }
}

fn read_all(client: &mut impl Read) -> String {
    let mut response = Vec::new();
    client.read_to_end(&mut response).unwrap();
    String::from_utf8(response).unwrap()
}

#[track_caller]
fn expect_established(client: &mut impl Read) {
    let mut response = [0; 39];
    client.read_exact(&mut response).unwrap();
    assert_eq!(&response, b"HTTP/1.1 200 Connection established\r\n\r\n");
}

/// Starts a server that handles each connection in a thread, and returns its port.
fn start_server(handle: impl Fn(TcpStream) + Clone + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let handle = handle.clone();
            thread::spawn(move || handle(stream.unwrap()));
        }
    });
    port
}

/// Starts a server that sends back all it gets, once the client has ended.
fn start_mirror() -> u16 {
    start_server(|mut stream| {
        let text = read_all(&mut stream);
        stream.write_all(text.as_bytes()).unwrap();
    })
}

/// Starts a web server that sends back the request it got, which ends with these bytes.
fn start_web_server(end: &'static str) -> u16 {
    start_server(move |mut stream| {
        let (mut request, mut byte) = (Vec::new(), [0]);
        while !request.ends_with(end.as_bytes()) && matches!(stream.read(&mut byte), Ok(1)) {
            request.push(byte[0]);
        }
        write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nKeep-Alive: 9\r\n\r\n", request.len()).unwrap();
        stream.write_all(&request).unwrap();
        // The server keeps the connection, and the response has ended nevertheless.
        _ = stream.read(&mut byte);
    })
}

/// A program that ends with the test.
struct RunningProgram(Child);

impl Drop for RunningProgram {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// Runs curl, and returns its exit code, its output and its messages.
fn curl(environment: &[(String, String)], arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new("curl");
    command.env_clear().env("PATH", std::env::var("PATH").unwrap()).envs(environment.iter().cloned());
    let output = command.args(["-q", "-sS", "--max-time", "60"]).args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn tunnel_passes_bytes_both_ways_and_keeps_half_close() {
    let server = start_mirror();
    let proxy = ProxyUnderTest::start(&[&format!("127.0.0.1:{server}")]);
    let mut client = proxy.tunnel(&format!("127.0.0.1:{server}"));
    let text = "some text ".repeat(20_000);
    client.write_all(text.as_bytes()).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert!(read_all(&mut client) == text, "the mirror sends back all bytes");
    assert_eq!(proxy.events.recv().unwrap(), ProxyEvent::Allowed { host: "127.0.0.1".into(), port: server });
    assert!(proxy.events.try_recv().is_err(), "one event");
}

#[test]
fn tunnel_passes_bytes_that_arrive_with_the_request() {
    let server = start_mirror();
    let proxy = ProxyUnderTest::start(&[&format!("localhost:{server}")]);
    let mut client = proxy.connect();
    write!(client, "CONNECT localhost:{server} HTTP/1.1\r\n{CREDENTIALS}\r\nearly").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    expect_established(&mut client);
    assert_eq!(read_all(&mut client), "early");
}

#[test]
fn server_may_speak_first_in_tunnel() {
    let server = start_server(|mut stream| stream.write_all(b"220 ready\r\n").unwrap());
    let proxy = ProxyUnderTest::start(&[&format!("127.0.0.1:{server}")]);
    let mut client = proxy.tunnel(&format!("127.0.0.1:{server}"));
    assert_eq!(read_all(&mut client), "220 ready\r\n");
}

#[test]
fn plain_http_reaches_allowed_host_in_origin_form() {
    let server = start_web_server("\r\n\r\n");
    let proxy = ProxyUnderTest::start(&[&format!("localhost:{server}")]);
    let response = proxy.ask(&format!("GET http://localhost:{server}/a?b HTTP/1.1\r\nHost: evil.example\r\nA: b"));
    let request = format!("GET /a?b HTTP/1.1\r\nHost: localhost:{server}\r\nA: b\r\nConnection: close\r\n\r\n");
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", request.len());
    assert_eq!(response, head + &request);
}

#[test]
fn plain_http_passes_chunked_body_and_no_second_request() {
    let server = start_web_server("0\r\n\r\n");
    let proxy = ProxyUnderTest::start(&[&format!("localhost:{server}")]);
    let response = proxy.send(&format!(
        "POST http://localhost:{server}/ HTTP/1.1\r\n{CREDENTIALS}Transfer-Encoding: chunked\r\n\r\n\
         3;x\r\nabc\r\n0\r\nTrailer: t\r\n\r\nGET http://evil.example/ HTTP/1.1\r\n\r\n"
    ));
    assert!(
        response.ends_with("Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
        "{response}"
    );
    assert!(!response.contains("evil"), "{response}");
}

#[test]
fn request_that_could_smuggle_another_never_reaches_server() {
    let (sender, connections) = mpsc::channel();
    let server = start_server(move |_| sender.send(()).unwrap());
    let proxy = ProxyUnderTest::start(&[&format!("localhost:{server}")]);
    for fields in [
        "Content-Length: 3\r\nContent-Length: 30",
        "Content-Length: 3\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
        "Transfer-Encoding : chunked",
        "Transfer-Encoding: xchunked",
        "A: b\nTransfer-Encoding: chunked",
        "A: b\r\n Transfer-Encoding: chunked",
        "Content-Length: 0x3",
    ] {
        let response = proxy.ask(&format!("POST http://localhost:{server}/ HTTP/1.1\r\n{fields}"));
        assert!(response.starts_with("HTTP/1.1 400 "), "{fields:?}: {response}");
    }
    let response = proxy.ask("GET / HTTP/1.1\r\nHost: localhost");
    assert!(response.starts_with("HTTP/1.1 400 "), "{response}");
    assert!(connections.try_recv().is_err() && proxy.events.try_recv().is_err());
}

#[test]
fn denied_host_gets_advice() {
    let mut settings = settings(&["allowed.example"], ProxyListener::Loopback);
    settings.resolver = |_| panic!("a denied name is not looked up");
    let proxy = ProxyUnderTest::start_with(settings);
    for request in ["CONNECT evil.example:443 HTTP/1.1", "GET http://evil.example/ HTTP/1.1"] {
        let response = proxy.ask(request);
        assert!(response.starts_with("HTTP/1.1 403 Denied by the Windlass sandbox\r\n"), "{response}");
        assert!(response.contains("The sandbox denies the connection to evil.example:"), "{response}");
        assert!(response.contains("A person can add `evil.example` to"), "{response}");
        let ProxyEvent::Denied { host, reason, .. } = proxy.events.recv().unwrap() else { panic!("a denial") };
        assert_eq!((host.as_str(), reason), ("evil.example", DenialReason::HostNotAllowed));
    }
    let response = proxy.ask("CONNECT allowed.example:22 HTTP/1.1");
    assert!(response.contains("`allowed.example:22`"), "{response}");
    let response = proxy.ask("CONNECT windlass.internal:1 HTTP/1.1");
    assert!(response.starts_with("HTTP/1.1 403 "), "{response}");
}

#[test]
fn large_upload_to_denied_host_still_gets_response() {
    let proxy = ProxyUnderTest::start(&[]);
    let body = "a".repeat(1_000_000);
    let head = "POST http://evil.example/ HTTP/1.1\r\nContent-Length: 1000000\r\n";
    let response = proxy.send(&format!("{head}{CREDENTIALS}\r\n{body}"));
    assert!(response.starts_with("HTTP/1.1 403 "), "{response}");
}

#[test]
fn host_that_is_allowed_later_is_reached() {
    let server = start_mirror();
    let proxy = ProxyUnderTest::start(&[]);
    let request = format!("CONNECT 127.0.0.1:{server} HTTP/1.1");
    assert!(proxy.ask(&request).starts_with("HTTP/1.1 403 "));
    proxy.proxy.allow_host(format!("127.0.0.1:{server}").parse().unwrap());
    proxy.tunnel(&format!("127.0.0.1:{server}"));
}

#[test]
fn token_is_needed_over_tcp() {
    let server = start_mirror();
    let proxy = ProxyUnderTest::start(&[&format!("127.0.0.1:{server}")]);
    let request = format!("CONNECT 127.0.0.1:{server} HTTP/1.1\r\n");
    for credentials in [
        "",
        "Proxy-Authorization: Basic d2luZGxhc3M6d3Jvbmc=\r\n",
        "Proxy-Authorization: Basic \r\n",
        "Proxy-Authorization: Bearer secret-token\r\n",
        "Authorization: Basic d2luZGxhc3M6c2VjcmV0LXRva2Vu\r\n",
    ] {
        let response = proxy.send(&format!("{request}{credentials}\r\n"));
        assert!(response.starts_with("HTTP/1.1 407 "), "{credentials}: {response}");
        assert!(response.contains("\r\nProxy-Authenticate: Basic realm=\"windlass\"\r\n"), "{response}");
    }
    let response = proxy.send(&format!("{request}{CREDENTIALS}{CREDENTIALS}\r\n"));
    assert!(response.starts_with("HTTP/1.1 400 "), "{response}");
    assert!(proxy.events.try_recv().is_err());
}

#[test]
fn proxy_without_token_does_not_listen_on_port() {
    for token in ["", "a:b", "a b"] {
        let settings = ProxySettings::new(Vec::new(), ProxyListener::Loopback, token.into());
        assert!(NetworkProxy::start(settings, drop).is_err(), "{token:?}");
    }
}

#[test]
fn unix_socket_is_private_and_needs_no_token() {
    let server = start_mirror();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("proxy");
    let settings = settings(&[&format!("127.0.0.1:{server}")], ProxyListener::UnixSocket(path.clone()));
    let proxy = NetworkProxy::start(settings, drop).unwrap();
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let mut client = UnixStream::connect(&path).unwrap();
    write!(client, "CONNECT 127.0.0.1:{server} HTTP/1.1\r\n\r\nabc").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    expect_established(&mut client);
    assert_eq!(read_all(&mut client), "abc");
    drop(proxy);
    assert!(!path.exists());
}

#[test]
fn oversized_head_is_refused() {
    let proxy = ProxyUnderTest::start(&[]);
    let response = proxy.ask(&format!("GET http://evil.example/ HTTP/1.1\r\nA: {}", "a".repeat(100_000)));
    assert!(response.starts_with("HTTP/1.1 431 "), "{response}");
}

#[test]
fn silent_clients_do_not_delay_others() {
    let server = start_web_server("\r\n\r\n");
    let proxy = ProxyUnderTest::start(&[&format!("localhost:{server}")]);
    let silent: Vec<_> = (0..50).map(|_| proxy.connect()).collect();
    let mut slow = proxy.connect();
    for byte in format!("GET http://localhost:{server}/ HTTP/1.1\r\n{CREDENTIALS}\r\n").bytes() {
        slow.write_all(&[byte]).unwrap();
    }
    assert!(read_all(&mut slow).starts_with("HTTP/1.1 200 "));
    drop(silent);
}

#[test]
fn tunnels_run_in_parallel_and_end_with_proxy() {
    let server = start_server(|mut stream| {
        let mut byte = [0];
        while matches!(stream.read(&mut byte), Ok(1)) {
            stream.write_all(&byte).unwrap();
        }
    });
    let proxy = ProxyUnderTest::start(&[&format!("127.0.0.1:{server}")]);
    let mut clients: Vec<_> = (0..100).map(|_| proxy.tunnel(&format!("127.0.0.1:{server}"))).collect();
    let mut byte = [0];
    for round in 0..3 {
        clients.iter_mut().for_each(|client| client.write_all(&[round]).unwrap());
        for client in &mut clients {
            client.read_exact(&mut byte).unwrap();
            assert_eq!(byte, [round]);
        }
    }
    // This client has not asked for anything yet.
    clients.push(proxy.connect());
    let start = Instant::now();
    drop(proxy.proxy);
    assert!(start.elapsed() < MAX_DROP_TIME, "all threads ended");
    for client in &mut clients {
        assert!(matches!(client.read(&mut byte), Ok(0) | Err(_)), "the tunnel has ended");
    }
    assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, proxy.port)).is_err(), "the port is closed");
}

#[test]
fn internal_host_leads_to_caller() {
    let mut settings = settings(&["*.internal"], ProxyListener::Loopback);
    settings.resolver = |_| panic!("the internal host is not looked up");
    settings.relay = Some(Box::new(|mut stream| {
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        stream.writer().write_all(format!("heard {line}").as_bytes()).unwrap();
    }));
    let proxy = ProxyUnderTest::start_with(settings);
    let mut client = proxy.connect();
    write!(client, "CONNECT windlass.internal:1 HTTP/1.1\r\n{CREDENTIALS}\r\nhello").unwrap();
    expect_established(&mut client);
    client.write_all(b" there\n").unwrap();
    assert_eq!(read_all(&mut client), "heard hello there\n");
    for request in ["CONNECT windlass.internal:443 HTTP/1.1", "GET http://windlass.internal/ HTTP/1.1"] {
        assert!(proxy.ask(request).starts_with("HTTP/1.1 403 "), "{request}");
    }
}

#[test]
fn curl_gets_plain_http_and_sees_denials() {
    let server = start_web_server("\r\n\r\n");
    let proxy = ProxyUnderTest::start(&[&format!("localhost:{server}")]);
    let environment = proxy_environment(proxy.port, TOKEN);
    let url = format!("http://localhost:{server}/a");
    let (code, output, errors) = curl(&environment, &[&url]);
    assert_eq!(code, 0, "{errors}");
    assert!(output.starts_with("GET /a HTTP/1.1\r\n") && !output.contains("Proxy"), "{output}");
    let (code, output, errors) = curl(&environment, &["--proxy-anyauth", &url]);
    assert!(code == 0 && output.starts_with("GET /a "), "{errors}");
    let (_, output, _) = curl(&environment, &["http://evil.example/"]);
    assert!(output.contains("A person can add `evil.example`"), "{output}");
    let (code, _, errors) = curl(&environment, &["https://evil.example/"]);
    assert!(code == 56 && errors.contains("403"), "{errors}");
}

#[test]
fn curl_uploads_chunks() {
    let server = start_web_server("0\r\n\r\n");
    let proxy = ProxyUnderTest::start(&[&format!("localhost:{server}")]);
    let environment = proxy_environment(proxy.port, TOKEN);
    let url = format!("http://localhost:{server}/");
    let arguments = ["-H", "Transfer-Encoding: chunked", "-d", "some text", &url];
    let (code, output, errors) = curl(&environment, &arguments);
    assert!(code == 0 && output.ends_with("9\r\nsome text\r\n0\r\n\r\n"), "{output} {errors}");
}

/// Starts a TLS server with a new certificate for `localhost`. Returns its port and the path of the certificate.
fn start_tls_server(directory: &std::path::Path) -> (RunningProgram, u16, String) {
    let path = |name: &str| directory.join(name).to_str().unwrap().to_owned();
    let (key, certificate) = (path("key.pem"), path("certificate.pem"));
    let request = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
    let subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,DNS:other.example"];
    let mut command = Command::new("openssl");
    let output = command.args(request).args(subject).args(["-keyout", &key, "-out", &certificate]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let mut command = Command::new("openssl");
    command.args(["s_server", "-www", "-accept", "127.0.0.1:0", "-key", &key, "-cert", &certificate]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let port = lines.filter_map(|line| line.strip_prefix("ACCEPT 127.0.0.1:")?.parse().ok()).next();
    (RunningProgram(child), port.expect("openssl says its port"), certificate)
}

#[test]
fn curl_gets_https_and_cannot_name_another_host() {
    let directory = tempfile::tempdir().unwrap();
    let (_server, port, certificate) = start_tls_server(directory.path());
    let proxy = ProxyUnderTest::start(&[&format!("localhost:{port}")]);
    let environment = proxy_environment(proxy.port, TOKEN);
    let (code, output, errors) = curl(&environment, &["--cacert", &certificate, &format!("https://localhost:{port}/")]);
    assert!(code == 0 && output.contains("s_server"), "{output} {errors}");
    assert_eq!(proxy.events.recv().unwrap(), ProxyEvent::Allowed { host: "localhost".into(), port });
    // The tunnel leads to localhost, and the handshake names another host.
    let connect_to = format!("other.example:{port}:localhost:{port}");
    let url = format!("https://other.example:{port}/");
    let (code, ..) = curl(&environment, &["--connect-to", &connect_to, "--cacert", &certificate, &url]);
    assert_ne!(code, 0);
    let is_mismatch = |event| {
        let reason = DenialReason::ServerNameMismatch("other.example".into());
        event == ProxyEvent::Denied { host: "localhost".into(), port, reason }
    };
    assert!(proxy.events.iter().take(2).any(is_mismatch));
}

#[test]
fn forwarder_leads_to_proxy() {
    let server = start_web_server("\r\n\r\n");
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("proxy");
    let settings = settings(&[&format!("localhost:{server}")], ProxyListener::UnixSocket(socket.clone()));
    let _proxy = NetworkProxy::start(settings, drop).unwrap();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (sender, ready) = mpsc::channel();
    let setup = ForwarderSetup { socket, port: free };
    thread::spawn(move || run_forwarder(&setup, || sender.send(()).unwrap()));
    ready.recv().unwrap();
    let environment = proxy_environment(free, "");
    let (code, output, errors) = curl(&environment, &[&format!("http://localhost:{server}/a")]);
    assert!(code == 0 && output.starts_with("GET /a "), "{output} {errors}");
    let mirror = start_mirror();
    let mut client = TcpStream::connect((Ipv4Addr::LOCALHOST, free)).unwrap();
    write!(client, "CONNECT localhost:{mirror} HTTP/1.1\r\n\r\n").unwrap();
    assert!(read_all(&mut client).starts_with("HTTP/1.1 403 "));
}

/// The names that the proxy of [`arbitrary_requests_look_up_allowed_names_only`] looks up.
static LOOKED_UP: Mutex<Vec<String>> = Mutex::new(Vec::new());

#[test]
fn arbitrary_requests_look_up_allowed_names_only() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("proxy");
    let mut settings = settings(&["allowed.example"], ProxyListener::UnixSocket(path.clone()));
    settings.resolver = |host| {
        LOOKED_UP.lock().unwrap().push(host.to_owned());
        Err(std::io::ErrorKind::NotFound.into())
    };
    let _proxy = NetworkProxy::start(settings, drop).unwrap();
    let piece = prop_oneof![
        "[ -~]{0,6}",
        Just("CONNECT ".to_owned()),
        Just("GET http://".to_owned()),
        Just("allowed.example".to_owned()),
        Just("evil.example".to_owned()),
        Just(":443".to_owned()),
        Just(" HTTP/1.1\r\n".to_owned()),
        Just("Host: evil.example\r\n".to_owned()),
        Just("\r\n".to_owned()),
        Just("@".to_owned()),
    ];
    proptest!(|(pieces in prop::collection::vec(piece, 0..9), bytes in prop::collection::vec(any::<u8>(), 0..20))| {
        let mut client = UnixStream::connect(&path).unwrap();
        client.write_all(pieces.concat().as_bytes()).unwrap();
        // The proxy may have refused the request.
        _ = client.write_all(&bytes);
        _ = client.shutdown(Shutdown::Write);
        _ = client.read_to_end(&mut Vec::new());
    });
    let mut client = UnixStream::connect(&path).unwrap();
    client.write_all(b"GET http://allowed.example/ HTTP/1.1\r\n\r\n").unwrap();
    assert!(read_all(&mut client).starts_with("HTTP/1.1 502 "));
    assert!(LOOKED_UP.lock().unwrap().iter().all(|name| name == "allowed.example"));
    assert!(!LOOKED_UP.lock().unwrap().is_empty());
}
