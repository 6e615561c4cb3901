//! The end of a process: asked for by Ctrl-C or SIGTERM, then a drain with a deadline.

use std::io;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::task::Tasks;

/// Exit status after a second signal, as a shell reports a process ended by SIGINT.
const STATUS_INTERRUPTED: i32 = 130;

/// Tasks that did not end before the deadline and were aborted.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{tasks} tasks did not end within {deadline:?}")]
pub struct Undrained {
    /// How many.
    pub tasks: usize,
    /// The time they had.
    pub deadline: Duration,
}

/// Listens for Ctrl-C and SIGTERM from now on: the first one cancels the token that is returned,
/// the second ends the process at once.
///
/// The listener is a task of `tasks` and never ends by itself: give it a set of its own, which is
/// dropped last.
///
/// # Errors
/// When the signals cannot be registered.
pub fn on_signal(tasks: &mut Tasks) -> io::Result<CancellationToken> {
    let interrupt = signal(SignalKind::interrupt())?;
    let terminate = signal(SignalKind::terminate())?;
    let token = CancellationToken::new();
    let at_once = || std::process::exit(STATUS_INTERRUPTED);
    tasks.spawn("signals", listen(interrupt, terminate, token.clone(), at_once));
    Ok(token)
}

/// The same for a process that has a supervisor, which ends it when it takes too long: signals after
/// the first say nothing new, because a service manager may tell both, and SIGHUP is not for it.
///
/// # Errors
/// When the signals cannot be registered.
pub fn on_first_signal(tasks: &mut Tasks) -> io::Result<CancellationToken> {
    let interrupt = signal(SignalKind::interrupt())?;
    let terminate = signal(SignalKind::terminate())?;
    // Once it was listened to, it never again ends the process.
    drop(signal(SignalKind::hangup())?);
    let token = CancellationToken::new();
    tasks.spawn("signals", listen(interrupt, terminate, token.clone(), || {}));
    Ok(token)
}

async fn listen(
    mut interrupt: Signal,
    mut terminate: Signal,
    token: CancellationToken,
    again: impl Fn() + Send,
) -> anyhow::Result<()> {
    loop {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        if token.is_cancelled() {
            again();
        } else {
            tracing::info!("shutting down");
            token.cancel();
        }
    }
}

/// Waits until every task has ended, at most for `deadline`; then aborts the rest.
///
/// # Errors
/// [`Undrained`] when some were aborted, or the first task's failure.
pub async fn drain(mut tasks: Tasks, deadline: Duration) -> anyhow::Result<()> {
    let ended = tokio::time::timeout(deadline, async {
        let mut first = Ok(());
        while let Some(ended) = tasks.next().await {
            first = first.and(ended);
        }
        first
    });
    match ended.await {
        Ok(first) => first,
        Err(_) => Err(Undrained { tasks: tasks.len(), deadline }.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::Arc;

    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn the_first_signal_asks_and_the_second_ends() {
        let mut tasks = Tasks::default();
        let ended = Arc::new(Notify::new());
        let at_once = {
            let ended = Arc::clone(&ended);
            move || ended.notify_one()
        };
        let token = CancellationToken::new();
        let interrupt = signal(SignalKind::interrupt()).unwrap();
        let terminate = signal(SignalKind::terminate()).unwrap();
        tasks.spawn("signals", listen(interrupt, terminate, token.clone(), at_once));

        send("-TERM");
        token.cancelled().await;
        send("-INT");

        ended.notified().await;
    }

    #[tokio::test]
    async fn a_supervised_process_is_ended_by_no_signal() {
        let mut tasks = Tasks::default();
        let token = on_first_signal(&mut tasks).unwrap();

        send("-HUP");
        send("-TERM");
        token.cancelled().await;
        send("-TERM");
        send("-INT");

        // Signals are heard in turn: the one that is sent last is heard after those.
        let mut last = signal(SignalKind::user_defined1()).unwrap();
        send("-USR1");
        last.recv().await;
    }

    #[tokio::test]
    async fn a_drain_waits_for_the_last_task() {
        let mut tasks = Tasks::default();
        tasks.spawn("quick", async { Ok(()) });
        tasks.spawn("slow", async {
            tokio::task::yield_now().await;
            Ok(())
        });

        let drained = drain(tasks, Duration::from_secs(10)).await;

        assert!(drained.is_ok());
    }

    #[tokio::test]
    async fn a_drain_does_not_wait_for_ever() {
        let mut tasks = Tasks::default();
        tasks.spawn("endless", std::future::pending());

        let drained = drain(tasks, Duration::from_millis(1)).await;

        let undrained = Undrained { tasks: 1, deadline: Duration::from_millis(1) };
        assert_eq!(drained.unwrap_err().downcast::<Undrained>().unwrap(), undrained);
    }

    fn send(signal: &str) {
        let pid = std::process::id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }
}
