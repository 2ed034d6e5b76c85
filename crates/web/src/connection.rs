//! The connections of the server: how many there are, and how long a client may take.
//!
//! Invariant: a client without a login holds a connection for a bounded time, and all of them together are bounded, too.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;

use crate::peer::ConnectionEnds;
use crate::timed_writer::TimedWriter;

/// The limits of connections.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionLimits {
    /// The most connections at a time. Further ones wait.
    count: usize,
    /// How long a client may take for the head of a request.
    header_read: Duration,
    /// How long a client may take for the handshake of TLS.
    handshake: Duration,
    /// How long a client may take nothing of an answer.
    write: Duration,
}

pub const CONNECTION_LIMITS: ConnectionLimits = ConnectionLimits {
    count: 512,
    header_read: Duration::from_secs(15),
    handshake: Duration::from_secs(10),
    write: Duration::from_secs(20),
};

/// Serves connections until the server stops.
pub async fn accept_connections(
    listener: TcpListener,
    acceptor: Option<TlsAcceptor>,
    router: Router,
    limits: ConnectionLimits,
    mut stopped: watch::Receiver<bool>,
) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let places = Arc::new(Semaphore::new(limits.count));
    loop {
        let accepting = async {
            let place = places.clone().acquire_owned().await.map_err(io::Error::other)?;
            listener.accept().await.map(|(stream, peer)| (place, stream, peer))
        };
        let (place, stream, peer) = tokio::select! {
            accepted = accepting => match accepted {
                Ok(accepted) => accepted,
                // Without a free descriptor, another try at once would spin.
                Err(_) => { tokio::time::sleep(Duration::from_millis(50)).await; continue }
            },
            () = async { drop(stopped.wait_for(|stopped| *stopped).await) } => return Ok(()),
        };
        // Messages are short, so a delay for more data would only slow them down.
        let _ = stream.set_nodelay(true);
        let Ok(local) = stream.local_addr() else { continue };
        let ends = ConnectionEnds::new(peer, local);
        let (router, acceptor) = (router.clone(), acceptor.clone());
        tokio::spawn(async move {
            let _place = place;
            match acceptor {
                None => serve_connection(stream, router, ends, limits).await,
                Some(acceptor) => {
                    if let Ok(Ok(stream)) = tokio::time::timeout(limits.handshake, acceptor.accept(stream)).await {
                        serve_connection(stream, router, ends, limits).await;
                    }
                }
            }
        });
    }
}

async fn serve_connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: Router,
    ends: ConnectionEnds,
    limits: ConnectionLimits,
) {
    let service = TowerToHyperService::new(router.layer(axum::Extension(ends)));
    // A client that breaks the protocol or goes away is no error of ours.
    let _ = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_read)
        .serve_connection(TokioIo::new(TimedWriter::new(stream, limits.write)), service)
        .await;
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio::sync::mpsc;

    use super::*;
    use crate::stream::{open_stream, send_message};

    /// One connection at a time, and short timeouts.
    const TIGHT_LIMITS: ConnectionLimits = ConnectionLimits {
        count: 1,
        header_read: Duration::from_millis(500),
        write: Duration::from_millis(50),
        ..CONNECTION_LIMITS
    };

    /// Serves a router until the sender is dropped.
    fn serve_router(router: Router) -> (SocketAddr, watch::Sender<bool>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.set_nonblocking(true).expect("a socket");
        let address = listener.local_addr().expect("an address");
        let (stop, stopped) = watch::channel(false);
        tokio::spawn(accept_connections(listener, None, router, TIGHT_LIMITS, stopped));
        (address, stop)
    }

    async fn send_request(address: SocketAddr, path: &str) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.expect("a connection");
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("the request fits a buffer");
        stream
    }

    #[tokio::test]
    async fn silent_client_loses_its_place_to_the_next_one() {
        let (address, _stop) = serve_router(Router::new().route("/", get(|| async { "here" })));
        let mut silent = TcpStream::connect(address).await.expect("a connection");
        let mut next = send_request(address, "/").await;
        let (mut nothing, mut answer) = (Vec::new(), Vec::new());
        tokio::select! {
            biased;
            ended = silent.read_to_end(&mut nothing) => assert_eq!(ended.unwrap_or(0), 0),
            _ = next.read_to_end(&mut answer) => panic!("only one connection has a place"),
        }
        next.read_to_end(&mut answer).await.expect("an answer");
        assert!(answer.ends_with(b"here"), "{answer:?}");
    }

    #[tokio::test]
    async fn client_that_reads_no_events_is_dropped() {
        let (ended, mut ends) = mpsc::unbounded_channel();
        let endless_events = move || {
            let ended = ended.clone();
            async move {
                let (queue, receiver) = mpsc::channel(1);
                tokio::spawn(async move {
                    while send_message(&queue, "log", &"x".repeat(100_000)).await {}
                    let _ = ended.send(());
                });
                open_stream(receiver)
            }
        };
        let router = Router::new().route("/api/events", get(endless_events)).route("/", get(|| async { "here" }));
        let (address, _stop) = serve_router(router);
        let mut slow = send_request(address, "/api/events").await;
        ends.recv().await.expect("the stream of events ends");
        let mut answer = Vec::new();
        send_request(address, "/").await.read_to_end(&mut answer).await.expect("an answer");
        assert!(answer.ends_with(b"here"), "the place is free again");
        let mut taken = Vec::new();
        let _ = slow.read_to_end(&mut taken).await;
        assert!(taken.starts_with(b"HTTP/1.1 200") && !taken.ends_with(b"0\r\n\r\n"), "the answer is cut");
    }
}
