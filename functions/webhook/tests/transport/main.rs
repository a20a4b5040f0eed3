//! The client against real sockets: receivers that behave, receivers that misbehave, and the address guard.

mod authority;
mod bodies;
mod broken;
mod deadline;
mod guard;
mod names;
mod pool;
mod proxies;
mod receiver;
mod request;
mod statuses;
mod tls;
