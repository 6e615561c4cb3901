//! Named tasks with an owner: they end when their owner does.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use tokio::task::{JoinError, JoinSet};
use tracing::Instrument;

/// A set of tasks. Dropping it aborts them.
///
/// An owner that lives long reaps: with [`Tasks::next`] in its loop, or with [`Tasks::reap`]
/// whenever it starts another. [`Tasks::len`] is what it compares with its own bound.
#[derive(Debug, Default)]
pub struct Tasks {
    set: JoinSet<anyhow::Result<()>>,
}

impl Tasks {
    /// Starts a task; `name` is in its log lines and in the error when it fails or panics.
    pub fn spawn<F>(&mut self, name: &'static str, future: F)
    where
        F: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        let span = tracing::info_span!("task", name);
        let named = async move {
            match AssertUnwindSafe(future).catch_unwind().await {
                Ok(Ok(())) => Ok(()),
                Ok(Err(error)) => Err(error.context(format!("task {name} failed"))),
                Err(panic) => Err(anyhow::anyhow!("task {name} panicked: {}", said(&*panic))),
            }
        };
        self.set.spawn(named.instrument(span));
    }

    /// How many are running or not yet reaped.
    #[must_use]
    pub fn len(&self) -> usize {
        self.set.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.set.is_empty()
    }

    /// Waits for the next task to end. `None` when there is none.
    ///
    /// Cancelling it loses nothing.
    pub async fn next(&mut self) -> Option<anyhow::Result<()>> {
        self.set.join_next().await.map(outcome)
    }

    /// Forgets tasks that have ended, without waiting.
    ///
    /// # Errors
    /// The first failure it meets; call it again for the rest.
    pub fn reap(&mut self) -> anyhow::Result<()> {
        while let Some(ended) = self.set.try_join_next() {
            outcome(ended)?;
        }
        Ok(())
    }

    /// Waits for all; the first failure is returned at once, and the rest is aborted on drop.
    ///
    /// # Errors
    /// That first failure.
    pub async fn join(mut self) -> anyhow::Result<()> {
        while let Some(ended) = self.next().await {
            ended?;
        }
        Ok(())
    }

    /// Ends all tasks at their next await.
    pub fn abort(&mut self) {
        self.set.abort_all();
    }
}

/// An aborted task has not failed: its owner ended it.
fn outcome(ended: Result<anyhow::Result<()>, JoinError>) -> anyhow::Result<()> {
    match ended {
        Ok(result) => result,
        Err(error) if error.is_cancelled() => Ok(()),
        Err(error) => Err(anyhow::Error::new(error).context("a task panicked")),
    }
}

fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no text")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_failed_task_is_named() {
        let mut tasks = Tasks::default();
        tasks.spawn("collector", async { anyhow::bail!("no datagrams") });

        let error = tasks.next().await.unwrap().unwrap_err();

        assert_eq!(format!("{error:#}"), "task collector failed: no datagrams");
    }

    #[tokio::test]
    async fn a_panicked_task_is_named() {
        let mut tasks = Tasks::default();
        tasks.spawn("collector", async { panic!("five is {}", 4) });

        let error = tasks.join().await.unwrap_err();

        assert_eq!(error.to_string(), "task collector panicked: five is 4");
    }

    #[tokio::test]
    async fn an_aborted_task_has_not_failed() {
        let mut tasks = Tasks::default();
        tasks.spawn("endless", std::future::pending());

        tasks.abort();

        assert!(tasks.next().await.unwrap().is_ok());
        assert!(tasks.is_empty());
    }

    #[tokio::test]
    async fn reaping_forgets_what_ended_and_waits_for_nothing() {
        let mut tasks = Tasks::default();
        tasks.spawn("endless", std::future::pending());
        tasks.spawn("quick", async { Ok(()) });

        while tasks.len() == 2 {
            tokio::task::yield_now().await;
            tasks.reap().unwrap();
        }

        assert_eq!(tasks.len(), 1);
    }
}
