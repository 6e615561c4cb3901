//! Key exchange over curveSM2: plain ephemeral Diffie-Hellman, the secret is the x coordinate
//! (RFC 8998, section 3.1).

use rustls::crypto::{ActiveKeyExchange, GetRandomFailed, SharedSecret, SupportedKxGroup};
use rustls::{Error, NamedGroup, PeerMisbehaved};
use sm2::elliptic_curve::point::AffineCoordinates;
use sm2::{ProjectivePoint, SecretKey};
use zeroize::Zeroizing;

use super::GROUP;
use super::key::{public_from_point, secret_from_seed};

#[derive(Debug)]
pub(super) struct CurveSm2;

impl SupportedKxGroup for CurveSm2 {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let seed = Zeroizing::new(kit::seed::random_bytes().map_err(|_| GetRandomFailed)?);
        let secret = secret_from_seed(&seed).ok_or(GetRandomFailed)?;
        let share = secret.public_key().to_sec1_bytes();
        Ok(Box::new(Exchange { secret, share }))
    }

    fn name(&self) -> NamedGroup {
        GROUP
    }
}

/// Our half; the secret is wiped on drop.
struct Exchange {
    secret: SecretKey,
    share: Box<[u8]>,
}

impl ActiveKeyExchange for Exchange {
    fn complete(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        let peer = public_from_point(peer).ok_or(PeerMisbehaved::InvalidKeyShare)?;
        let scalar = Zeroizing::new(self.secret.to_nonzero_scalar());
        let point = Zeroizing::new(ProjectivePoint::from(&peer) * **scalar);
        let x = Zeroizing::new(point.to_affine().x());
        Ok(SharedSecret::from(x.as_slice()))
    }

    fn pub_key(&self) -> &[u8] {
        &self.share
    }

    fn group(&self) -> NamedGroup {
        GROUP
    }
}
