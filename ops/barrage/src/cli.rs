//! The command line.

use std::io::{ErrorKind, Write};
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use proto::id::RoomId;
use stack::crowd::Fault;

use crate::command::archive::Archive;
use crate::command::business::backup::Backup;
use crate::command::business::people::{Ban, Mute, Person};
use crate::command::business::room::Room;
use crate::command::business::words::Words;
use crate::command::dict::Dict;
use crate::command::export::Export;
use crate::command::keys::Keys;
use crate::command::plan::Plan;
use crate::command::simulate::Gslb;
use crate::command::token::Token;

/// Bullet comments and chat rooms for live events with very many viewers.
#[derive(Debug, Parser)]
#[command(name = "barrage", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the whole system in this process, with a demo room and a page to open
    Up(Up),
    /// Run the auth role: epochs, keys
    Auth(Role),
    /// Run the gslb role: addresses and tokens for arriving viewers; play arrivals over its planner, look addresses up
    Gslb(Gslb),
    /// Run the link role: the long connections
    Link(Role),
    /// Run the chatserver role: rooms, admission, the business API
    Chatserver(Role),
    /// Run the broadcaster role: lanes, slots, segments, the origin
    Broadcaster(Role),
    /// Watch a room in the terminal
    Watch(Watch),
    /// Say something in a room
    Say(Say),
    /// Play a file of recorded comments into a running room
    Replay(Replay),
    /// List, make, change and close rooms; notices, roles, who did what
    Room(Room),
    /// Mute viewers of a room, end mutes, list them
    Mute(Mute),
    /// Keep accounts, devices and addresses out of a room, let them in again, list them
    Ban(Ban),
    /// End a viewer's sessions in a room
    Kick(Person),
    /// Print or replace lists of words
    Words(Words),
    /// Copy a stopped system's room store
    Backup(Backup),
    /// List a room's recordings, make their minute files
    Archive(Archive),
    /// Write what was shown in a room: JSON, XML, subtitles
    Export(Export),
    /// Make a dictionary of slots, so that they take fewer bytes for native clients
    Dict(Dict),
    /// What an event would take: requests, traffic, nodes, money
    Plan(Plan),
    /// Show, rotate and revoke keys, set policies, make certificates
    Keys(Keys),
    /// Mint a token, or explain why one is refused
    Token(Token),
    /// Measure; prints one JSON object a line with --json
    Bench(Bench),
    /// Print the version
    Version,
    /// A worker of `up`, which starts it
    #[command(name = stack::workers::NAME, hide = true)]
    LinkWorker,
}

/// Where the configuration comes from, and what to do with it.
#[derive(Args, Debug)]
pub(crate) struct Config {
    /// TOML file; `BARRAGE_SECTION__FIELD` in the environment wins over it
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print the whole configuration as it would be used, and end
    #[arg(long)]
    pub(crate) print_config: bool,
    /// Check the configuration, and end
    #[arg(long)]
    pub(crate) check: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Up {
    #[command(flatten)]
    pub(crate) config: Config,
    /// Folder for rooms, segments and keys; used again by the next run
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// The demo room
    #[arg(long, value_name = "ROOM", default_value = "demo")]
    pub(crate) room: RoomId,
    /// Viewers to start: half read pushes, half poll segments
    #[arg(long, value_name = "N", default_value_t = 24)]
    pub(crate) crowd: usize,
    /// Comments for the crowd: Bilibili XML or {text,time,color} JSON; without it a sample, again and again
    #[arg(long, value_name = "FILE")]
    pub(crate) replay: Option<PathBuf>,
    /// Play so many times faster than recorded
    #[arg(long, value_name = "X", default_value_t = 1.0)]
    pub(crate) speed: f64,
    /// End by itself after so many seconds, draining included, with a summary
    #[arg(long = "for", value_name = "SECONDS")]
    pub(crate) seconds: Option<u64>,
    /// Print JSON: first a line with every address, last a line with the summary
    #[arg(long)]
    pub(crate) json: bool,
    /// Worker processes for the long connections, at most 16; without any, this process has them
    #[arg(long, value_name = "N")]
    pub(crate) workers: Option<u8>,
    /// Seconds that segments are kept
    #[arg(long, value_name = "SECONDS")]
    pub(crate) retention: Option<u32>,
    /// Write a JSON line for each comment of the crowd once its fate is known
    #[arg(long, value_name = "FILE")]
    pub(crate) input_log: Option<PathBuf>,
    /// Spoil what the crowd is handed, to prove the audit: lose=1/1000, repeat=1/1000, swap=1/1000
    #[arg(long, value_name = "KIND=1/N")]
    pub(crate) fault: Vec<Fault>,
}

#[derive(Args, Debug)]
pub(crate) struct Role {
    #[command(flatten)]
    pub(crate) config: Config,
}

/// Which running system to talk to.
#[derive(Args, Debug)]
pub(crate) struct Target {
    /// Data folder of a running `barrage up`
    #[arg(long, value_name = "DIR", default_value = stack::DATA)]
    pub(crate) data: PathBuf,
    /// Which room; the demo room of that system by default
    #[arg(long)]
    pub(crate) room: Option<RoomId>,
}

#[derive(Args, Debug)]
pub(crate) struct Watch {
    #[command(flatten)]
    pub(crate) target: Target,
    /// How items should come
    #[arg(long, value_enum, default_value_t = Path::Auto)]
    pub(crate) path: Path,
    /// One JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
    /// End after so many seconds
    #[arg(long = "for", value_name = "SECONDS")]
    pub(crate) seconds: Option<u64>,
}

/// How a room's items reach a viewer.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Path {
    /// As the room's heat says
    Auto,
    /// Over the long connection
    Push,
    /// From segments
    Segments,
}

#[derive(Args, Debug)]
pub(crate) struct Say {
    #[command(flatten)]
    pub(crate) target: Target,
    /// The text
    pub(crate) text: String,
    /// Account to say it as
    #[arg(long, default_value = "terminal")]
    pub(crate) account: proto::id::ViewerId,
}

#[derive(Args, Debug)]
pub(crate) struct Replay {
    #[command(flatten)]
    pub(crate) target: Target,
    /// Bilibili XML or {text,time,color} JSON
    pub(crate) file: PathBuf,
    /// Play so many times faster than recorded
    #[arg(long, value_name = "X", default_value_t = 1.0)]
    pub(crate) speed: f64,
    /// Viewers that the comments are dealt to
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) viewers: usize,
}

#[derive(Args, Debug)]
pub(crate) struct Bench {
    /// token, segment, wire, gslb, place, broadcaster, handshake, link, storm, all, or the beginning
    /// of a line, such as link.idle_bytes.tls
    pub(crate) name: String,
    /// One JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Writes a line for the person or program that called. When nobody reads any more, as behind
/// `| head -1`, there is nothing left to do, and the process ends.
pub(crate) fn line(text: &str) {
    let Err(error) = writeln!(std::io::stdout(), "{text}") else { return };
    if error.kind() == ErrorKind::BrokenPipe {
        std::process::exit(0);
    }
    complain(&format!("cannot write: {error}"));
    std::process::exit(2);
}

/// Writes a line about something that is wrong, if anybody reads it.
pub(crate) fn complain(text: &str) {
    writeln!(std::io::stderr(), "barrage: {text}").ok();
}
