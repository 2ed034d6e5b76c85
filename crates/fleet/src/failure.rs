//! Failures of a service, as a sequencer reports them.

use windlass_store::SequencerError;

pub type FailureSource = Box<dyn std::error::Error + Send + Sync>;

/// The service is away, and has not got what the caller wanted to give it.
pub fn unreachable(source: impl Into<FailureSource>) -> SequencerError {
    SequencerError::Unreachable { source: source.into() }
}

/// The service is there, and does not do what the caller wants.
pub fn refused(source: impl Into<FailureSource>) -> SequencerError {
    SequencerError::Refused { source: source.into() }
}

/// The service may have got the message.
pub fn unknown_outcome(source: impl Into<FailureSource>) -> SequencerError {
    SequencerError::OutcomeUnknown { source: source.into() }
}

/// Returns whether the other side's certificate, or its TLS, is the cause of an error.
pub fn is_tls_failure(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        if error.is::<rustls::Error>() || inner.is_some_and(|inner| inner.is::<rustls::Error>()) {
            return true;
        }
        cause = error.source();
    }
    false
}
