//! The bus of a process, lent to one beside it: there, a crowd reads the ledger without being part
//! of what is measured.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use bus::Bus;
use bus::remote::{Ports, connect, serve};
use kit::quota::MemoryQuota;
use tokio::net::{UnixListener, UnixStream};

/// Lends `bus` to one process, which [`borrow()`]s it at this socket; what comes back carries it,
/// and ends with that process.
///
/// # Errors
/// When the socket cannot be made.
pub fn lend(
    socket: &Path,
    bus: Arc<dyn Bus>,
) -> anyhow::Result<impl Future<Output = anyhow::Result<()>> + Send + 'static> {
    let listener = UnixListener::bind(socket)
        .with_context(|| format!("cannot listen at {}", socket.display()))?;
    // Nobody there asks for a quota.
    let ports = Ports { global: Arc::clone(&bus), unit: bus, quota: Arc::new(MemoryQuota::new(1)) };
    Ok(async move {
        let (stream, _) = listener.accept().await?;
        Ok(serve(stream, ports).await?)
    })
}

/// The bus that another process lends at this socket, and what carries it while it is used.
///
/// # Errors
/// When nobody lends one there.
pub async fn borrow(
    socket: &Path,
) -> anyhow::Result<(Arc<dyn Bus>, impl Future<Output = anyhow::Result<()>> + Send + 'static)> {
    let stream = UnixStream::connect(socket)
        .await
        .with_context(|| format!("nobody lends a bus at {}", socket.display()))?;
    let (ports, carried) = connect(stream);
    Ok((ports.global, async move { Ok(carried.await?) }))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bus::{MemoryBus, Offset, PartitionNo, Publish, topic};
    use kit::clock::Clock;
    use kit::task::Tasks;

    use super::*;

    #[tokio::test]
    async fn a_borrowed_bus_has_what_the_lent_one_holds() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("bus");
        let bus: Arc<dyn Bus> = MemoryBus::new(Clock::system(), bus::memory::Limits::default());
        let mut tasks = Tasks::default();
        tasks.spawn("lent", lend(&socket, Arc::clone(&bus)).unwrap());
        let record = Publish {
            topic: topic::sealed(),
            partition: PartitionNo(0),
            term: None,
            key: None,
            value: b"said".to_vec().into(),
        };
        for published in bus.publish(vec![record]).await {
            published.unwrap();
        }

        let (borrowed, carried) = borrow(&socket).await.unwrap();
        tasks.spawn("carried", carried);
        let wait = Duration::from_secs(5);
        let read = borrowed.read(topic::sealed(), PartitionNo(0), Offset(0), 10, wait).await;

        let values: Vec<_> = read.unwrap().into_iter().map(|it| it.value).collect();
        assert_eq!(values, [b"said".to_vec()]);
    }
}
