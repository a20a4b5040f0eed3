//! Looks at what every command needs before its first call: the profile, the region, the endpoint, the credentials, and
//! whether there is such a stack. What is wrong is told at once, beside what was looked at.

use std::borrow::Cow;
use std::error::Error;
use std::time::Duration;

use aws_config::meta::region::ProvideRegion;
use aws_config::profile::{self, ProfileFileCredentialsProvider, ProfileFileRegionProvider};
use aws_config::provider_config::ProviderConfig;
use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::provider::error::CredentialsError;
use aws_runtime::env_config::file::EnvConfigFiles;
use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::config::{ProvideCredentials, SharedCredentialsProvider};
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
use aws_types::os_shim_internal::{Env, Fs};
use common::aws::Patience;
use common::resources::{PARTITION_KEY, Resources, SORT_KEY, Table};
use common::store::{causes, explain, s};
use serde_json::json;

use crate::cli::{Target, parse_region};
use crate::failure::{CommandFailure, shortened};

/// How long the first call may take.
const FIRST_CALL: Duration = Duration::from_secs(2);
const PROFILE_VARIABLE: &str = "AWS_PROFILE";
const ENDPOINT_VARIABLE: &str = "AWS_ENDPOINT_URL";
/// The code with which AWS says that there is no such table or function.
const NOT_FOUND: &str = "ResourceNotFoundException";
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

