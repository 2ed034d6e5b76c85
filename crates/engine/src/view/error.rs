//! The error of failed look-ups.

use std::error::Error;

/// A look-up that failed for a reason outside the rules.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the store")]
pub struct ViewError(#[source] pub Box<dyn Error + Send + Sync>);

pub type ViewResult<T> = Result<T, ViewError>;
