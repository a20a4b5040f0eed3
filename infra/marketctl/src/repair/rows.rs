//! What a repair found of keys and of webhook endpoints. It names each of them, because somebody has to tell its owner.

use admin::keys::KeyProblem;
use platform::rows::Unreadable;
use repair::{EndpointsReport, KeysReport};
use serde::Serialize;
use types::ids::{EndpointId, KeyId, UserId};
use webhooks::store::EndpointProblem;

#[derive(Debug, Serialize)]
pub(super) struct Keys {
    pub(super) keys: u64,
    found: Vec<FoundKey>,
}

#[derive(Debug, Serialize)]
struct FoundKey {
    problem: KeyProblem,
    key_id: KeyId,
    /// Its owner, if that is known.
    user_id: Option<UserId>,
}

#[derive(Debug, Serialize)]
pub(super) struct Endpoints {
    pub(super) endpoints: u64,
    found: Vec<FoundEndpoint>,
}

#[derive(Debug, Serialize)]
struct FoundEndpoint {
    problem: EndpointProblem,
    endpoint_id: EndpointId,
    user_id: UserId,
}

/// A row that was left as it is.
#[derive(Debug, Serialize)]
pub(super) struct UnreadableRow {
    pub(super) row: String,
    pub(super) what: String,
}

impl Keys {
    pub(super) fn new(report: &KeysReport) -> Self {
        let found = report.found.iter();
        let found = found.map(|(&(problem, key_id), &user_id)| FoundKey { problem, key_id, user_id });
        Self { keys: report.keys, found: found.collect() }
    }

    /// Returns a row for each problem, with how many keys have it.
    pub(super) fn rows(&self) -> impl Iterator<Item = [String; 3]> {
        KeyProblem::ALL.into_iter().map(move |problem| {
            let what = match problem {
                KeyProblem::RotationCut => "replaced, and still active",
                KeyProblem::SuccessorLost => "replaced, and the one that replaced it is gone",
                KeyProblem::NotFindable => "accepted, but not found by id or user",
                KeyProblem::Lost => "gone, but found by id or user",
                KeyProblem::RevokedSince => "revoked or replaced since, and still active",
            };
            let count = self.found.iter().filter(|found| found.problem == problem).count();
            ["keys".to_owned(), what.to_owned(), count.to_string()]
        })
    }

    /// Returns a line for each key with a problem.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> {
        self.found.iter().map(|FoundKey { problem, key_id, user_id }| match user_id {
            Some(user_id) => format!("{problem}: key {key_id} of user {user_id}"),
            None => format!("{problem}: key {key_id}"),
        })
    }
}

impl Endpoints {
    pub(super) fn new(report: &EndpointsReport) -> Self {
        let found = report.found.iter().map(|found| FoundEndpoint {
            problem: found.problem,
            endpoint_id: found.endpoint_id,
            user_id: found.account_id,
        });
        Self { endpoints: report.endpoints, found: found.collect() }
    }

    /// Returns a row for each problem, with how many endpoints have it.
    pub(super) fn rows(&self) -> impl Iterator<Item = [String; 3]> {
        EndpointProblem::ALL.into_iter().map(move |problem| {
            let what = match problem {
                EndpointProblem::RemovalCut => "removed and still there",
                EndpointProblem::SwitchOffCut => "switched off and still on",
                EndpointProblem::NoticeMissing => "switched off without a notice",
                EndpointProblem::NotFindable => "not found by id",
                EndpointProblem::Lost => "gone, but not noted as removed",
            };
            let count = self.found.iter().filter(|found| found.problem == problem).count();
            ["endpoints".to_owned(), what.to_owned(), count.to_string()]
        })
    }

    /// Returns a line for each endpoint with a problem.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> {
        let line = |found: &FoundEndpoint| {
            format!("{}: endpoint {} of user {}", found.problem, found.endpoint_id, found.user_id)
        };
        self.found.iter().map(line)
    }
}

/// Returns the rows that were left as they are.
pub(super) fn unreadable(keys: KeysReport, endpoints: EndpointsReport) -> Vec<UnreadableRow> {
    let rows = keys.unreadable.into_iter().chain(endpoints.unreadable);
    rows.map(|Unreadable { row, what }| UnreadableRow { row, what }).collect()
}
