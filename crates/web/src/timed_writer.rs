//! A connection whose peer has to take what is written: a client that reads nothing is dropped.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// A stream whose writes fail when none of them makes progress for some time.
pub struct TimedWriter<S> {
    inner: S,
    timeout: Duration,
    /// The deadline of the write that waits.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<S> TimedWriter<S> {
    pub fn new(inner: S, timeout: Duration) -> Self {
        Self { inner, timeout, deadline: None }
    }

    fn check_progress<T>(&mut self, polled: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.deadline = None;
            return polled;
        }
        let timeout = self.timeout;
        ready!(self.deadline.get_or_insert_with(|| Box::pin(sleep(timeout))).as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimedWriter<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedWriter<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.check_progress(polled, context)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.inner).poll_flush(context);
        self.check_progress(polled, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.inner).poll_shutdown(context);
        self.check_progress(polled, context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncWriteExt, duplex};

    use super::*;

    #[tokio::test]
    async fn write_to_reader_that_takes_nothing_times_out() {
        let (_reader, writer) = duplex(8);
        let mut writer = TimedWriter::new(writer, Duration::from_millis(1));
        writer.write_all(b"12345678").await.expect("the buffer has room");
        let error = writer.write_all(b"9").await.expect_err("the reader takes nothing");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
