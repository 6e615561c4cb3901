//! `barrage words`: the lists of words of an app and of its rooms.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, ensure};
use clap::{Args, Subcommand};
use proto::id::RoomId;
use reqwest::Method;
use serde_json::{Value, json};

use super::{Api, Call, Signed, Target};
use crate::cli;

#[derive(Args, Debug)]
pub(crate) struct Words {
    #[command(subcommand)]
    command: WordsCommand,
}

#[derive(Debug, Subcommand)]
enum WordsCommand {
    /// Print a list, a line a word: the word, a tab, what is done about it
    Get(Whose),
    /// Replace a list by a file of such lines; lines without a tab are refused words
    ///
    /// What is done: allow (no hit of another word counts in it), mask, shadow, review, refuse.
    Put(Put),
}

#[derive(Args, Debug)]
struct Whose {
    #[command(flatten)]
    target: Target,
    /// A room's own list; without it the app's, for all its rooms
    #[arg(long)]
    room: Option<RoomId>,
}

#[derive(Args, Debug)]
struct Put {
    #[command(flatten)]
    whose: Whose,
    #[command(flatten)]
    signed: Signed,
    /// The list
    file: PathBuf,
    /// Only if the list has this version; 0: there is none
    #[arg(long, value_name = "N")]
    version: Option<u64>,
}

pub(crate) async fn run(args: Words) -> anyhow::Result<ExitCode> {
    match args.command {
        WordsCommand::Get(whose) => {
            let call = Call::new(Method::GET, &path(&whose)).run(&whose.target).await?;
            for word in call["words"].as_array().into_iter().flatten() {
                let part = |name: &str| word[name].as_str().unwrap_or_default();
                cli::line(&format!("{}\t{}", part("text"), part("action")));
            }
        }
        WordsCommand::Put(Put { whose, signed, file, version }) => {
            ensure!(
                whose.room.is_some() || signed.by.is_none(),
                "nobody but the business server changes an app's list"
            );
            let text = std::fs::read_to_string(&file)
                .with_context(|| format!("cannot read {}", file.display()))?;
            let path = path(&whose);
            let call = Call::new(Method::PUT, &path).version(version).body(list(&text));
            let call = if whose.room.is_some() { call.signed(&signed) } else { call };
            cli::line(&call.run(&whose.target).await?.to_string());
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl Call<'_> {
    async fn run(self, target: &Target) -> anyhow::Result<Value> {
        Api::find(target)?.call(self).await
    }
}

fn path(whose: &Whose) -> Vec<&str> {
    match &whose.room {
        Some(room) => vec!["rooms", room.as_str(), "words"],
        None => vec!["words"],
    }
}

fn list(text: &str) -> Value {
    let lines = text.lines().filter(|it| !it.trim().is_empty());
    let word = |line: &str| {
        let (text, action) = line.split_once('\t').unwrap_or((line, "refuse"));
        json!({ "text": text, "action": action.trim() })
    };
    json!({ "words": lines.map(word).collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_word_and_what_is_done_about_it() {
        let read = list("bad\nvery bad\tmask\n\n  \nmeh\tshadow \n");

        let word = |text, action| json!({ "text": text, "action": action });
        let words = [word("bad", "refuse"), word("very bad", "mask"), word("meh", "shadow")];
        assert_eq!(read, json!({ "words": words }));
    }
}
