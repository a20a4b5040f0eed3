//! The audit line of a command that changes a key, an endpoint, a delivery or a dead letter. It goes to standard error,
//! in the form in which the account function logs it.

use admin::ErrorCode;
use admin::audit::{Change, DONE, IN_DOUBT, Subject};
use common::ids::UserId;
use common::resources::Table;
use webhooks::store::WebhookStore;

use crate::failure::CommandFailure;
use crate::session::Session;

/// The environment variables that may name the operating system's user.
const USER_VARIABLES: [&str; 3] = ["USER", "LOGNAME", "USERNAME"];

/// A change that a command asks for.
pub(crate) struct Asked {
    /// The name in the line, such as `keys.create`.
    pub(crate) command: &'static str,
    /// Whose it is, if the command says so.
    pub(crate) user_id: Option<UserId>,
    pub(crate) subject: Subject,
}

/// The line of a command, while the command runs. A command that changes nothing has none.
pub(crate) struct Audit(Option<Line>);

struct Line {
    actor: Option<String>,
    asked: Asked,
    /// Whether no answer told that the change was made.
    is_in_doubt: bool,
}

impl Asked {
    /// A change of something that exists.
    pub(crate) fn about(command: &'static str, subject: impl Into<Subject>) -> Self {
        Self { command, user_id: None, subject: subject.into() }
    }

    /// A change that makes something new for a user.
    pub(crate) fn of_user(command: &'static str, user_id: UserId) -> Self {
        Self { command, user_id: Some(user_id), subject: Subject::default() }
    }
}

impl Audit {
    /// Finds out who asks, and about whose key, endpoint or delivery. What cannot be found out is left out of the line.
    pub(crate) async fn begin(session: &Session, asked: Option<Asked>) -> Self {
        let Some(asked) = asked else { return Self(None) };
        let (actor, user_id) = tokio::join!(actor(session), owner(session, &asked));
        Self(Some(Line { actor, asked: Asked { user_id, ..asked }, is_in_doubt: false }))
    }

    /// Adds what the command has made.
    pub(crate) fn made(&mut self, subject: impl Into<Subject>) {
        if let Self(Some(line)) = self {
            line.asked.subject = subject.into();
        }
    }

    /// Notes that no answer told whether the change was made.
    pub(crate) fn doubt(&mut self) {
        if let Self(Some(line)) = self {
            line.is_in_doubt = true;
        }
    }

    /// Writes the line now, because the change is made, whatever becomes of the rest of the command.
    pub(crate) fn done(&mut self) {
        self.end(&Ok(()));
        self.0 = None;
    }

    /// Writes the line, unless the command was refused. Then standard error has the refusal alone, which scripts read. A
    /// failure without a code came after the change, for example because its result could not be printed.
    pub(crate) fn end(&self, outcome: &Result<(), CommandFailure>) {
        let Self(Some(Line { actor, asked, is_in_doubt })) = self else { return };
        let Asked { command, user_id, subject } = asked;
        let code = outcome.as_ref().err().and_then(CommandFailure::code);
        if code.is_some_and(ErrorCode::is_refusal) {
            return;
        }
        let change = Change { actor: actor.as_deref(), user_id: *user_id, command, subject: *subject };
        let done = if *is_in_doubt { IN_DOUBT } else { DONE };
        change.log(code.map_or(done, |code| code.as_str()));
    }
}

/// Writes a line for each change that a command has made by itself.
pub(crate) async fn tell(
    session: &Session,
    command: &'static str,
    changes: impl IntoIterator<Item = (Option<UserId>, Subject)>,
) {
    let changes: Vec<_> = changes.into_iter().collect();
    if changes.is_empty() {
        return;
    }
    let teller = Teller::begin(session, command).await;
    for (user_id, subject) in changes {
        teller.tell(user_id, subject, DONE);
    }
}

/// Writes the lines of a command that makes many changes, each as soon as it is made.
pub(crate) struct Teller {
    actor: Option<String>,
    command: &'static str,
}

impl Teller {
    pub(crate) async fn begin(session: &Session, command: &'static str) -> Self {
        Self { actor: actor(session).await, command }
    }

    /// Writes the line of one change, which is done or in doubt.
    pub(crate) fn tell(&self, user_id: Option<UserId>, subject: Subject, outcome: &str) {
        let Self { actor, command } = self;
        Change { actor: actor.as_deref(), user_id, command, subject }.log(outcome);
    }
}

/// Returns the operator's identity in AWS, or else the operating system's user.
async fn actor(session: &Session) -> Option<String> {
    let named = |name: &str| std::env::var(name).ok().filter(|user| !user.is_empty());
    session.caller().await.or_else(|| USER_VARIABLES.into_iter().find_map(named))
}

async fn owner(session: &Session, asked: &Asked) -> Option<UserId> {
    let Asked { user_id, subject, .. } = asked;
    let store = || WebhookStore::new(session.dynamodb.clone(), session.resources.table(Table::Webhooks));
    match *subject {
        Subject { key_id: Some(id), .. } => session.keys().get(id).await.ok().map(|key| key.user_id),
        Subject { endpoint_id: Some(id), .. } => store().owner_of(id).await.ok().flatten(),
        Subject { delivery_id: Some(id), .. } => {
            store().delivery(id).await.ok().flatten().map(|found| found.account_id)
        }
        _ => *user_id,
    }
}
