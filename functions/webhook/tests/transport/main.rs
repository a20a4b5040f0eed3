//! The client against real sockets: receivers that behave, receivers that misbehave, and the address guard.

mod authority;
mod bodies;
mod broken;
mod deadline;
mod guard;
mod pool;
mod proxies;
mod receiver;
mod request;
mod resolver;
mod statuses;
mod tls;
