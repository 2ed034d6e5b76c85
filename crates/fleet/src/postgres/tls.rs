//! TLS of connections to PostgreSQL.

use std::convert::Infallible;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use windlass_process::file::read_bounded;

use crate::failure::FailureSource;

/// The most bytes of a file with certificates.
const MAX_CERTIFICATE_BYTES: u64 = 1024 * 1024;

/// Encrypts connections, and checks the certificates of servers.
#[derive(Clone)]
pub struct PostgresTlsConnector {
    config: Arc<ClientConfig>,
}

/// A handshake with a server.
pub struct PostgresTlsHandshake {
    config: Arc<ClientConfig>,
    /// Empty for a socket of this machine, which is not encrypted.
    host: String,
}

/// An encrypted connection.
pub struct PostgresTlsStream<S>(tokio_rustls::client::TlsStream<S>);

impl PostgresTlsConnector {
    /// Loads the certificates that sign those of servers: from a file, or those that the system trusts.
    pub fn load(is_encrypted: bool, certificates: Option<&Path>) -> Result<Self, FailureSource> {
        let mut roots = RootCertStore::empty();
        if let (true, Some(path)) = (is_encrypted, certificates) {
            let cannot_read = |cause: String| format!("cannot read the certificates {}: {cause}", path.display());
            let text = read_bounded(path, MAX_CERTIFICATE_BYTES).map_err(|error| cannot_read(error.to_string()))?;
            for certificate in CertificateDer::pem_slice_iter(&text) {
                roots.add(certificate.map_err(|error| cannot_read(error.to_string()))?)?;
            }
        } else if is_encrypted {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        Ok(Self { config: Arc::new(builder.with_root_certificates(roots).with_no_client_auth()) })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for PostgresTlsConnector {
    type Stream = PostgresTlsStream<S>;
    type TlsConnect = PostgresTlsHandshake;
    type Error = Infallible;

    fn make_tls_connect(&mut self, domain: &str) -> Result<PostgresTlsHandshake, Infallible> {
        Ok(PostgresTlsHandshake { config: Arc::clone(&self.config), host: domain.to_owned() })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for PostgresTlsHandshake {
    type Stream = PostgresTlsStream<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<PostgresTlsStream<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        let connector = tokio_rustls::TlsConnector::from(self.config);
        Box::pin(async move {
            let server = ServerName::try_from(self.host).map_err(io::Error::other)?;
            connector.connect(server, stream).await.map(PostgresTlsStream)
        })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for PostgresTlsStream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for PostgresTlsStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for PostgresTlsStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
