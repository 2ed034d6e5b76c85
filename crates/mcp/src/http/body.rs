//! Body of a request: bounded in size and in time.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::StatusCode;
use hyper::body::{Body, Incoming};
use rmcp::model::{ErrorCode, ErrorData, ServerJsonRpcMessage};
use tokio::time::timeout;

use super::{Answer, refused};
use crate::message::{self, LONGEST};

/// Maximum time for a client to send a message.
const TIME: Duration = Duration::from_secs(30);

/// Reads the whole body. Returns an error answer for the client if that fails.
pub async fn read(body: Incoming) -> Result<Bytes, Answer> {
    // Refuse the announced size before the client sends the body.
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
