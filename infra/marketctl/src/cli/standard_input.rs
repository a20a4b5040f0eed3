//! The argument `-`, for what must not stand on a command line.

use std::ffi::OsStr;

use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::{Arg, Command, Error};

use crate::input::Source;

/// Takes `-`, which is standard input. Shells remember command lines, and other users see them. So everything else is
/// refused, and not repeated, because it may be a secret.
#[derive(Clone, Copy, Debug)]
pub(super) struct OnlyStandardInput;

impl TypedValueParser for OnlyStandardInput {
    type Value = Source;

    fn parse_ref(&self, command: &Command, _: Option<&Arg>, value: &OsStr) -> Result<Source, Error> {
        if value == "-" {
            return Ok(Source::Stdin);
        }
        let refusal =
            "give the text on standard input and `-` as the only argument; a key on a command line is not secret\n";
        Err(Error::raw(ErrorKind::ValueValidation, refusal).with_cmd(command))
    }
}

#[cfg(test)]
mod tests {
    use crate::cli::{Arguments, Command, KeyCommand};
    use clap::Parser;

    #[test]
    fn a_key_on_the_command_line_is_refused_and_not_repeated() {
        let parsed = |line: &str| Arguments::try_parse_from(line.split_whitespace());
        let accepted = parsed("marketctl keys identify - --json").unwrap().command;
        assert!(matches!(accepted, Command::Keys(KeyCommand::Identify { .. })));
        for line in ["identify sk_secret", "identify - sk_secret", "identify sk_secret --json", "identify -- sk_secret"]
        {
            let refused = parsed(&format!("marketctl keys {line}")).unwrap_err();
            assert_eq!(refused.exit_code(), 2, "{line}");
            assert!(!refused.to_string().contains("sk_"), "{refused}");
        }
        assert_eq!(parsed("marketctl keys identify").unwrap_err().exit_code(), 2);
    }
}
