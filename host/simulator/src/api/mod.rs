//! The API: reads requests, dispatches them to verbs, and serves discovery, OpenAPI and tables.

pub(crate) mod discovery;
pub(crate) mod dispatch;
pub(crate) mod event_group;
pub(crate) mod health;
pub(crate) mod http;
pub(crate) mod openapi;
pub(crate) mod protobuf;
pub(crate) mod request;
pub(crate) mod request_body;
pub(crate) mod request_context;
pub(crate) mod request_log;
pub(crate) mod strict_decoding;
pub(crate) mod table;
pub(crate) mod verbs;
pub(crate) mod written_view;
