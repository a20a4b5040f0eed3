//! `marketctl dead-letters`: lists, shows, sends back and deletes the messages that ended in a dead-letter queue.
//!
//! A letter is deleted only once its message was sent. If the command ends in between, the message is sent again the next
//! time, which is harmless: messages of the feed carry versions or the ids of events, and a message for a delivery is void
//! once the delivery has moved on. Letters that the command held then are hidden until their time is over.

mod letter;
mod queue;
mod show;

use std::collections::BTreeSet;
use std::io::{IsTerminal, Read};
use std::time::Duration;

use admin::audit::{DONE, IN_DOUBT};
use common::ids::MessageId;
use common::resources::Queue;
use feed::MAX_MESSAGE_BYTES;
use futures_util::future::{join_all, try_join_all};
use futures_util::{StreamExt, stream};
use serde::Serialize;
use terminal::Output;

use crate::audit::Teller;
use crate::cli::{DeadLetterCommand, LetterQueue, ListLetters, ResendLetters, WhichLetters};
use crate::confirm::Confirmation;
use crate::failure::CommandFailure;
use crate::input::Source;
use crate::session::{CHECK_HINT, Session};
use letter::{Letter, destination};
use queue::{DeadQueue, MAX_CALLS_IN_FLIGHT, Taken, Unchanged};
use show::{Listing, ShownLetter};

/// How long letters are hidden from others while they are looked at. Looking takes a few seconds.
const LOOK: Duration = Duration::from_mins(1);
/// How long they are hidden while they are sent back or deleted. Ten thousand take about a minute.
const ACT: Duration = Duration::from_mins(5);

const MISSING_HINT: &str = "`marketctl dead-letters list` shows the ids. A letter that somebody else looks at is hidden \
    for a few minutes: then try again.";
const MEND_HINT: &str = "Mend each message: `marketctl dead-letters show ID --body >message.json`, correct it, \
    `marketctl dead-letters resend ID --file message.json`. Or delete it, and correct the system that sends it.";

pub(crate) async fn run(
    command: DeadLetterCommand,
    session: &Session,
    output: Output,
    confirmation: Confirmation,
) -> Result<(), CommandFailure> {
    match command {
        DeadLetterCommand::List(options) => list(&options, session, output).await,
        DeadLetterCommand::Show { id, queue, body } => show(id, queue, body, session, output).await,
        DeadLetterCommand::Resend(options) => resend(options, session, output).await,
        DeadLetterCommand::Delete(which) => {
            let what = match (which.queue, which.ids.as_slice()) {
                (_, [id]) => format!("the dead letter {id}"),
                (Some(queue), []) => format!("all dead letters of the queue {} that fit the filter", queue.as_str()),
                (_, ids) => format!("{} dead letters", ids.len()),
            };
            confirmation.require(&format!("This deletes {what}, and nothing else has what is in them."))?;
            delete(&which, session, output).await
        }
    }
}

async fn list(options: &ListLetters, session: &Session, output: Output) -> Result<(), CommandFailure> {
    let taken = take(session, options.queue, &BTreeSet::new(), LOOK).await?;
    for (queue, taken) in &taken {
        queue.give_back(&taken.letters).await;
    }
    let listing = Listing::new(taken.into_iter().map(|(_, taken)| taken), &options.filter, options.limit as usize);
    Ok(output.print(&listing, Listing::text)?)
}

async fn show(
    id: MessageId,
    queue: Option<LetterQueue>,
    only_body: bool,
    session: &Session,
    output: Output,
) -> Result<(), CommandFailure> {
    let taken = take(session, queue, &[id].into(), LOOK).await?;
    let mut hidden = 0;
    let mut found = None;
    for (queue, taken) in taken {
        queue.give_back(&taken.letters).await;
        hidden += taken.hidden;
        found = found.or_else(|| taken.letters.into_iter().find(|letter| letter.message_id == id));
    }
    let Some(letter) = found else {
        let hidden = if hidden > 0 { format!("; about {hidden} letters are hidden now") } else { String::new() };
        return Err(CommandFailure::new(format!("there is no dead letter {id}{hidden}"), MISSING_HINT));
    };
    let is_raw = only_body && !std::io::stdout().is_terminal();
    let text = |shown: &ShownLetter<'_>| match (only_body, is_raw) {
        (false, _) => shown.text(),
        (true, true) => shown.body.to_owned(),
        (true, false) => terminal::printable(shown.body),
    };
    Ok(output.print(&ShownLetter { letter: &letter, body: &letter.body }, text)?)
}

