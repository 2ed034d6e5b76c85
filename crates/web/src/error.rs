//! Errors as JSON, with the status that fits.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use windlass_app::{Failure, FailureCode};
use windlass_hooks::SecretMask;

/// What a person should know after a command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CommandNotices {
    /// Warnings and notes, such as `warning: …`; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

/// The body of an answer with an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ErrorBody {
    pub error: String,
    pub cause: Option<String>,
    pub hint: Option<String>,
    pub code: String,
    #[serde(flatten)]
    pub notices: CommandNotices,
}

/// An error of a request.
#[derive(Debug)]
pub struct RequestError {
    status: StatusCode,
    body: Box<ErrorBody>,
}

impl RequestError {
    pub fn new(status: StatusCode, code: &str, error: &str, hint: &str) -> Self {
        let hint = Some(hint.to_owned()).filter(|hint| !hint.is_empty());
        let (error, code, notices) = (error.to_owned(), code.to_owned(), CommandNotices::default());
        Self { status, body: Box::new(ErrorBody { error, cause: None, hint, code, notices }) }
    }

    pub fn with_cause(mut self, cause: &str) -> Self {
        self.body.cause = Some(cause.to_owned());
        self
    }

    /// Adds what the command said before it failed.
    pub fn with_notices(mut self, notices: CommandNotices) -> Self {
        self.body.notices = notices;
        self
    }

    /// Masks the secrets that the configuration names.
    pub fn mask_secrets(mut self, mask: &SecretMask) -> Self {
        let body = &mut self.body;
        for text in [Some(&mut body.error), body.cause.as_mut(), body.hint.as_mut()].into_iter().flatten() {
            *text = mask.mask_text(text).into_owned();
        }
        self
    }

    pub fn is_about_store(&self) -> bool {
        self.body.code == FailureCode::Store.name()
    }

    pub fn not_logged_in() -> Self {
        let hint = "`windlass serve invite NAME` prints a link that logs in";
        Self::new(StatusCode::UNAUTHORIZED, "not_logged_in", "not logged in", hint)
    }

    pub fn bad_request(error: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "usage", error, "")
    }

    pub fn not_found(error: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", error, "")
    }
}

impl From<Failure> for RequestError {
    fn from(failure: Failure) -> Self {
        let status = match failure.code {
            FailureCode::NotFound | FailureCode::NoProject => StatusCode::NOT_FOUND,
            FailureCode::Refused => StatusCode::CONFLICT,
            FailureCode::Trust => StatusCode::FORBIDDEN,
            // The request is well formed, but one of its values fits nothing in the project.
            FailureCode::Usage | FailureCode::Config => StatusCode::UNPROCESSABLE_ENTITY,
            FailureCode::Access | FailureCode::Fleet => StatusCode::SERVICE_UNAVAILABLE,
            FailureCode::Store | FailureCode::System | FailureCode::Interrupted(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let cause = (!failure.causes.is_empty()).then(|| failure.causes.join(": "));
        let code = failure.code.name().to_owned();
        let notices = CommandNotices::default();
        let body = ErrorBody { error: failure.message, cause, hint: failure.hint, code, notices };
        Self { status, body: Box::new(body) }
    }
}

impl IntoResponse for RequestError {
    fn into_response(self) -> Response {
        (self.status, Json(self.body)).into_response()
    }
}
