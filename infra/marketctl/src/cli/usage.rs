//! Parses the command line and tells what is wrong with it. Also writes what is generated from its definition: the
//! scripts for shells, and the manual pages.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{Command, CommandFactory, Parser};
use clap_complete::Shell;
use terminal::Output;

use super::Arguments;
use crate::failure::CommandFailure;

/// What is no longer there: the command, its option or subcommand, and what to use in its place.
const DROPPED: [(&str, &str, &str); 3] = [
    ("update", "--follow-tier", "Use `--limit tier`."),
    ("enable", "--resend-held", "Then run `marketctl webhooks resend --endpoint ID --status held`."),
    ("webhooks", "repair", "Run `marketctl repair --table webhooks`."),
];
/// How keys and secrets begin.
const SECRET_PREFIXES: [&str; 2] = ["sk_", "whsec_"];

/// Parses the arguments of the process. If it has to end now, returns its exit code.
pub(crate) fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Arguments, ExitCode> {
    let arguments: Vec<_> = arguments.collect();
    let error = match Arguments::try_parse_from(&arguments) {
        Ok(parsed) => return Ok(parsed),
        Err(error) => error,
    };
    if !error.use_stderr() {
        // If standard output is closed, nobody wants the help.
        let _ = error.print();
        return Err(ExitCode::SUCCESS);
    }
    let text = without_secrets(&error.to_string());
    let output = Output::from_json_flag(arguments.iter().any(|argument| argument == "--json"));
    let dropped = dropped(&error, &arguments);
    if output == Output::Text && dropped.is_none() && text == error.to_string() {
        let _ = error.print();
        return Err(ExitCode::from(CommandFailure::WRONG_USAGE));
    }
    let (message, hint) = text.split_once("\n\n").unwrap_or((&text, "Try --help."));
    let message = message.trim_start_matches("error: ").trim_end();
    let failure = CommandFailure::usage(message, dropped.map_or_else(|| hint.trim().to_owned(), str::to_owned));
    Err(failure.print(output))
}

/// Returns what to use in place of something that is no longer there, if that is what is wrong.
fn dropped(error: &clap::Error, arguments: &[OsString]) -> Option<&'static str> {
    let named = [ContextKind::InvalidArg, ContextKind::InvalidSubcommand].into_iter().find_map(|kind| {
        let ContextValue::String(named) = error.get(kind)? else { return None };
        Some(named.as_str())
    })?;
    let is_meant = |(command, dropped, _): &&(&str, &str, &str)| {
        named == *dropped && arguments.iter().any(|argument| argument == command)
    };
    DROPPED.iter().find(is_meant).map(|(.., replacement)| *replacement)
}

/// Cuts keys and secrets out of a text that quotes the command line. Shells remember it, but no log should have it too.
fn without_secrets(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some((at, prefix)) = SECRET_PREFIXES.iter().filter_map(|prefix| Some((rest.find(prefix)?, *prefix))).min()
    {
        let (before, secret) = rest.split_at(at + prefix.len());
        let end = secret.find(|c: char| !c.is_ascii_alphanumeric() && !"+/=-_".contains(c)).unwrap_or(secret.len());
        shown.push_str(before);
        shown.push_str(if end > 0 { "…" } else { "" });
        rest = &secret[end..];
    }
    shown + rest
}

/// Prints the script by which a shell completes command lines.
pub(crate) fn complete(shell: Shell) {
    clap_complete::generate(shell, &mut definition(), "marketctl", &mut io::stdout());
}

/// Writes a manual page of each command into a directory.
pub(crate) fn write_manual(directory: &Path) -> Result<(), CommandFailure> {
    let pages = Arguments::command().disable_help_subcommand(true);
    let written = std::fs::create_dir_all(directory).and_then(|()| clap_mangen::generate_to(pages, directory));
    written.map_err(|error| {
        let message = format!("the manual cannot be written to {}: {error}", directory.display());
        CommandFailure::new(message, "Name a directory that you may write to.")
    })
}

fn definition() -> Command {
    let mut definition = Arguments::command();
    definition.build();
    definition
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A wrong value of each kind.
    const WRONG: [&str; 12] = [
        "",
        "x",
        "é",
        "-1",
        "0",
        "1.5",
        "1h",
        "99999999999999999999",
        "2026-13-01T00:00:00Z",
        "6f9619ff-8b86",
        "a,b",
        "{}",
    ];
    /// Words that only those know who have read the program.
    const WORDS_OF_RUST: [&str; 9] =
        ["invalid digit", "non-zero", "zero for", "..=", "cannot parse", "too large", "u32", "usize", "Error"];

    /// Returns the words of all commands that have no subcommands, with their definitions.
    fn leaves(command: &Command, words: &[String]) -> Vec<(Vec<String>, Command)> {
        let words = [words, &[command.get_name().to_owned()]].concat();
        let below: Vec<_> = command.get_subcommands().filter(|below| below.get_name() != "help").collect();
        if below.is_empty() {
            return vec![(words, command.clone())];
        }
        below.into_iter().flat_map(|below| leaves(below, &words)).collect()
    }

    #[test]
    fn no_refusal_of_a_value_speaks_rust() {
        let mut refused = 0;
        for (words, command) in leaves(&definition(), &[]) {
            for argument in command.get_arguments().filter(|argument| argument.get_action().takes_values()) {
                for wrong in WRONG {
                    let option = argument.get_long().map(|long| format!("--{long}={wrong}"));
                    let line = [&words[..], &[option.unwrap_or_else(|| wrong.to_owned())]].concat();
                    let Err(error) = Arguments::try_parse_from(&line) else { continue };
                    let text = error.to_string();
                    let spoken: Vec<_> = WORDS_OF_RUST.iter().filter(|word| text.contains(**word)).collect();
                    assert!(spoken.is_empty() && !text.is_empty(), "{line:?}: {text}");
                    refused += 1;
                }
            }
        }
        assert!(refused > 500, "{refused}");
    }

    #[test]
    fn a_key_or_secret_on_the_command_line_is_not_repeated() {
        let text = "invalid value 'sk_abc1' for '<KEY_ID>', whsec_aB+/=. sk_";
        assert_eq!(without_secrets(text), "invalid value 'sk_…' for '<KEY_ID>', whsec_…. sk_");
        assert_eq!(without_secrets("nothing"), "nothing");
    }
}
