//! What wit-bindgen generates from the contract, for each export.

/// The bindings that wit-bindgen generates from the contract.
#[allow(unsafe_code, missing_docs, unreachable_pub, clippy::pedantic, clippy::expect_used)]
pub mod reconciler {
    wit_bindgen::generate!({
        path: "../../wit",
        world: "reconciler-guest",
        pub_export_macro: true,
    });
}

/// The bindings that wit-bindgen generates from the contract. The imports are those of a guest that
/// reconciles.
#[allow(unsafe_code, missing_docs, unreachable_pub, clippy::pedantic, clippy::expect_used)]
pub mod policy {
    wit_bindgen::generate!({
        path: "../../wit",
        world: "policy-guest",
        pub_export_macro: true,
        with: {
            "innkeeper:guest/cluster@0.1.0":
                crate::component::bindings::reconciler::innkeeper::guest::cluster,
            "innkeeper:guest/clock@0.1.0":
                crate::component::bindings::reconciler::innkeeper::guest::clock,
            "innkeeper:guest/log@0.1.0":
                crate::component::bindings::reconciler::innkeeper::guest::log,
        },
    });
}