/// Returns the configuration of AWS, after a look at all that is in it, and the names of the stack's resources. If
/// `needs_stack`, there must be such a stack.
pub(crate) async fn load(target: &Target, needs_stack: bool) -> Result<(SdkConfig, Resources), CommandFailure> {
    let profile = target.profile.clone().or_else(|| std::env::var(PROFILE_VARIABLE).ok());
    let mut found = Found { target, profile, region: None, endpoint: None };
    found.check_profile().await?;
    let config = configuration(target).await;
    found.region = config.region().map(ToString::to_string).filter(|region| !region.is_empty());
    found.endpoint = std::env::var(ENDPOINT_VARIABLE).ok().or_else(|| config.endpoint_url().map(str::to_owned));
    found.check_values()?;
    let no_credentials = |why: &str| {
        let hint = "Log in (`aws sso login`), name a profile with --profile, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.";
        found.failure(format!("no AWS credentials were found: {why}"), hint)
    };
    let nowhere = "neither the environment, nor the profile, nor this machine has any";
    let provider = config.credentials_provider().ok_or_else(|| no_credentials(nowhere))?;
    let credentials = provider.provide_credentials().await.map_err(|error| match error {
        CredentialsError::CredentialsNotLoaded(_) => no_credentials(nowhere),
        error => no_credentials(&shortened(&causes(&error))),
    })?;
    // One lost answer says nothing.
    let retries = RetryConfig::standard().with_max_attempts(2).with_initial_backoff(Duration::ZERO);
    let timeouts = TimeoutConfig::builder().operation_attempt_timeout(FIRST_CALL).connect_timeout(FIRST_CALL).build();
    let of_first_calls = config
        .to_builder()
        .retry_config(retries)
        .timeout_config(timeouts)
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .build();
    let resources = found.find_tables(&of_first_calls).await?;
    if needs_stack {
        found.check_stack(&of_first_calls, &resources.table(Table::Keys)).await?;
    }
    Ok((config, resources))
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
        let hint = "Name the stack's region, such as eu-central-1, with --region or AWS_REGION, or a profile that has one with --profile.";
        match self.region.as_deref() {
            None => return Err(self.failure("no AWS region is set", hint)),
            Some(region) if parse_region(region).is_err() => {
                return Err(self.failure(format!("`{region}` is no region"), hint));
            }
            Some(_) => {}
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

    /// Asks the deployed service which tables it uses. After a restore they have other names, and nobody reads the old
    /// ones any more: a key that is revoked there would go on being accepted. Without a service, the names are the default
    /// ones.
    async fn find_tables(&self, config: &SdkConfig) -> Result<Resources, CommandFailure> {
        let resources = Resources::new(&self.target.stack);
        let hook = resources.hook();
        let asked = aws_sdk_lambda::Client::new(config).get_function_configuration().function_name(&hook);
        let variables = match asked.send().await {
            Ok(found) => found.environment.and_then(|environment| environment.variables).unwrap_or_default(),
            Err(error) if error.code() == Some(NOT_FOUND) => return Ok(resources),
            Err(error) => {
                return Err(self.refusal(&error).unwrap_or_else(|| {
                    let what = "the service does not tell which tables it uses";
                    let message = format!("nothing was done: {what}: {}", shortened(&explain(&error)));
                    self.failure(message, format!("Allow lambda:GetFunctionConfiguration on the function {hook}."))
                }));
            }
        };
        let name = |table: Table| {
            let name = variables.get(table.variable()).cloned();
            name.ok_or_else(|| {
                let message = format!("nothing was done: {hook} does not have the variable {}", table.variable());
                self.failure(message, "Deploy the service of this release.")
            })
        };
        let [keys, market, accounts, webhooks] = Table::ALL.map(name);
        Ok(resources.with_tables([keys?, market?, accounts?, webhooks?]))
    }

    /// Asks for a row that nobody has, of a table that every stack has.
    async fn check_stack(&self, config: &SdkConfig, keys: &str) -> Result<(), CommandFailure> {
        let client = aws_sdk_dynamodb::Client::new(config);
        let asked = client.get_item().table_name(keys).key(PARTITION_KEY, s("nobody")).key(SORT_KEY, s("nobody"));
        match asked.send().await {
            Err(error) if error.code() == Some(NOT_FOUND) => {
                let message = format!("there is no stack `{}` here", self.target.stack);
                let hint = "Name the stack with --stack or MARKETCTL_STACK, and its region with --region. If it is damaged, `marketctl check` tells what is missing.";
                Err(self.failure(message, hint))
            }
            // Permissions and load are told by the calls of the command itself.
            Err(error) => self.refusal(&error).map_or(Ok(()), Err),
            Ok(_) => Ok(()),
        }
    }

    /// Says why a first call failed, if every other call would fail as well.
    fn refusal<E>(&self, error: &SdkError<E, HttpResponse>) -> Option<CommandFailure>
    where
        E: ProvideErrorMetadata + Error + 'static,
    {
        let place = self.endpoint.as_deref().unwrap_or("AWS");
        Some(match error {
            SdkError::ServiceError(refused) => match refused.err().code() {
                Some(code) if REFUSED_CREDENTIALS.contains(&code) => {
                    let message = format!("AWS refuses the credentials: {}", shortened(&explain(error)));
                    let hint = "Log in again (`aws sso login`), or name another profile with --profile. The clock of this machine must be right, too.";
                    self.failure(message, hint)
                }
                Some(_) => return None,
                None => self.not_aws(place),
            },
            SdkError::ResponseError(_) => self.not_aws(place),
            SdkError::TimeoutError(_) => {
                let message = format!("{place} did not answer within {} s, twice", FIRST_CALL.as_secs());
                self.failure(message, "Check the network and its proxy, and AWS_ENDPOINT_URL if it is set.")
            }
            error => {
                let message = format!("{place} cannot be reached: {}", shortened(&innermost(error)));
                let hint = "Check the network, and AWS_ENDPOINT_URL if it is set. A stack on your machine prints the `export` lines to paste when it starts.";
                self.failure(message, hint)
            }
        })
    }

    fn not_aws(&self, place: &str) -> CommandFailure {
        let hint = "Is it the address of the API? A stack on your machine has another port for AWS, 4566 by default. It prints the `export` lines to paste when it starts.";
        self.failure(format!("{place} answers, but not as AWS does"), hint)
    }

    fn failure(&self, message: impl Into<String>, hint: impl Into<Cow<'static, str>>) -> CommandFailure {
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
