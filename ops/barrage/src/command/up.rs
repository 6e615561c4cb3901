//! `barrage up`: everything in one process, a demo room, a crowd, and an audit of what it got.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use kit::clock::Clock;
use kit::task::Tasks;
use proto::control::{RoomSettings, Segments};
use proto::id::RoomId;
use proto::time::Mono;
use serde_json::json;
use stack::crowd::{Crowd, Plan, Summary};
use stack::replay::Script;
use stack::{Business, Config, Stack, page};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::configuration;
use crate::cli::{self, Up};
use crate::run_file::RunFile;

/// The script that plays when no file is named.
const SAMPLE: &str = include_str!("../../../stack/samples/concert.json");
/// Part of `--for` that is kept for draining, at most half of it.
const DRAIN: Duration = Duration::from_secs(8);
/// Time for the last answers of the origin after the last viewer left.
const LINGER: Duration = Duration::from_millis(1500);
/// The demonstration's house speaks and viewers give this often.
const HOUSE: Duration = Duration::from_secs(11);

pub(crate) async fn run(args: Up) -> anyhow::Result<ExitCode> {
    let config = configure(&args)?;
    if let Some(code) = configuration::answer(&args.config, &config)? {
        return Ok(code);
    }
    kit::logs::init(config.log.json, &config.log.filter)?;
    let script = read_script(args.replay.as_deref())?;
    let log = args.input_log.as_deref().map(open_log).transpose()?;
    ensure!(args.speed > 0.0 && args.speed.is_finite(), "--speed must be more than 0");

    let mut signals = Tasks::default();
    let shutdown = kit::shutdown::on_signal(&mut signals)?;
    let clock = Clock::system();
    let deadline = args.seconds.map(|it| clock.mono() + Duration::from_secs(it));
    let seed = kit::seed::fresh()?;
    let listener = TcpListener::bind(config.page.listen).await?;
    let stack = Stack::bind(config.clone(), clock.clone(), seed).await?;
    RunFile::write(&config.data, &stack, &args.room)?;
    let page_url = format!("http://{}/", listener.local_addr()?);
    announce(&args, &stack, &page_url, &config.data)?;

    let visit = Visit::new(&args, &stack, clock, seed, deadline)?;
    let mut services = Tasks::default();
    let stop = CancellationToken::new();
    let place = page::Place { room: args.room.clone(), origin: stack.addrs().origin.clone() };
    let (meter, page_stop) = (stack.shared().meter.clone(), stop.clone());
    services.spawn("page", async move { page::serve(listener, place, &meter, page_stop).await });
    services.spawn("stack", Box::pin(stack.run(stop.clone())));

    let summary = tokio::select! {
        summary = Box::pin(visit.run(script, log, &shutdown)) => summary,
        Some(ended) = services.next() => Err(ended.err().unwrap_or_else(|| {
            anyhow::anyhow!("a service ended by itself")
        })),
    };
    stop.cancel();
    services.join().await?;
    report(args.json, summary?)
}

/// The file and the environment, then the command line.
fn configure(args: &Up) -> anyhow::Result<Config> {
    let mut config = Config::load(args.config.config.as_deref())?;
    if let Some(workers) = args.workers {
        config.link.workers = workers;
    }
    if args.config.config.is_none() && !args.config.print_config {
        config.use_free_ports();
    }
    if let Some(data) = &args.data {
        config.data.clone_from(data);
    }
    if let Some(seconds) = args.retention {
        config.broadcaster.retention_s = seconds;
    }
    Ok(config)
}

fn read_script(file: Option<&Path>) -> anyhow::Result<Script> {
    match file {
        Some(file) => Script::open(file).with_context(|| format!("cannot read {}", file.display())),
        None => Script::read(SAMPLE.as_bytes()).context("the sample is damaged"),
    }
}

fn open_log(file: &Path) -> anyhow::Result<Box<dyn Write + Send>> {
    let opened = File::create(file).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(Box::new(BufWriter::new(opened)))
}

fn announce(args: &Up, stack: &Stack, page: &str, data: &Path) -> anyhow::Result<()> {
    let addrs = stack.addrs();
    if args.json {
        let mut line = serde_json::to_value(addrs)?;
        line["page"] = json!(page);
        line["room"] = json!(args.room);
        line["data"] = json!(data);
        cli::line(&line.to_string());
        return Ok(());
    }
    let links = addrs.link.iter().map(|it| format!("{} {}", it.transport.name(), it.authority()));
    cli::line(&format!(
        "Barrage {} runs in this process, on loopback only.\n\n  \
         open     {page}\n\n  room     {}\n  enter    {}\n  link     {}\n  segments {}/dm/1/{}/head.json\n  \
         api      {}\n  metrics  {}/metrics\n  data     {}\n\nCtrl-C ends it.",
        env!("CARGO_PKG_VERSION"),
        args.room,
        addrs.enter,
        links.collect::<Vec<_>>().join(", "),
        addrs.origin,
        args.room,
        addrs.api,
        addrs.metrics,
        data.display(),
    ));
    Ok(())
}