async fn resend(options: ResendLetters, session: &Session, output: Output) -> Result<(), CommandFailure> {
    let ResendLetters { which, file } = options;
    if file.is_some() && which.ids.len() > 1 {
        return Err(CommandFailure::invalid("file", "replaces one message", "Nothing was sent. Give one id."));
    }
    let now = session.clock.now();
    let mended = file.map(|source| mended(&source)).transpose()?;
    if let Some(Err(reason)) = mended.as_ref().map(|body| destination(LetterQueue::Feed, body, now)) {
        let hint = "Nothing was sent. Correct the message, and try again.";
        return Err(CommandFailure::new(format!("the message of --file would be refused: {reason}"), hint));
    }
    let outlets = outlets(session, which.queue).await?;
    let teller = Teller::begin(session, "dead_letters.resend").await;
    let resend = async |queue: &DeadQueue, letter: &Letter| {
        if mended.is_some() && queue.queue != LetterQueue::Feed {
            return Ended::Stuck("only a message of the feed can be replaced".to_owned());
        }
        let body = mended.as_ref().unwrap_or(&letter.body);
        let to = match destination(queue.queue, body, now) {
            Ok(to) => outlets.iter().find(|(outlet, _)| *outlet == to).map_or("", |(_, url)| url),
            Err(reason) => return Ended::Refused(reason),
        };
        if let Err(unsent) = queue.send(to, body).await {
            return unsent.told(&teller, letter, "it was not sent");
        }
        teller.tell(letter.account_id, letter.subject(), DONE);
        match queue.delete(letter).await {
            Ok(()) => Ended::Resent,
            Err(left) => Ended::Kept(format!("it was sent, but not deleted here: {}", left.reason)),
        }
    };
    let report = act(session, &which, resend).await?;
    output.print(&report, Report::resent_text)?;
    report.result()
}

async fn delete(which: &WhichLetters, session: &Session, output: Output) -> Result<(), CommandFailure> {
    let teller = Teller::begin(session, "dead_letters.delete").await;
    let delete = async |queue: &DeadQueue, letter: &Letter| match queue.delete(letter).await {
        Ok(()) => {
            teller.tell(letter.account_id, letter.subject(), DONE);
            Ended::Deleted
        }
        Err(left) => left.told(&teller, letter, "it was not deleted"),
    };
    let report = act(session, which, delete).await?;
    output.print(&report, Report::deleted_text)?;
    report.result()
}

/// Reads the message that is to be sent in place of a dead one.
fn mended(source: &Source) -> Result<String, CommandFailure> {
    let (mut text, mut stream) = (String::new(), source.open()?.stream.take(2 * MAX_MESSAGE_BYTES as u64));
    stream.read_to_string(&mut text).map_err(|cause| {
        CommandFailure::new(format!("--file cannot be read: {cause}"), "Give one JSON object in UTF-8.")
    })?;
    Ok(text.trim().to_owned())
}

/// Returns the queues to which letters of a dead-letter queue, or of both, are sent back, with their URLs.
async fn outlets(session: &Session, of: Option<LetterQueue>) -> Result<Vec<(Queue, String)>, CommandFailure> {
    let is_asked = |queue: &Queue| {
        let dead = queue.dead_letters();
        of.map_or(dead.is_some(), |of| dead == Some(of.queue()))
    };
    let urls = Queue::ALL.into_iter().filter(is_asked).map(async |queue| {
        let url = session.queue_url(queue).await;
        url.map(|url| (queue, url))
            .map_err(|reason| CommandFailure::new(format!("nothing was done: {reason}"), CHECK_HINT))
    });
    try_join_all(urls).await
}

/// Takes the letters of a queue or of both. If one of them cannot be read, those of the other are given back.
async fn take(
    session: &Session,
    queue: Option<LetterQueue>,
    wanted: &BTreeSet<MessageId>,
    hold: Duration,
) -> Result<Vec<(DeadQueue, Taken)>, CommandFailure> {
    let queues = queue.map_or(vec![LetterQueue::Feed, LetterQueue::Webhooks], |queue| vec![queue]);
    let taken = queues.into_iter().map(async |queue| {
        let queue = DeadQueue::open(session, queue).await?;
        let taken = queue.take(wanted, hold).await?;
        Ok((queue, taken))
    });
    let (mut all, mut failed) = (Vec::new(), None);
    for taken in join_all(taken).await {
        match taken {
            Ok(taken) => all.push(taken),
            Err(failure) => failed = Some(failure),
        }
    }
    let Some(failure) = failed else { return Ok(all) };
    for (queue, taken) in &all {
        queue.give_back(&taken.letters).await;
    }
    Err(failure)
}

