//! The client against real sockets: receivers that behave, receivers that misbehave, and the address guard.

mod answers;
mod deadline;
mod guard;
mod pool;
mod receiver;
mod request;
mod servers;
mod tls;
