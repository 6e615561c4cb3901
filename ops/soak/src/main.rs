//! `soak`: long and noisy runs, each bounded in count and time, each with one JSON line.
//!
//! Every run also exists in a size of a few seconds, for the gate.

mod aside;
mod bases;
mod churn;
mod cli;
mod crowd;
mod flood;
mod flow;
mod fuzz;
mod hold;
mod latency;
mod model;
mod slow;
mod slowloris;
mod storm;
mod timing;
mod worlds;

use std::process::ExitCode;

use clap::Parser;
use drill::{Drill, Line, panics, progress};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mimalloc::MiMalloc;

use crate::cli::{Args, Run};

/// As the command: memory is compared here.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    let aside = std::env::args().nth(1).and_then(|it| be_aside(&it));
    match aside.unwrap_or_else(|| start(&Args::parse())) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            progress(&format!("soak: {error:#}"));
            ExitCode::from(2)
        }
    }
}

/// What another process of this executable starts it for; none if it was not that.
fn be_aside(name: &str) -> Option<anyhow::Result<bool>> {
    let run: BoxFuture<'static, _> = match name {
        stack::workers::NAME => stack::workers::run().boxed(),
        churn::NAME => churn::be_guests().boxed(),
        hold::NAME => hold::be_clients().boxed(),
        slowloris::NAME => slowloris::be_attackers().boxed(),
        _ => return None,
    };
    Some(finish(run).map(|()| true))
}

fn finish(run: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ended = runtime.block_on(run);
    runtime.shutdown_background();
    ended
}

/// Does all runs, whatever becomes of the first; says whether all is well.
fn start(args: &Args) -> anyhow::Result<bool> {
    kit::logs::init(false, &args.log)?;
    panics::watch();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut all_well = true;
    for &run in args.runs() {
        let seed = args.seed.map_or_else(kit::seed::fresh, Ok)?;
        progress(&format!("{}, {}, seed {seed}", run.name(), args.size().name()));
        let lines = runtime.block_on(Box::pin(perform(run, args, seed)));
        for line in lines {
            line.print();
            all_well &= line.is_ok();
        }
    }
    runtime.shutdown_background();
    Ok(all_well)
}

/// One line for each run; one for each drill.
async fn perform(run: Run, args: &Args, seed: u64) -> Vec<Line> {
    if run == Run::Drills {
        let mut lines = Vec::new();
        for &drill in Drill::ALL {
            progress(&format!("  {}", drill.name()));
            lines.push(Box::pin(drill::run(drill, seed)).await);
        }
        return lines;
    }
    let mut line = Line::new(run.name(), seed);
    let panics = panics::seen();
    let at_most = args.size().run_max();
    let ended = tokio::time::timeout(at_most, Box::pin(act(run, args, &mut line))).await;
    match ended {
        Ok(Ok(())) => {}
        Ok(Err(error)) => line.fail(format!("{error:#}")),
        Err(_) => line.fail(format!("it took longer than {} s", at_most.as_secs())),
    }
    let panics = panics::seen() - panics;
    line.check(panics == 0, || format!("{panics} panics"));
    vec![line]
}

async fn act(run: Run, args: &Args, line: &mut Line) -> anyhow::Result<()> {
    let size = args.size();
    match run {
        Run::Sim => worlds::run(size, line).await,
        Run::Model => model::run(size, line).await,
        Run::Crowd => crowd::run(size, line).await,
        Run::Churn => churn::run(size, line).await,
        Run::Storm => storm::run(size, line).await,
        Run::Slow => slow::run(size, line).await,
        Run::Slowloris => slowloris::run(size, line).await,
        Run::Hold => hold::run(size, args.wish(), line).await,
        Run::Bases => bases::run(size, line).await,
        Run::Flow => flow::run(size, line).await,
        Run::Flood => flood::run(size, line).await,
        Run::Latency => latency::run(size, line).await,
        Run::Fuzz => fuzz::run(size, args.keep.as_deref(), line).await,
        Run::Timing => timing::run(size, line).await,
        Run::All | Run::Drills => Ok(()),
    }
}
