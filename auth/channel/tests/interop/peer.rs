//! Other people's programs: where they are, and one of them running.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

/// Longer than anything here takes; a test that meets it has failed.
const DEADLINE: Duration = Duration::from_secs(30);

/// What `s_server` says of a key update, whenever its buffer is written: in the middle of data.
const REMARK: &str = "SSL_do_handshake -> 1\n";

/// A file below the folder of `ops/tools/install`.
pub(crate) fn tool(path: &str) -> PathBuf {
    let folder = std::env::var_os("BARRAGE_TOOLS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools"),
        PathBuf::from,
    );
    let file = folder.join(path);
    assert!(file.exists(), "{} is missing: run ops/tools/install", file.display());
    file
}

/// The machine's own OpenSSL, version 3.
pub(crate) fn openssl3() -> PathBuf {
    PathBuf::from("openssl")
}

/// OpenSSL 4, which knows the national suites.
pub(crate) fn openssl4() -> PathBuf {
    tool("openssl4/bin/openssl")
}

/// Waits, but not for ever.
pub(crate) async fn in_time<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(DEADLINE, future).await.expect("in time")
}

/// Runs a program to its end; `input` is all it is told.
pub(crate) async fn run(mut command: Command, input: &[u8]) -> Output {
    let mut child = spawn(&mut command);
    let mut stdin = child.stdin.take().unwrap();
    let (told, output) = in_time(async {
        let tell = async {
            let told = stdin.write_all(input).await;
            drop(stdin);
            told
        };
        tokio::join!(tell, child.wait_with_output())
    })
    .await;
    // One that ends without reading says why by its own means.
    drop(told);
    output.unwrap()
}

fn spawn(command: &mut Command) -> Child {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap_or_else(|error| {
            panic!("{command:?} did not start: run ops/tools/install ({error})")
        })
}

/// A program in conversation; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Peer {
    _process: Child,
    input: ChildStdin,
    output: Heard<ChildStdout>,
    complaints: Heard<ChildStderr>,
}

/// What came from a pipe and was not taken yet.
#[derive(Debug)]
struct Heard<P> {
    pipe: P,
    text: Vec<u8>,
    is_over: bool,
}

impl Peer {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut process = spawn(&mut command);
        Self {
            input: process.stdin.take().unwrap(),
            output: Heard::new(process.stdout.take().unwrap()),
            complaints: Heard::new(process.stderr.take().unwrap()),
            _process: process,
        }
    }

    /// Types into its standard input.
    pub(crate) async fn tell(&mut self, text: &str) {
        in_time(self.input.write_all(text.as_bytes())).await.unwrap();
    }

    /// Waits for `text` on its standard output, and takes all up to its end.
    pub(crate) async fn says(&mut self, text: &str) {
        while !self.output.take(text) {
            self.listen(text).await;
        }
    }

    /// The rest of the line that has `before` in it, on its standard output.
    pub(crate) async fn line_after(&mut self, before: &str) -> String {
        self.says(before).await;
        while !self.output.text.contains(&b'\n') {
            self.listen("the end of a line").await;
        }
        let line = self.output.text.split(|it| *it == b'\n').next().unwrap();
        String::from_utf8_lossy(line).trim().to_owned()
    }

    /// Waits for `text` on its standard error, and takes all up to its end.
    pub(crate) async fn notes(&mut self, text: &str) {
        while !self.complaints.take(text) {
            self.listen(text).await;
        }
    }

    async fn listen(&mut self, missing: &str) {
        let (output, complaints) = (&mut self.output, &mut self.complaints);
        let heard = tokio::time::timeout(DEADLINE, async {
            tokio::select! {
                () = output.listen(), if !output.is_over => true,
                () = complaints.listen(), if !complaints.is_over => true,
                else => false,
            }
        })
        .await;
        if !heard.unwrap_or(false) {
            let (output, complaints) = (end_of(&output.text), end_of(&complaints.text));
            panic!("it did not say {}, but: {output}\n{complaints}", end_of(missing.as_bytes()));
        }
    }
}

/// As much as a person reads.
fn end_of(text: &[u8]) -> String {
    String::from_utf8_lossy(&text[text.len().saturating_sub(1000)..]).into_owned()
}

impl<P: AsyncRead + Unpin> Heard<P> {
    const fn new(pipe: P) -> Self {
        Self { pipe, text: Vec::new(), is_over: false }
    }

    /// Takes in what comes next.
    async fn listen(&mut self) {
        let heard = self.pipe.read_buf(&mut self.text).await.unwrap();
        self.is_over = heard == 0;
    }

    /// Takes all up to the end of `text`, if it has come.
    fn take(&mut self, text: &str) -> bool {
        while let Some(remark) = self.find(REMARK) {
            self.text.drain(remark);
        }
        let Some(found) = self.find(text) else {
            return false;
        };
        self.text.drain(..found.end);
        true
    }

    fn find(&self, text: &str) -> Option<Range<usize>> {
        let start = self.text.windows(text.len()).position(|it| it == text.as_bytes())?;
        Some(start..start + text.len())
    }
}
