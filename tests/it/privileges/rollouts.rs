//! The pre-traffic hook: it lets new versions through, and makes way when no concurrency is left.

use super::Used;
use crate::pretraffic::Scene;

pub(super) async fn made() -> Used {
    let scene = Scene::new().await;
    scene.walk().await;
    scene.stack.ledger.used()
}
