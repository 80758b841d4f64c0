//! The ways in which a decided policy reaches the replicas: [`Handover`].

/// How a decided policy reaches the replicas that review with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handover {
    /// The leader writes a record, which each replica follows, the leader's own included.
    Records,
    /// The host is the only one, and reviews with the policy at once: Modules of a folder.
    InProcess,
}
