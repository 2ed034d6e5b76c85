//! Which requests of which sessions are not answered yet.
//!
//! Within a session rmcp finds the way back to a client by the id of its request: the answer to the first of two with the
//! same id would go to the second, and the first would wait for ever.

use std::collections::HashSet;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::HeaderMap;
use rmcp::model::RequestId;

use super::Answer;

/// The header that names a session.
const SESSION: &str = "mcp-session-id";

type Key = (Vec<u8>, RequestId);

/// Clones count together.
#[derive(Clone, Default)]
pub struct UnderWay(Arc<Mutex<HashSet<Key>>>);

impl UnderWay {
    /// Notes a request. None where its session has one with the same id; requests without a session are their own.
    pub fn begin(&self, headers: &HeaderMap, id: &RequestId) -> Option<Noted> {
        let Some(session) = headers.get(SESSION) else { return Some(Noted(None)) };
        let key = (session.as_bytes().to_vec(), id.clone());
        let is_new = self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone());
        is_new.then(|| Noted(Some((self.clone(), key))))
    }
}

/// Forgotten when dropped.
pub struct Noted(Option<(UnderWay, Key)>);

impl Noted {
    /// The same answer, noted until all of it was sent.
    pub fn until(self, answer: Answer) -> Answer {
        match self.0 {
            Some(_) => answer.map(|body| BoxBody::new(Sending { body, noted: Some(self) })),
            None => answer,
        }
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        if let Some((under_way, key)) = &self.0 {
            under_way.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
        }
    }
}

struct Sending {
    body: BoxBody<Bytes, Infallible>,
    noted: Option<Noted>,
}

impl Body for Sending {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(None) = polled {
            self.noted = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt, Full};
    use hyper::Response;

    use super::*;

    #[test]
    fn an_id_is_taken_until_its_answer_was_sent() {
        let under_way = UnderWay::default();
        let mut headers = HeaderMap::new();
        let id = RequestId::Number(1);
        // Whoever has no session has an answer of their own.
        let [_one, _other] = [(); 2].map(|()| under_way.begin(&headers, &id).unwrap());
        headers.insert(SESSION, "a".parse().unwrap());
        let first = under_way.begin(&headers, &id).unwrap();
        assert!(under_way.begin(&headers, &id).is_none());
        assert!(under_way.begin(&headers, &RequestId::Number(2)).is_some());
        let answer = first.until(Response::new(Full::new(Bytes::from("x")).boxed()));
        assert!(under_way.begin(&headers, &id).is_none());
        headers.insert(SESSION, "b".parse().unwrap());
        assert!(under_way.begin(&headers, &id).is_some());
        headers.insert(SESSION, "a".parse().unwrap());
        drop(answer);
        assert!(under_way.begin(&headers, &id).is_some());
    }
}
