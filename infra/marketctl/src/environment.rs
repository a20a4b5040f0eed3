//! Looks at what every command needs before its first call: the profile, the region, the endpoint, the credentials, and
//! whether there is such a stack. What is wrong is told at once, beside what was looked at.

use std::error::Error;
use std::time::Duration;

use aws_config::meta::region::ProvideRegion;
use aws_config::profile::{self, ProfileFileCredentialsProvider, ProfileFileRegionProvider};
use aws_config::provider_config::ProviderConfig;
use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_runtime::env_config::file::EnvConfigFiles;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::{Builder, Credentials, ProvideCredentials};
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
use aws_types::os_shim_internal::{Env, Fs};
use common::aws::Patience;
use common::resources::{PARTITION_KEY, Resources, SORT_KEY, Table};
use common::store::{causes, explain, s};
use serde_json::json;

use crate::cli::Target;
use crate::failure::{CommandFailure, shortened};

/// How long the first call may take.
const FIRST_CALL: Duration = Duration::from_secs(2);
const PROFILE_VARIABLE: &str = "AWS_PROFILE";
const ENDPOINT_VARIABLE: &str = "AWS_ENDPOINT_URL";
/// The codes with which AWS refuses credentials, whatever the call.
const REFUSED_CREDENTIALS: [&str; 5] = [
    "UnrecognizedClientException",
    "InvalidSignatureException",
    "ExpiredTokenException",
    "InvalidClientTokenId",
    "IncompleteSignatureException",
];

/// What a command finds around it.
struct Found<'a> {
    target: &'a Target,
    profile: Option<String>,
    region: Option<String>,
    endpoint: Option<String>,
}

/// Returns the configuration of AWS, after a look at all that is in it. If `needs_stack`, there must be such a stack.
pub(crate) async fn load(target: &Target, needs_stack: bool) -> Result<SdkConfig, CommandFailure> {
    let profile = target.profile.clone().or_else(|| std::env::var(PROFILE_VARIABLE).ok());
    let mut found = Found { target, profile, region: None, endpoint: None };
    found.check_profile().await?;
    let config = configuration(target).await;
    found.region = config.region().map(ToString::to_string).filter(|region| !region.is_empty());
    found.endpoint = std::env::var(ENDPOINT_VARIABLE).ok().or_else(|| config.endpoint_url().map(str::to_owned));
    found.check_values()?;
    let no_credentials = |why: String| {
        let hint = "Log in (`aws sso login`), name a profile with --profile, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.";
        found.failure(format!("no AWS credentials were found: {why}"), hint)
    };
    let provider = config.credentials_provider().ok_or_else(|| no_credentials("nothing names any".to_owned()))?;
    let credentials = provider.provide_credentials().await;
    let credentials = credentials.map_err(|error| no_credentials(shortened(&causes(&error))))?;
    found.check_stack(&config, credentials, needs_stack).await?;
    Ok(config)
}

async fn configuration(target: &Target) -> SdkConfig {
    let patience = Patience::Bulk;
    let https = aws_smithy_http_client::Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https();
    let mut loader = aws_config::defaults(BehaviorVersion::latest())
        .http_client(https.clone())
        .timeout_config(patience.timeouts())
        .retry_config(patience.retries());
    if let Some(region) = &target.region {
        loader = loader.region(Region::new(region.clone()));
    }
    if let Some(profile) = &target.profile {
        // Credentials in the environment would go first.
        let region = ProfileFileRegionProvider::builder().profile_name(profile).build().region().await;
        let region = target.region.clone().map(Region::new).or(region);
        let calls = ProviderConfig::without_region().with_http_client(https).with_region(region);
        let credentials = ProfileFileCredentialsProvider::builder().configure(&calls).profile_name(profile).build();
        loader = loader.profile_name(profile).credentials_provider(credentials);
    }
    loader.load().await
}

/// Returns the last of the causes of an error. Those before it quote the whole request.
fn innermost(mut error: &dyn Error) -> String {
    while let Some(cause) = error.source() {
        error = cause;
    }
    error.to_string()
}