/// The last line, and whether all is well.
fn report(json: bool, summary: Option<Summary>) -> anyhow::Result<ExitCode> {
    let Some(summary) = summary else {
        return Ok(ExitCode::SUCCESS);
    };
    let faults = summary.faults();
    let line = serde_json::to_string(&summary)?;
    if json {
        cli::line(&line);
    } else {
        cli::line(&format!("\n{}", serde_json::to_string_pretty(&summary)?));
    }
    for fault in &faults {
        cli::complain(fault);
    }
    Ok(if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What happens in the demo room while the services run.
struct Visit {
    business: Business,
    room: RoomId,
    is_endless: bool,
    is_sample: bool,
    speed: f64,
    deadline: Option<Mono>,
    clock: Clock,
    plan: Plan,
}

impl Visit {
    fn new(
        args: &Up,
        stack: &Stack,
        clock: Clock,
        seed: u64,
        deadline: Option<Mono>,
    ) -> anyhow::Result<Self> {
        let (addrs, identity, trust) = (stack.addrs(), stack.identity(), stack.trust());
        let http = sdk::http::client(&trust.tls)?;
        Ok(Self {
            business: Business::new(http, addrs.api.clone(), identity.api_key.clone()),
            room: args.room.clone(),
            is_endless: args.seconds.is_none() && args.replay.is_none(),
            is_sample: args.replay.is_none(),
            speed: args.speed,
            deadline,
            plan: Plan {
                viewers: args.crowd,
                room: args.room.clone(),
                enter_url: addrs.enter.clone(),
                app: identity.app(),
                tls: trust.tls.clone(),
                bus: Arc::clone(&stack.shared().bus),
                clock: clock.clone(),
                seed: kit::seed::derive(seed, "crowd"),
                faults: args.fault.clone(),
                log: None,
            },
            clock,
        })
    }

    async fn run(
        self,
        script: Script,
        log: Option<Box<dyn Write + Send>>,
        shutdown: &CancellationToken,
    ) -> anyhow::Result<Option<Summary>> {
        let settings = RoomSettings { segments: Segments::Always, ..RoomSettings::default() };
        self.business.create_room(&self.room, &settings).await?;
        if self.plan.viewers == 0 {
            self.wait(shutdown).await;
            return Ok(None);
        }
        let crowd = tokio::select! {
            crowd = Box::pin(Crowd::start(Plan { log, ..self.plan })) => crowd?,
            () = shutdown.cancelled() => return Ok(None),
            () = self.clock.sleep_until(self.deadline.unwrap_or_default()), if self.deadline.is_some() => {
                bail!("the viewers did not come in within --for")
            }
        };
        let player = Player {
            crowd: &crowd,
            script: &script,
            speed: self.speed,
            until: self.deadline.map(|it| last_comment(it, self.clock.mono())),
            clock: &self.clock,
        };
        if self.is_endless {
            tokio::select! {
                () = player.forever() => {}
                () = speak(&self.business, &self.room, &self.clock) => {}
                () = shutdown.cancelled() => {}
            }
            return Ok(None);
        }
        tokio::select! {
            () = player.play(self.is_sample) => {}
            () = shutdown.cancelled() => {}
        }
        let summary = crowd.end(script.damaged).await?;
        self.clock.sleep(LINGER).await;
        let is_good = summary.sent > 0 || script.comments.is_empty() || shutdown.is_cancelled();
        ensure!(is_good, "--for left no time to play anything");
        Ok(Some(summary))
    }

    async fn wait(&self, shutdown: &CancellationToken) {
        match self.deadline {
            Some(deadline) => tokio::select! {
                () = self.clock.sleep_until(deadline) => {}
                () = shutdown.cancelled() => {}
            },
            None => shutdown.cancelled().await,
        }
    }
}

/// When to stop playing so that everything is drained at the deadline.
fn last_comment(deadline: Mono, now: Mono) -> Mono {
    let left = deadline.since(now);
    deadline - DRAIN.min(left / 2)
}

struct Player<'a> {
    crowd: &'a Crowd,
    script: &'a Script,
    speed: f64,
    until: Option<Mono>,
    clock: &'a Clock,
}

impl Player<'_> {
    /// Plays the script; the sample again and again until the time is over.
    async fn play(&self, is_sample: bool) {
        loop {
            self.crowd.play(self.script, self.speed, self.until).await;
            let is_over = self.until.is_none_or(|it| self.clock.mono() >= it);
            if is_over || !is_sample || self.script.comments.is_empty() {
                return;
            }
        }
    }

    async fn forever(&self) {
        loop {
            self.crowd.play(self.script, self.speed, None).await;
            self.crowd.forget();
            self.clock.sleep(Duration::from_secs(2)).await;
        }
    }
}

/// The house says something and somebody gives something, now and then.
async fn speak(business: &Business, room: &RoomId, clock: &Clock) {
    const NOTICES: [&str; 3] = [
        "Welcome! This room runs on your own machine.",
        "Every comment here goes through a real link, a real chatserver and a real broadcaster.",
        "Ctrl-C in the terminal ends the show.",
    ];
    let start = clock.wall();
    for turn in 0_usize.. {
        clock.sleep(HOUSE).await;
        let key = format!("demo-{start}-{turn}");
        let said = if turn.is_multiple_of(2) {
            let gift = stack::Gift {
                viewer: "crowd-0",
                gift_no: 1 + u32::from(turn.is_multiple_of(4)),
                count: 1,
                lane: if turn.is_multiple_of(4) { "high" } else { "low" },
            };
            business.gift(room, &key, gift).await
        } else {
            business.notice(room, &key, NOTICES[turn / 2 % NOTICES.len()]).await
        };
        if let Err(error) = said {
            tracing::warn!(%error, "the house could not speak");
        }
    }
}
