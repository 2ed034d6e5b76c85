//! The body of a request: bounded in size and in the time that it takes.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::StatusCode;
use hyper::body::{Body, Incoming};
use rmcp::model::{ErrorCode, ErrorData, ServerJsonRpcMessage};
use tokio::time::timeout;

use super::{Answer, refused};
use crate::message::{self, LONGEST};

/// How long a client may take to send a message.
const TIME: Duration = Duration::from_secs(30);

/// The whole body, or what the client is told in its place.
pub async fn read(body: Incoming) -> Result<Bytes, Answer> {
    // Told before a client sends it all.
    if body.size_hint().lower() > LONGEST as u64 {
        return Err(too_large());
    }
    match timeout(TIME, Limited::new(body, LONGEST).collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(_)) => Err(incomplete(StatusCode::BAD_REQUEST, "the body of the request broke off")),
        Err(_) => Err(incomplete(StatusCode::REQUEST_TIMEOUT, "the body of the request took too long")),
    }
}

fn too_large() -> Answer {
    refused(StatusCode::PAYLOAD_TOO_LARGE, &message::too_long())
}

fn incomplete(status: StatusCode, why: &'static str) -> Answer {
    refused(status, &ServerJsonRpcMessage::error(ErrorData::new(ErrorCode::INVALID_REQUEST, why, None), None))
}
