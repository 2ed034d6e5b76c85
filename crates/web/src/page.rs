//! The page: three files that are built from `page/` and part of the program.

use axum::http::HeaderMap;
use axum::http::header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};

use crate::error::RequestError;

const INDEX: &[u8] = include_bytes!("../page/dist/index.html");
const SCRIPT: &[u8] = include_bytes!("../page/dist/app.js.gz");
const STYLE: &[u8] = include_bytes!("../page/dist/app.css.gz");

/// Serves the page under every path that is not a file or a part of the API: the page reads its own path.
pub async fn serve_index(uri: Uri) -> Response {
    if uri.path().starts_with("/api/") {
        return RequestError::not_found("there is no such path in the API").into_response();
    }
    ([(CONTENT_TYPE, "text/html; charset=utf-8"), (CACHE_CONTROL, "no-cache")], INDEX).into_response()
}

pub async fn serve_script(headers: HeaderMap) -> Response {
    serve_compressed(&headers, SCRIPT, "text/javascript; charset=utf-8")
}

pub async fn serve_style(headers: HeaderMap) -> Response {
    serve_compressed(&headers, STYLE, "text/css; charset=utf-8")
}

/// Serves a compressed file. Every browser takes it.
fn serve_compressed(headers: &HeaderMap, file: &'static [u8], kind: &'static str) -> Response {
    let tag =
        format!("\"{}\"", Sha256::digest(file).iter().take(8).map(|byte| format!("{byte:02x}")).collect::<String>());
    if headers.get(IF_NONE_MATCH).is_some_and(|given| given.as_bytes() == tag.as_bytes()) {
        return StatusCode::NOT_MODIFIED.into_response();
    }
    let takes_gzip = headers.get(ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    if !takes_gzip.is_some_and(|accepted| accepted.contains("gzip")) {
        let hint = "send `Accept-Encoding: gzip`";
        return RequestError::new(StatusCode::NOT_ACCEPTABLE, "encoding", "the page is compressed", hint)
            .into_response();
    }
    let fixed = [(CONTENT_TYPE, kind), (CONTENT_ENCODING, "gzip"), (CACHE_CONTROL, "no-cache")];
    (fixed, [(ETAG, tag)], file).into_response()
}
