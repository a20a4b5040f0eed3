//! Where the calls of a DynamoDB client go.
//!
//! The SDK keeps one answer of its rules, and the names of tables are a part of the question. A client that reads one
//! table while it writes another, as for each request, therefore had every endpoint worked out anew.

use std::sync::OnceLock;

use aws_sdk_dynamodb::config::endpoint::{DefaultResolver, Endpoint, EndpointFuture, Params, ResolveEndpoint};

/// The SDK's own rules, asked once for all tables that are given by name. Only a table's ARN can change the answer,
/// because it names an account.
#[derive(Debug, Default)]
pub(super) struct EndpointCache {
    rules: DefaultResolver,
    first: OnceLock<(Params, Endpoint)>,
}

impl ResolveEndpoint for EndpointCache {
    fn resolve_endpoint<'a>(&'a self, params: &'a Params) -> EndpointFuture<'a> {
        if names_arn(params) {
            return ResolveEndpoint::resolve_endpoint(&self.rules, params);
        }
        if let Some((known, endpoint)) = self.first.get()
            && differ_in_tables_only(known, params)
        {
            return EndpointFuture::ready(Ok(endpoint.clone()));
        }
        EndpointFuture::new(async move {
            let endpoint = ResolveEndpoint::resolve_endpoint(&self.rules, params).await?;
            // The first one stays. A client that was made from this one's configuration may go elsewhere.
            let _ = self.first.set((params.clone(), endpoint.clone()));
            Ok(endpoint)
        })
    }
}

fn names_arn(params: &Params) -> bool {
    let tables = params.resource_arn_list().unwrap_or_default().iter().map(String::as_str);
    tables.chain(params.resource_arn()).any(|table| table.starts_with("arn:"))
}

/// Compares everything else that the rules may ask for. A parameter that is missing here would be ignored.
fn differ_in_tables_only(known: &Params, params: &Params) -> bool {
    known.region() == params.region()
        && known.use_dual_stack() == params.use_dual_stack()
        && known.use_fips() == params.use_fips()
        && known.endpoint() == params.endpoint()
        && known.account_id() == params.account_id()
        && known.account_id_endpoint_mode() == params.account_id_endpoint_mode()
        && known.is_search_operation() == params.is_search_operation()
}
