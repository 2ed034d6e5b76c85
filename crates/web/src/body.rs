//! The JSON body of a request, and the error for one that does not fit.

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{FromRequest, Request};
use serde::de::DeserializeOwned;

use crate::error::RequestError;

/// A body that has exactly the fields of its type.
pub struct JsonBody<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for JsonBody<T> {
    type Rejection = RequestError;

    async fn from_request(request: Request, state: &S) -> Result<Self, RequestError> {
        let Json(body) = Json::<T>::from_request(request, state).await.map_err(|rejection: JsonRejection| {
            RequestError::new(rejection.status(), "body", "the body does not fit this request", "")
                .with_cause(&rejection.body_text())
        })?;
        Ok(Self(body))
    }
}
