//! Viewers with a role. A handler that takes one refuses other viewers before it reads the path and the body.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use windlass_app::web_access::{PageViewer, ViewerRole};

use crate::error::RequestError;
use crate::guard::AuthenticatedViewer;

/// A viewer who may answer questions.
pub struct AnsweringViewer(pub PageViewer);

/// A viewer who may do everything that the page offers.
pub struct ManagingViewer(pub PageViewer);

impl<S: Send + Sync> FromRequestParts<S> for AnsweringViewer {
    type Rejection = RequestError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, RequestError> {
        find_viewer_with_role(parts, ViewerRole::Answer).map(Self)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for ManagingViewer {
    type Rejection = RequestError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, RequestError> {
        find_viewer_with_role(parts, ViewerRole::Manage).map(Self)
    }
}

/// Returns the viewer that `guard` has found, if its role is large enough.
fn find_viewer_with_role(parts: &Parts, role: ViewerRole) -> Result<PageViewer, RequestError> {
    let viewer = parts.extensions.get::<AuthenticatedViewer>().ok_or_else(RequestError::not_logged_in)?;
    viewer.require(role)?;
    Ok(viewer.viewer.clone())
}
