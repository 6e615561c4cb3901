//! Somebody else's server with the same certificate, measured in the same run.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use kit::clock::Clock;
use tokio::process::Command;

use super::certificate::{Certificate, Kind};
use crate::peer::{Peer, free_addr, nginx, note};

/// Starts the peer of that kind of certificate, of one thread. None, with a word on how to get it,
/// where it is not installed.
pub(super) async fn start(
    certificate: &Certificate,
    clock: &Clock,
) -> anyhow::Result<Option<Peer>> {
    let addr = free_addr()?;
    let (name, command) = match certificate.kind {
        Kind::P256 | Kind::Ed25519 | Kind::Rsa2048 => {
            let server = format!(
                "listen {addr} ssl backlog=1024;\n\
                 ssl_protocols TLSv1.3; ssl_certificate chain.pem; ssl_certificate_key key.pem;\n\
                 return 204;"
            );
            ("nginx", nginx(certificate.folder(), &server)?)
        }
        Kind::Sm2 => ("openssl s_server", s_server(certificate, addr)),
    };
    let peer = Peer::start(name, command, addr, certificate.folder(), clock).await?;
    if peer.is_none() {
        note(&format!("{} has no peer: run ops/tools/install", certificate.kind.line()));
    }
    Ok(peer)
}

/// One connection after the other; each line comes back reversed.
fn s_server(certificate: &Certificate, addr: SocketAddr) -> Command {
    let mut command = Command::new(openssl4());
    command.args(["s_server", "-rev", "-tls1_3", "-ciphersuites", "TLS_SM4_GCM_SM3"]);
    command.args(["-groups", "curveSM2", "-sigalgs", "sm2sig_sm3", "-accept", &addr.to_string()]);
    command.arg("-cert").arg(certificate.chain()).arg("-key").arg(certificate.key());
    command
}

/// Where `ops/tools/install` puts it.
fn openssl4() -> PathBuf {
    let tools = std::env::var_os("BARRAGE_TOOLS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools"),
        PathBuf::from,
    );
    tools.join("openssl4/bin/openssl")
}
