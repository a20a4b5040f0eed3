//! A conditional write of one row as data, so that the same write can be sent alone or as a part of a transaction.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::{
    AttributeValue, ConditionCheck, ReturnValue, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update,
};

use crate::store::{Row, StoreError, updated};

/// A conditional write of one row.
///
/// In its expressions `#name` stands for the attribute of this name, which must be one of the table's attributes.
/// Names that are computed are given by [`Self::name`].
#[derive(Clone, Debug, Default)]
pub struct Change {
    key: Row,
    attributes: &'static [&'static str],
    update: String,
    condition: String,
    names: HashMap<String, String>,
    values: HashMap<String, AttributeValue>,
}

impl Change {
    /// Begins a write of the row with this key, in a table with these attributes.
    pub fn of(key: Row, attributes: &'static [&'static str]) -> Self {
        let (names, values) = (HashMap::new(), HashMap::new());
        Self { key, attributes, update: String::new(), condition: String::new(), names, values }
    }

    /// Sets the update expression. Without one, the write is only a check in a transaction.
    #[must_use]
    pub fn update(self, update: impl Into<String>) -> Self {
        Self { update: update.into(), ..self }
    }

    /// Adds a condition. All of them have to hold.
    #[must_use]
    pub fn when(mut self, condition: &str) -> Self {
        self.condition = match self.condition.as_str() {
            "" => format!("({condition})"),
            others => format!("{others} AND ({condition})"),
        };
        self
    }

    /// Lets a placeholder, `#` included, stand for this attribute.
    #[must_use]
    pub fn name(mut self, placeholder: impl Into<String>, attribute: impl Into<String>) -> Self {
        self.names.insert(placeholder.into(), attribute.into());
        self
    }

    /// Lets a placeholder, `:` included, stand for this value.
    #[must_use]
    pub fn value(mut self, placeholder: impl Into<String>, value: AttributeValue) -> Self {
        self.values.insert(placeholder.into(), value);
        self
    }

    /// Sends the write. Returns whether its conditions held.
    pub async fn send(&self, client: &Client, table: &str) -> Result<bool, StoreError> {
        let update = client.update_item().table_name(table).set_key(Some(self.key.clone()));
        let update = update.update_expression(&self.update).set_condition_expression(self.some_condition());
        let update = update.set_expression_attribute_names(Some(self.names()?));
        updated(update.set_expression_attribute_values(self.some_values()).send().await)
    }

    /// Sends the write. Returns the changed row. If a condition did not hold, the error is the row as it stands, which is
    /// empty if there is none.
    pub async fn send_for_row(&self, client: &Client, table: &str) -> Result<Result<Row, Row>, StoreError> {
        let update = client.update_item().table_name(table).set_key(Some(self.key.clone()));
        let update = update.update_expression(&self.update).set_condition_expression(self.some_condition());
        let update = update.set_expression_attribute_names(Some(self.names()?));
        let update = update.set_expression_attribute_values(self.some_values()).return_values(ReturnValue::AllNew);
        let update = update.return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        match update.send().await {
            Ok(changed) => Ok(Ok(changed.attributes.unwrap_or_default())),
            Err(error) => match error.as_service_error() {
                Some(UpdateItemError::ConditionalCheckFailedException(failed)) => {
                    Ok(Err(failed.item().cloned().unwrap_or_default()))
                }
                _ => Err(error.into()),
            },
        }
    }

    /// Returns the write as a part of a transaction.
    pub fn part(&self, table: &str) -> Result<TransactWriteItem, StoreError> {
        let part = TransactWriteItem::builder();
        if self.update.is_empty() {
            let check = ConditionCheck::builder().table_name(table).set_key(Some(self.key.clone()));
            let check = check.condition_expression(&self.condition);
            let check = check.set_expression_attribute_names(Some(self.names()?));
            let check = check.set_expression_attribute_values(self.some_values());
            return Ok(part.condition_check(check.build()?).build());
        }
        let update = Update::builder().table_name(table).set_key(Some(self.key.clone()));
        let update = update.update_expression(&self.update).set_condition_expression(self.some_condition());
        let update = update.set_expression_attribute_names(Some(self.names()?));
        Ok(part.update(update.set_expression_attribute_values(self.some_values()).build()?).build())
    }

    fn some_condition(&self) -> Option<String> {
        Some(self.condition.clone()).filter(|condition| !condition.is_empty())
    }

    fn some_values(&self) -> Option<HashMap<String, AttributeValue>> {
        Some(self.values.clone()).filter(|values| !values.is_empty())
    }

    /// Returns the attributes of all placeholders.
    fn names(&self) -> Result<HashMap<String, String>, StoreError> {
        let mut names = self.names.clone();
        for text in [&self.update, &self.condition] {
            for rest in text.split('#').skip(1) {
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
                let placeholder = format!("#{}", &rest[..end]);
                let attribute = self.attributes.iter().find(|attribute| **attribute == &rest[..end]);
                match (names.entry(placeholder), attribute) {
                    (Entry::Occupied(_), _) => {}
                    (Entry::Vacant(free), Some(attribute)) => drop(free.insert((*attribute).to_owned())),
                    (Entry::Vacant(free), None) => {
                        return Err(StoreError::Defect(format!("no attribute for {}", free.key())));
                    }
                }
            }
        }
        Ok(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{n, s};

    fn change() -> Change {
        Change::of(Row::from([("pk".to_owned(), s("a"))]), &["status", "epoch"])
    }

    #[test]
    fn placeholders_stand_for_attributes_of_the_table_and_for_given_names() {
        let change = change().update("SET #e.#epoch = :next").when("#status = :on").when("attribute_exists(#e)");
        let change = change.name("#e", "endpoint_1").value(":next", n(2)).value(":on", s("on"));
        let part = change.part("table").unwrap();
        let update = part.update().unwrap();
        assert_eq!(update.condition_expression(), Some("(#status = :on) AND (attribute_exists(#e))"));
        let names = update.expression_attribute_names().unwrap();
        let names: std::collections::BTreeMap<&str, &str> =
            names.iter().map(|(name, attribute)| (name.as_str(), attribute.as_str())).collect();
        assert_eq!(names, [("#e", "endpoint_1"), ("#epoch", "epoch"), ("#status", "status")].into());
    }

    #[test]
    fn a_write_without_an_update_is_a_check() {
        assert!(
            change().when("#status = :on").value(":on", s("on")).part("table").unwrap().condition_check().is_some()
        );
    }

    #[test]
    fn a_placeholder_that_is_no_attribute_is_a_defect() {
        let defect = change().update("SET #statsu = :on").value(":on", s("on")).part("table").unwrap_err();
        assert_eq!(defect.to_string(), "cannot put the request together: no attribute for #statsu");
    }
}
