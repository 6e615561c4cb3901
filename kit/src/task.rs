//! Named tasks with an owner: they end when their owner does.

use tokio::task::JoinSet;
use tracing::Instrument;

/// A set of tasks. Dropping it aborts them.
#[derive(Debug, Default)]
pub struct Tasks {
    set: JoinSet<(&'static str, anyhow::Result<()>)>,
}

impl Tasks {
    /// Starts a task; `name` is in its log lines and in the error when it fails.
    pub fn spawn<F>(&mut self, name: &'static str, future: F)
    where
        F: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        let span = tracing::info_span!("task", name);
        self.set.spawn(async move { (name, future.await) }.instrument(span));
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
        let ended = self.set.join_next().await?;
        Some(match ended {
            Ok((_, Ok(()))) => Ok(()),
            Ok((name, Err(error))) => Err(error.context(format!("task {name} failed"))),
            Err(error) if error.is_cancelled() => Ok(()),
            Err(error) => Err(anyhow::Error::new(error).context("a task panicked")),
        })
    }

    /// Waits for all; the first failure is returned at once, and the rest is aborted on drop.
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
