//! The JSON body of a request, and the error for one that does not fit.

use std::time::Duration;

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::error::RequestError;

const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// A body that has exactly the fields of its type.
pub struct JsonBody<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for JsonBody<T> {
    type Rejection = RequestError;

    async fn from_request(request: Request, state: &S) -> Result<Self, RequestError> {
        let reading = timeout(BODY_TIMEOUT, Json::<T>::from_request(request, state));
        let read = reading.await.map_err(|_| {
            RequestError::new(StatusCode::REQUEST_TIMEOUT, "body", "the body of the request took too long", "")
        })?;
        let Json(body) = read.map_err(|rejection: JsonRejection| {
            RequestError::new(rejection.status(), "body", "the body does not fit this request", "")
                .with_cause(&rejection.body_text())
        })?;
        Ok(Self(body))
    }
}
