//! Stored and queued formats. Golden files hold what a release has written: this one must write the same, and must read
//! it. During a deployment two releases run side by side, and after a rollback the older one finds what the newer one
//! has written.

mod dynamo;
mod golden;
mod kinds;
mod loaded;
mod messages;
mod newer;
mod reads;
mod scene;
mod seen;
mod writes;
