//! The fence around all requests: a host that may have lost its Lease sends nothing more.
//!
//! Kubernetes has no fencing: the API server does not check whether a writer still leads. So the
//! writer must stop by itself, also if it was paused (SIGSTOP, a suspended machine, a long swap)
//! between the check of the clock and the write. The host checks the clock twice: when it gives a
//! request to the connection, and before each write to the socket, below TLS. After a pause, bytes
//! arrive that were already in the kernel, and those of a thread that was paused between the second
//! check and the write itself: at most one write for each thread of the host.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use tower::Service;

use crate::Env;

/// The fence never closes.
const OPEN: u64 = u64::MAX;

/// The time until which the host may send requests. Clones share it.
#[derive(Clone, Debug)]
pub struct Fence {
    env: Env,
    /// Milliseconds of [`Env::uptime`].
    until: Arc<AtomicU64>,
}

impl Fence {
    /// A fence that never closes: for a host without leader election.
    pub fn open(env: &Env) -> Self {
        Self { env: env.clone(), until: Arc::new(AtomicU64::new(OPEN)) }
    }

    /// A fence that is closed until [`Fence::extend`].
    pub fn closed(env: &Env) -> Self {
        Self { env: env.clone(), until: Arc::new(AtomicU64::new(0)) }
    }

    /// Allows requests until this time of [`Env::uptime`].
    pub fn extend(&self, until: Duration) {
        let millis = u64::try_from(until.as_millis()).unwrap_or(OPEN);
        self.until.store(millis, Ordering::Release);
    }

    /// Allows no more requests.
    pub fn close(&self) {
        self.until.store(0, Ordering::Release);
    }

    /// How long the host may still send requests; zero if it may not.
    pub fn left(&self) -> Duration {
        match self.until.load(Ordering::Acquire) {
            OPEN => Duration::MAX,
            until => Duration::from_millis(until).saturating_sub(self.env.uptime()),
        }
    }

    /// Whether the host may send nothing.
    pub fn is_closed(&self) -> bool {
        self.left().is_zero()
    }
}

/// Makes connections that a fence guards.
#[derive(Clone, Debug)]
pub(crate) struct FencedConnector<C> {
    pub(crate) inner: C,
    pub(crate) fence: Fence,
}

impl<C> Service<Uri> for FencedConnector<C>
where
    C: Service<Uri>,
    C::Future: Send + 'static,
    C::Response: Send,
    C::Error: Send,
{
    type Response = Fenced<C::Response>;
    type Error = C::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let (connecting, fence) = (self.inner.call(uri), self.fence.clone());
        Box::pin(async move { Ok(Fenced { inner: connecting.await?, fence }) })
    }
}

/// A connection that breaks at the first write after the fence has closed.
#[derive(Debug)]
pub(crate) struct Fenced<S> {
    inner: S,
    fence: Fence,
}

impl<S> Fenced<S> {
    fn check(&self) -> io::Result<()> {
        if self.fence.is_closed() {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the Lease of this host has expired",
            ));
        }
        Ok(())
    }
}

impl<S: Connection> Connection for Fenced<S> {
    fn connected(&self) -> Connected {
        self.inner.connected()
    }
}

impl<S: Read + Unpin> Read for Fenced<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buffer)
    }
}

impl<S: Write + Unpin> Write for Fenced<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.inner).poll_write_vectored(cx, buffers)
    }
}

#[cfg(test)]
mod tests {
    use hyper_util::rt::TokioIo;
    use jiff::Timestamp;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn fence_closes_at_its_time_and_opens_when_extended() {
        let env = Env::scripted(1, Timestamp::UNIX_EPOCH);
        let fence = Fence::closed(&env);
        assert!(fence.is_closed());
        fence.extend(env.uptime() + Duration::from_secs(10));
        env.sleep(Duration::from_secs(4)).await;
        assert_eq!(fence.left(), Duration::from_secs(6));
        env.sleep(Duration::from_secs(6)).await;
        assert!(fence.is_closed());
        fence.extend(env.uptime() + Duration::from_secs(1));
        assert!(!fence.is_closed());
        fence.close();
        assert!(fence.is_closed());
        assert_eq!(Fence::open(&env).left(), Duration::MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn connection_behind_a_closed_fence_reads_but_does_not_write() {
        let env = Env::scripted(1, Timestamp::UNIX_EPOCH);
        let fence = Fence::closed(&env);
        fence.extend(env.uptime() + Duration::from_secs(10));
        let (ours, mut theirs) = duplex(64);
        let mut ours = TokioIo::new(Fenced { inner: TokioIo::new(ours), fence });
        ours.write_all(b"in time").await.unwrap();
        env.sleep(Duration::from_secs(10)).await;
        let error = ours.write_all(b"late").await.unwrap_err();
        assert_eq!(error.to_string(), "the Lease of this host has expired");
        theirs.write_all(b"answer").await.unwrap();
        let mut answer = [0; 6];
        ours.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"answer");
        drop(ours);
        let mut got = Vec::new();
        theirs.read_to_end(&mut got).await.unwrap();
        assert_eq!(got, b"in time");
    }
}