/// How it ended with a letter that was to be sent back or deleted.
enum Ended {
    Resent,
    Deleted,
    /// Its message would only be refused again.
    Refused(String),
    /// Its message was sent, and the letter is still there.
    Kept(String),
    /// Nothing was done, or nobody knows.
    Stuck(String),
}

impl Unchanged {
    /// Writes the audit line of a change that may have been made.
    fn told(self, teller: &Teller, letter: &Letter, what: &str) -> Ended {
        let Self { reason, is_in_doubt } = self;
        if is_in_doubt {
            teller.tell(letter.account_id, letter.subject(), IN_DOUBT);
            return Ended::Stuck(format!("perhaps {what}: {reason}"));
        }
        Ended::Stuck(format!("{what}: {reason}"))
    }
}

/// Takes the letters that a command names, does something to each, and gives back what is left.
async fn act(
    session: &Session,
    which: &WhichLetters,
    act: impl AsyncFn(&DeadQueue, &Letter) -> Ended,
) -> Result<Report, CommandFailure> {
    let mut missing: BTreeSet<MessageId> = which.ids.iter().copied().collect();
    let mut report = Report::default();
    for (queue, taken) in take(session, which.queue, &missing.clone(), ACT).await? {
        report.more += taken.more;
        let is_meant = |letter: &Letter| {
            if which.all { letter.fits(&which.filter) } else { which.ids.contains(&letter.message_id) }
        };
        let (meant, mut left): (Vec<Letter>, Vec<Letter>) = taken.letters.into_iter().partition(is_meant);
        let ended = stream::iter(&meant).map(|letter| act(&queue, letter)).buffered(MAX_CALLS_IN_FLIGHT);
        for (letter, ended) in meant.iter().zip(ended.collect::<Vec<_>>().await) {
            missing.remove(&letter.message_id);
            if report.count(letter, ended) {
                left.push(letter.clone());
            }
        }
        queue.give_back(&left).await;
    }
    report.left.extend(missing.into_iter().map(|message_id| LeftLetter {
        message_id,
        queue: None,
        about: None,
        reason: "there is no such dead letter, or somebody else is looking at it".to_owned(),
    }));
    Ok(report)
}

/// What became of the letters that a command named.
#[derive(Debug, Default, Serialize)]
struct Report {
    /// How many messages were sent.
    resent: usize,
    /// How many letters were deleted.
    deleted: usize,
    left: Vec<LeftLetter>,
    /// About how many letters of the queue were not looked at because there are too many.
    more: u64,
    /// Whether some messages would only be refused again.
    #[serde(skip)]
    has_refused: bool,
}

/// A letter that is still there.
#[derive(Debug, Serialize)]
struct LeftLetter {
    message_id: MessageId,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<LetterQueue>,
    /// What its message is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    about: Option<String>,
    reason: String,
}

impl Report {
    /// Counts a letter. Returns whether it is still there.
    fn count(&mut self, letter: &Letter, ended: Ended) -> bool {
        let reason = match ended {
            Ended::Resent | Ended::Deleted => {
                self.resent += usize::from(matches!(ended, Ended::Resent));
                self.deleted += 1;
                return false;
            }
            Ended::Refused(reason) => {
                self.has_refused = true;
                format!("it would be refused again: {reason}")
            }
            Ended::Kept(reason) => {
                self.resent += 1;
                reason
            }
            Ended::Stuck(reason) => reason,
        };
        let Letter { message_id, queue, .. } = *letter;
        self.left.push(LeftLetter { message_id, queue: Some(queue), about: Some(letter.about()), reason });
        true
    }

    fn resent_text(&self) -> String {
        let again = if self.resent > 0 {
            "\nA message that is refused again comes back as another dead letter. To see it:\n\n    \
             marketctl dead-letters list"
        } else {
            ""
        };
        format!("Sent back: {}. Deleted here: {}.{}{again}", self.resent, self.deleted, self.rest())
    }

    fn deleted_text(&self) -> String {
        format!("Deleted: {}.{}", self.deleted, self.rest())
    }

    fn rest(&self) -> String {
        if self.more > 0 { format!(" About {} more are there: run it again.", self.more) } else { String::new() }
    }

    /// Returns an error if a letter was left.
    fn result(self) -> Result<(), CommandFailure> {
        if self.left.is_empty() {
            return Ok(());
        }
        let details = self.left.iter().map(|LeftLetter { message_id, about, reason, .. }| match about {
            Some(about) => format!("{message_id} ({about}): {reason}"),
            None => format!("{message_id}: {reason}"),
        });
        let hint = if self.has_refused { MEND_HINT } else { MISSING_HINT };
        let failure = CommandFailure::new(format!("dead letters that were left: {}", self.left.len()), hint);
        Err(failure.with_details(details).with_member("left", &self.left))
    }
}
