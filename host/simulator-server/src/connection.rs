//! One connection, HTTPS or plain HTTP, until the client or the server ends it.

use std::pin::pin;
use std::sync::Arc;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use crate::answer::Answerer;
use crate::stop::Stop;

/// The first byte of a TLS handshake.
const HANDSHAKE: u8 = 0x16;

/// Serves one client. A connection for which there is no place gets an answer that says so.
pub(crate) async fn serve(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    answerer: Option<Arc<Answerer>>,
    stop: Stop,
) {
    // The kernel must not delay small responses.
    let _ = stream.set_nodelay(true);
    let mut first = [0];
    tokio::select! {
        biased;
        () = stop.clone().requested() => {}
        peeked = stream.peek(&mut first) => match peeked {
            Ok(1) if first[0] == HANDSHAKE => {
                let accepted = tokio::select! {
                    biased;
                    () = stop.clone().requested() => return,
                    accepted = acceptor.accept(stream) => accepted,
                };
                match accepted {
                    Ok(stream) => speak(stream, answerer, stop).await,
                    Err(error) => tracing::debug!(%error, "handshake aborted by the client"),
                }
            }
            Ok(1) => speak(stream, answerer, stop).await,
            _ => {}
        },
    }
}

/// Answers requests one after the other.
async fn speak<S>(stream: S, answerer: Option<Arc<Answerer>>, stop: Stop)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let service = service_fn(move |request| {
        let answerer = answerer.clone();
        async move {
            match answerer {
                Some(answerer) => answerer.answer(request).await,
                None => Ok(Answerer::refuse_busy()),
            }
        }
    });
    let mut connection =
        pin!(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        biased;
        result = connection.as_mut() => Some(result),
        () = stop.requested() => None,
    };
    let result = if let Some(result) = ended {
        result
    } else {
        connection.as_mut().graceful_shutdown();
        connection.await
    };
    if let Err(error) = result {
        tracing::debug!(%error, "connection ended early");
    }
}
