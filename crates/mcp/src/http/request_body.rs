//! Body of a request: bounded in size and in time.

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::StatusCode;
use hyper::body::Body;
use rmcp::model::{ErrorCode, ErrorData, ServerJsonRpcMessage};
use tokio::time::timeout;

use super::{HttpAnswer, protocol_error_answer};
use crate::message::{self, MAX_MESSAGE_BYTES};

/// Maximum time for a client to send a message.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// Reads the whole body. Returns an error answer for the client if that fails.
pub async fn read_body<B>(body: B) -> Result<Bytes, HttpAnswer>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    // Refuse the announced size before the client sends the body.
    if body.size_hint().lower() > MAX_MESSAGE_BYTES as u64 {
        return Err(too_large_answer());
    }
    match timeout(BODY_TIMEOUT, Limited::new(body, MAX_MESSAGE_BYTES).collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large_answer()),
        Ok(Err(_)) => Err(incomplete_answer(StatusCode::BAD_REQUEST, "the body of the request broke off")),
        Err(_) => Err(incomplete_answer(StatusCode::REQUEST_TIMEOUT, "the body of the request took too long")),
    }
}

fn too_large_answer() -> HttpAnswer {
    protocol_error_answer(StatusCode::PAYLOAD_TOO_LARGE, &message::too_long_error())
}

fn incomplete_answer(status: StatusCode, why: &'static str) -> HttpAnswer {
    protocol_error_answer(
        status,
        &ServerJsonRpcMessage::error(ErrorData::new(ErrorCode::INVALID_REQUEST, why, None), None),
    )
}
