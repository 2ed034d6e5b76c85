//! Looking hosts up, with failures that can be told from those of a connection.

use std::io;

use thiserror::Error;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

/// The client's own way, but for the error.
#[derive(Debug, Default)]
pub(super) struct Named(DefaultResolver);

#[derive(Debug, Error)]
#[error(transparent)]
pub(super) struct NotResolved(pub(super) io::Error);

impl Resolver for Named {
    fn resolve(&self, uri: &Uri, config: &Config, timeout: NextTimeout) -> Result<ResolvedSocketAddrs, ureq::Error> {
        self.0.resolve(uri, config, timeout).map_err(|error| match error {
            ureq::Error::Io(error) => ureq::Error::Other(Box::new(NotResolved(error))),
            error => error,
        })
    }
}
