//! Secrets of the page: login codes, cookies, tokens. Only their digests are stored.

use std::fmt::{self, Debug};

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::{Failure, FailureCode, environment};

/// A random secret of 128 bits, in hexadecimal digits.
#[derive(Clone, PartialEq, Eq)]
pub struct AccessSecret(String);

impl AccessSecret {
    /// Makes a new secret.
    pub fn generate() -> Result<Self, Failure> {
        let number = environment::random_u128()
            .map_err(|error| Failure::new(FailureCode::System, "cannot get random bytes").with_cause(error))?;
        Ok(Self(format!("{number:032x}")))
    }

    pub fn text(&self) -> &str {
        &self.0
    }

    pub fn digest(&self) -> String {
        digest_text(&self.0)
    }
}

impl Debug for AccessSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccessSecret(…)")
    }
}

/// Returns the digest of a given secret, for a comparison with a stored one.
pub fn digest_text(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Compares digests in constant time.
pub fn is_same_digest(one: &str, other: &str) -> bool {
    one.as_bytes().ct_eq(other.as_bytes()).into()
}
