//! The body of a request, bounded in size, in time and together with all others.

use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};

use super::body_budget::BudgetPart;
use super::limits::ServerLimits;
use super::refusal::Refusal;

/// Receives a body. The bytes that arrive count against `budget`. An announced length does not, or
/// announcements without bytes would use up the memory for bodies.
///
/// # Errors
/// If the body is too large or too slow, or the memory for bodies is full.
pub(super) async fn receive(
    body: &mut Incoming,
    budget: &mut BudgetPart<'_>,
    limits: &ServerLimits,
    request_time: Duration,
) -> Result<Vec<u8>, Refusal> {
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > limits.body_bytes {
        return Err(Refusal::BodyTooLarge(limits.body_bytes));
    }
    if !budget.has_room(announced) {
        return Err(Refusal::BodiesFull);
    }
    let time = limits.body_time.min(request_time);
    let received = collect(body, announced, budget, limits);
    tokio::time::timeout(time, received).await.map_err(|_| Refusal::BodyTooSlow(time))?
}

async fn collect(
    body: &mut Incoming,
    announced: usize,
    budget: &mut BudgetPart<'_>,
    limits: &ServerLimits,
) -> Result<Vec<u8>, Refusal> {
    // Pages of the buffer use no memory before they are written.
    let mut bytes = Vec::with_capacity(announced);
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(Refusal::BodyUnreadable)?.into_data() else { continue };
        if bytes.len() + data.len() > limits.body_bytes {
            return Err(Refusal::BodyTooLarge(limits.body_bytes));
        }
        if !budget.take(data.len()) {
            return Err(Refusal::BodiesFull);
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes)
}
