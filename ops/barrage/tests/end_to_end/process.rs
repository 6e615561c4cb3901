//! The binary as a process: started, watched until it ends, or killed.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use kit::clock::Clock;
use proto::address::{Address, Transport};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

/// Longest wait for anything one waits for: machines that test are busy.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(120);
/// Between two looks at something.
const LOOK: Duration = Duration::from_millis(20);

/// `barrage up` with `--json`.
pub(crate) struct Up {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    addrs: Value,
    complaints: PathBuf,
}

/// What a process came to.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    /// The last line.
    pub(crate) summary: Value,
    /// What it says is wrong, log lines left out.
    pub(crate) complaints: Vec<String>,
}

impl Up {
    /// Starts it with its files in `data`, and waits for its addresses.
    pub(crate) async fn start(data: &Path, args: &[&str]) -> Self {
        Self::start_with(barrage(["up"]).args(args), data).await
    }

    /// As [`start`](Self::start), with the whole command.
    pub(crate) async fn start_with(command: &mut Command, data: &Path) -> Self {
        let complaints = data.join("complaints.txt");
        let mut child = command
            .args(["--json", "--data"])
            .arg(data)
            .stdout(Stdio::piped())
            .stderr(File::create(&complaints).unwrap())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut up = Self { child, lines, addrs: Value::Null, complaints };
        up.addrs = up.line().await.expect("a first line");
        up
    }

    /// `enter`, `origin`, `api` or `metrics`.
    pub(crate) fn url(&self, name: &str) -> &str {
        self.addrs[name].as_str().unwrap()
    }

    /// The link's address for this transport.
    pub(crate) fn link(&self, transport: Transport) -> Address {
        self.links().into_iter().find(|it| it.transport == transport).unwrap()
    }

    /// Where viewers connect.
    pub(crate) fn links(&self) -> Vec<Address> {
        serde_json::from_value(self.addrs["link"].clone()).unwrap()
    }

    /// Its number among processes.
    pub(crate) fn pid(&self) -> String {
        self.child.id().unwrap().to_string()
    }

    /// Ends it well, and gives everything it said and complained about, log lines too.
    pub(crate) async fn transcript(mut self) -> String {
        let pid = self.child.id().unwrap().to_string();
        assert!(run(Command::new("kill").arg(pid)).await.status.success());
        let mut written = self.addrs.to_string();
        while let Some(line) = self.line().await {
            written.push_str(&line.to_string());
        }
        let status = timeout(WAIT_MAX, self.child.wait()).await.unwrap().unwrap();
        assert!(status.success(), "{status}");
        written + &fs::read_to_string(&self.complaints).unwrap()
    }

    /// Waits until it ends by itself.
    pub(crate) async fn end(mut self) -> Ended {
        let mut summary = Value::Null;
        while let Some(line) = self.line().await {
            summary = line;
        }
        let status = timeout(WAIT_MAX, self.child.wait()).await.unwrap().unwrap();
        let written = fs::read_to_string(&self.complaints).unwrap();
        let complaints = written.lines().filter_map(|it| it.strip_prefix("barrage: "));
        let complaints = complaints.map(str::to_owned).collect();
        Ended { code: status.code(), summary, complaints }
    }

    /// `kill -9`.
    pub(crate) async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }

    async fn line(&mut self) -> Option<Value> {
        let line = timeout(WAIT_MAX, self.lines.next_line()).await.expect("a line in time");
        line.unwrap().map(|it| serde_json::from_str(&it).unwrap())
    }
}

/// The binary with nobody's variables; it ends when the test does.
pub(crate) fn barrage(args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_barrage"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("BARRAGE_") {
            command.env_remove(name);
        }
    }
    command.args(args).stdin(Stdio::null()).kill_on_drop(true);
    command
}

/// Runs a command to its end.
pub(crate) async fn run(command: &mut Command) -> Output {
    let output = command.kill_on_drop(true).output();
    timeout(WAIT_MAX, output).await.expect("an end in time").unwrap()
}

/// The text of an output's stdout.
pub(crate) fn said(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap().trim_end()
}

/// The text of an output's stderr.
pub(crate) fn complained(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap().trim_end()
}

/// A committed recording.
pub(crate) fn sample(name: &str) -> String {
    workspace(&format!("ops/stack/samples/{name}")).to_str().unwrap().to_owned()
}

/// A path below the workspace's root.
pub(crate) fn workspace(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// Looks again and again until there is something to see.
pub(crate) async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let clock = Clock::system();
    let deadline = clock.mono() + WAIT_MAX;
    loop {
        if let Some(seen) = look().await {
            return seen;
        }
        assert!(clock.mono() < deadline, "{what} did not come");
        clock.sleep(LOOK).await;
    }
}
