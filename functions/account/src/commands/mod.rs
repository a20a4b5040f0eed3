//! Runs a command.

mod deliveries;
mod endpoints;
mod keys;

use admin::owner::Owner;
use serde_json::Value;

use crate::answer::Done;
use crate::error::CommandError;
use crate::parameters::read;
use crate::request::CommandName;

pub(crate) async fn run(owner: Owner<'_>, command: CommandName, parameters: Value) -> Result<Done, CommandError> {
    match command {
        CommandName::KeysCreate => keys::create(owner, read(parameters)?).await,
        CommandName::KeysList => keys::list(owner, read(parameters)?).await,
        CommandName::KeysShow => keys::show(owner, read(parameters)?).await,
        CommandName::KeysRename => keys::rename(owner, read(parameters)?).await,
        CommandName::KeysRotate => keys::rotate(owner, read(parameters)?).await,
        CommandName::KeysRevoke => keys::revoke(owner, read(parameters)?).await,
        CommandName::EndpointsAdd => endpoints::add(owner, read(parameters)?).await,
        CommandName::EndpointsList => endpoints::list(owner, read(parameters)?).await,
        CommandName::EndpointsShow => endpoints::show(owner, read(parameters)?).await,
        CommandName::EndpointsUpdate => endpoints::update(owner, read(parameters)?).await,
        CommandName::EndpointsEnable => endpoints::enable(owner, read(parameters)?).await,
        CommandName::EndpointsDisable => endpoints::disable(owner, read(parameters)?).await,
        CommandName::EndpointsRemove => endpoints::remove(owner, read(parameters)?).await,
        CommandName::EndpointsRotateSecret => endpoints::rotate_secret(owner, read(parameters)?).await,
        CommandName::EndpointsTest => endpoints::test(owner, read(parameters)?).await,
        CommandName::DeliveriesList => deliveries::list(owner, read(parameters)?).await,
        CommandName::DeliveriesShow => deliveries::show(owner, read(parameters)?).await,
        CommandName::DeliveriesResend => deliveries::resend(owner, read(parameters)?).await,
        CommandName::DeliveriesResendAll => deliveries::resend_all(owner, read(parameters)?).await,
    }
}
