//! One connection: its handshake, its requests, and its time limits.

use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::time::{Sleep, sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::activity::{Activity, Phase};
use super::answer::answer;
use super::drain::Drain;
use super::shared::Shared;
use super::watched_stream::WatchedStream;
use crate::reviewer::Reviewer;

/// Answers the requests of a connection until its end, or until one of its limits.
pub(super) async fn serve<S, R>(
    tls: TlsAcceptor,
    shared: Arc<Shared<R>>,
    stream: S,
    address: IpAddr,
    activity: Arc<Activity>,
    mut drain: watch::Receiver<Drain>,
) where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    R: Reviewer,
{
    let Some(stream) = handshake(&tls, &shared, stream, address).await else { return };
    activity.set_open();

    let drain_of_answers = drain.clone();
    let service = service_fn(|request: Request<Incoming>| {
        let (shared, activity, drain) = (&shared, &activity, &drain_of_answers);
        async move { Ok::<_, Infallible>(answer(shared, address, activity, drain, request).await) }
    });
    let stream = TokioIo::new(WatchedStream::new(stream, Arc::clone(&activity)));
    let mut connection = http1::Builder::new()
        // hyper's limit would also count the time between two requests.
        .header_read_timeout(None)
        .max_buf_size(shared.limits.head_bytes)
        .max_headers(shared.limits.headers)
        .serve_connection(stream, service);
    let mut timer = pin!(sleep(shared.limits.idle_time));
    let mut is_closing = false;
    loop {
        tokio::select! {
            biased;
            ended = &mut connection => {
                if let Err(error) = ended {
                    tracing::debug!(%address, %error, "connection aborted");
                    if error.is_parse() {
                        shared.count_refusal("head");
                    }
                }
                return;
            }
            () = expired(&activity, timer.as_mut()) => match activity.phase() {
                Phase::Idle => {
                    activity.set_closing();
                    Pin::new(&mut connection).graceful_shutdown();
                }
                phase => {
                    tracing::debug!(%address, ?phase, "connection closed: it took too long");
                    if phase == Phase::Head {
                        shared.count_refusal("head");
                    }
                    return;
                }
            },
            _ = drain.wait_for(|drain| *drain == Drain::Closing), if !is_closing => {
                is_closing = true;
                if activity.phase() == Phase::Idle {
                    activity.set_closing();
                }
                Pin::new(&mut connection).graceful_shutdown();
            }
        }
    }
}

/// Makes the TLS handshake of a connection; `None` if it fails or takes too long.
async fn handshake<S, R>(
    tls: &TlsAcceptor,
    shared: &Shared<R>,
    stream: S,
    address: IpAddr,
) -> Option<TlsStream<S>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let limit = shared.limits.handshake_time;
    match timeout(limit, tls.accept(stream)).await {
        Ok(Ok(stream)) => return Some(stream),
        Ok(Err(error)) => tracing::debug!(%address, %error, "TLS handshake failed"),
        Err(_) => tracing::debug!(%address, ?limit, "TLS handshake too slow"),
    }
    shared.count_refusal("handshake");
    None
}

/// Waits until the time limit of the phase is over. The phase changes only while the connection is
/// polled, which polls this future too.
async fn expired(activity: &Activity, mut timer: Pin<&mut Sleep>) {
    std::future::poll_fn(|cx| {
        let Some(until) = activity.until() else { return Poll::Pending };
        if timer.deadline() != until {
            timer.as_mut().reset(until);
        }
        timer.as_mut().poll(cx)
    })
    .await;
}