impl Found<'_> {
    /// Refuses a profile that the files do not have. The SDK would go on without it.
    async fn check_profile(&self) -> Result<(), CommandFailure> {
        let Some(wanted) = &self.profile else { return Ok(()) };
        let files = EnvConfigFiles::default();
        let profiles = profile::load(&Fs::real(), &Env::real(), &files, None).await.map_err(|error| {
            let message = format!("the profiles cannot be read: {}", shortened(&causes(&error)));
            self.failure(message, "Correct the files ~/.aws/config and ~/.aws/credentials.")
        })?;
        if profiles.get_profile(wanted).is_some() {
            return Ok(());
        }
        let hint = "`aws configure list-profiles` lists them. Name one with --profile or AWS_PROFILE.";
        Err(self.failure(format!("there is no AWS profile `{wanted}`"), hint))
    }

    fn check_values(&self) -> Result<(), CommandFailure> {
        if self.region.is_none() {
            let hint = "Name the stack's region with --region or AWS_REGION, or a profile that has one with --profile.";
            return Err(self.failure("no AWS region is set", hint));
        }
        let has_scheme = |url: &String| url.starts_with("http://") || url.starts_with("https://");
        match self.endpoint.as_ref().filter(|url| !has_scheme(url)) {
            None => Ok(()),
            Some(url) => {
                let hint = "Begin it with http:// or https://, or unset AWS_ENDPOINT_URL to reach AWS.";
                Err(self.failure(format!("the endpoint `{url}` has no scheme"), hint))
            }
        }
    }

    /// Asks for a row that nobody has, of a table that every stack has.
    async fn check_stack(
        &self,
        config: &SdkConfig,
        credentials: Credentials,
        needs_stack: bool,
    ) -> Result<(), CommandFailure> {
        // One lost answer says nothing.
        let retries = RetryConfig::standard().with_max_attempts(2).with_initial_backoff(Duration::ZERO);
        let timeout =
            TimeoutConfig::builder().operation_attempt_timeout(FIRST_CALL).connect_timeout(FIRST_CALL).build();
        let config_of_check = Builder::from(config)
            .retry_config(retries)
            .timeout_config(timeout)
            .credentials_provider(credentials)
            .build();
        let asked = Client::from_conf(config_of_check)
            .get_item()
            .table_name(Resources::new(&self.target.stack).table(Table::Keys))
            .key(PARTITION_KEY, s("nobody"))
            .key(SORT_KEY, s("nobody"));
        let Err(error) = asked.send().await else { return Ok(()) };
        let place = self.endpoint.as_deref().unwrap_or("AWS");
        match &error {
            SdkError::ServiceError(refused) => match refused.err().code() {
                Some("ResourceNotFoundException") if needs_stack => {
                    let message = format!("there is no stack `{}` here", self.target.stack);
                    let hint = "Name the stack with --stack or MARKETCTL_STACK, and its region with --region. If it is damaged, `marketctl check` tells what is missing.";
                    Err(self.failure(message, hint))
                }
                Some(code) if REFUSED_CREDENTIALS.contains(&code) => {
                    let message = format!("AWS refuses the credentials: {}", shortened(&explain(&error)));
                    let hint = "Log in again (`aws sso login`), or name another profile with --profile. The clock of this machine must be right, too.";
                    Err(self.failure(message, hint))
                }
                // Permissions and load are told by the calls of the command itself.
                Some(_) => Ok(()),
                None => Err(self.not_aws(place)),
            },
            SdkError::ResponseError(_) => Err(self.not_aws(place)),
            SdkError::TimeoutError(_) => {
                let message = format!("{place} did not answer within {} s, twice", FIRST_CALL.as_secs());
                Err(self.failure(message, "Check the network and its proxy, and AWS_ENDPOINT_URL if it is set."))
            }
            error => {
                let message = format!("{place} cannot be reached: {}", shortened(&innermost(error)));
                let hint = "Check the network, and AWS_ENDPOINT_URL if it is set. A stack on your machine prints the `export` lines to paste when it starts.";
                Err(self.failure(message, hint))
            }
        }
    }

    fn not_aws(&self, place: &str) -> CommandFailure {
        let hint = "Is it the address of the API? A stack on your machine has another port for AWS, 4566 by default. It prints the `export` lines to paste when it starts.";
        self.failure(format!("{place} answers, but not as AWS does"), hint)
    }

    fn failure(&self, message: impl Into<String>, hint: &'static str) -> CommandFailure {
        let Self { target, profile, region, endpoint } = self;
        let or_none = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
        let values = [("endpoint", endpoint), ("region", region), ("profile", profile)];
        let details = values.map(|(name, value)| format!("{name:<9} {}", or_none(value)));
        let stack = format!("{:<9} {}", "stack", target.stack);
        let environment = json!({ "endpoint": endpoint, "region": region, "profile": profile, "stack": target.stack });
        CommandFailure::new(message, hint)
            .with_details(details.into_iter().chain([stack]))
            .with_member("environment", environment)
    }
}
