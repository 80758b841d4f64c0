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
    let refuse = |reason| {
        shared.statistics.send_modify(|statistics| statistics.count_refusal(reason));
    };
    let stream = match timeout(shared.limits.handshake_time, tls.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            tracing::debug!(%address, %error, "TLS handshake failed");
            return refuse("handshake");
        }
        Err(_) => {
            tracing::debug!(%address, limit = ?shared.limits.handshake_time, "TLS handshake too slow");
            return refuse("handshake");
        }
    };
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
                        refuse("head");
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
                        refuse("head");
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
