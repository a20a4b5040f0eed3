//! Writes new deliveries, and makes the steps of their lives.

use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::{ReturnValue, ReturnValuesOnConditionCheckFailure};

use super::delivery_row::{from_row, to_row};
use super::expression::Expression;
use super::table::{ACCOUNT_ID, PK};
use super::{CONFLICT_ATTEMPTS, WebhookStore, table};
use crate::delivery::{Delivery, Transition};
use platform::store::{Attributes, StoreError, get_row, retry_conflicts, updated};
use types::ids::{DeliveryId, EndpointId, UserId};

/// What became of writing a new delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Put {
    New,
    /// The delivery exists already. Holds its present state.
    Present(Box<Delivery>),
}

/// What became of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepOutcome {
    /// The step was made. Holds the delivery after it.
    Changed(Box<Delivery>),
    /// A condition did not hold. Holds the delivery as it stands, if there is one.
    Refused(Option<Box<Delivery>>),
}

impl WebhookStore {
    /// Writes a new delivery, unless it exists already.
    pub async fn put_delivery(&self, delivery: &Delivery) -> Result<Put, StoreError> {
        retry_conflicts(CONFLICT_ATTEMPTS, || async {
            let put = self
                .client
                .put_item()
                .table_name(&self.table)
                .set_item(Some(to_row(delivery)?))
                .condition_expression("attribute_not_exists(#pk)")
                .expression_attribute_names("#pk", PK)
                .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
            let Err(error) = put.send().await else { return Ok(Put::New) };
            match error.as_service_error() {
                Some(PutItemError::ConditionalCheckFailedException(failed)) => {
                    let found = failed.item().ok_or_else(|| StoreError::corrupt("a delivery without attributes"))?;
                    Ok(Put::Present(Box::new(from_row(found)?)))
                }
                _ => Err(error.into()),
            }
        })
        .await
    }

    /// Reads a delivery, strongly consistently.
    pub async fn delivery(&self, id: DeliveryId) -> Result<Option<Delivery>, StoreError> {
        get_row(&self.client, &self.table, table::delivery(id)).await?.map(|row| from_row(&row)).transpose()
    }

    /// Returns the account of a delivery, or `None` if there is no such delivery or its row does not tell. Nothing else
    /// of the row needs to be readable.
    pub async fn account_of(&self, id: DeliveryId) -> Result<Option<UserId>, StoreError> {
        let row = get_row(&self.client, &self.table, table::delivery(id)).await?;
        Ok(row.and_then(|row| Attributes(&row).parsed(ACCOUNT_ID).ok()))
    }

    /// Makes a step of a delivery to this endpoint in one conditional write, which also returns the delivery.
    pub async fn step(
        &self,
        id: DeliveryId,
        endpoint: EndpointId,
        transition: &Transition,
    ) -> Result<StepOutcome, StoreError> {
        retry_conflicts(CONFLICT_ATTEMPTS, || async {
            let update = self
                .update(id, Expression::new(transition, endpoint)?)
                .return_values(ReturnValue::AllNew)
                .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
            let error = match update.send().await {
                Ok(updated) => {
                    let row = updated.attributes.ok_or_else(|| StoreError::corrupt("no attributes returned"))?;
                    return Ok(StepOutcome::Changed(Box::new(from_row(&row)?)));
                }
                Err(error) => error,
            };
            match error.as_service_error() {
                Some(UpdateItemError::ConditionalCheckFailedException(failed)) => {
                    let found = failed.item().filter(|row| !row.is_empty());
                    let found = found.map(|row| from_row(row).map(Box::new)).transpose()?;
                    Ok(StepOutcome::Refused(found))
                }
                _ => Err(error.into()),
            }
        })
        .await
    }

    /// Makes a step of a delivery to this endpoint in one conditional write. Returns whether its conditions held.
    pub async fn settle(
        &self,
        id: DeliveryId,
        endpoint: EndpointId,
        transition: &Transition,
    ) -> Result<bool, StoreError> {
        retry_conflicts(CONFLICT_ATTEMPTS, || async {
            updated(self.update(id, Expression::new(transition, endpoint)?).send().await)
        })
        .await
    }

    fn update(&self, id: DeliveryId, expression: Expression) -> UpdateItemFluentBuilder {
        self.client
            .update_item()
            .table_name(&self.table)
            .set_key(Some(table::delivery(id)))
            .update_expression(expression.update())
            .condition_expression(expression.condition())
            .set_expression_attribute_names(Some(expression.names))
            .set_expression_attribute_values(Some(expression.values).filter(|values| !values.is_empty()))
    }
}
