//! Every decoder of the protocol, given spoiled vectors: an error or a sound value, never a panic.

use std::time::Duration;

use drill::Line;
use kit::clock::Clock;
use kit::seed::derive;
use proto::decode::DecodeError;
use proto::envelope::{AcceptedBatch, LinkGauges, ReplyBatch, RoomBatch, UplinkBatch};
use proto::frame::{Downlink, Uplink};
use proto::load::{LoadReport, RegionLoads};
use proto::quality::BaseGauges;
use proto::segment::Segment;
use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::spoil::spoiled;

/// Inputs between two looks at the clock.
const TURN: u64 = 256;

macro_rules! decoders {
    ($($name:ident)+) => {
        /// Gives the bytes to every decoder. How many took them, and who took a value that cannot
        /// be written and read again.
        fn decode_all(bytes: &[u8]) -> (u64, Option<&'static str>) {
            let (mut accepted, mut unsound) = (0, None);
            $(
                if let Ok(value) = $name::decode(bytes) {
                    accepted += 1;
                    let again = $name::decode(&value.encode());
                    // What the input shared stands apart when written again.
                    let is_too_large = matches!(again, Err(DecodeError::TooLarge { .. }));
                    if again != Ok(value) && !is_too_large {
                        unsound = Some(stringify!($name));
                    }
                }
            )+
            (accepted, unsound)
        }
    };
}

decoders! {
    Uplink Downlink UplinkBatch ReplyBatch AcceptedBatch RoomBatch LinkGauges BaseGauges LoadReport
    RegionLoads Segment
}

/// Feeds them for so long.
pub(super) async fn run(
    vectors: Vec<Vec<u8>>,
    length: Duration,
    line: &mut Line,
) -> anyhow::Result<()> {
    let seed = derive(line.seed(), "decoders");
    let fed = tokio::task::spawn_blocking(move || feed(&vectors, length, seed)).await?;
    line.figure("decoded_inputs", fed.inputs);
    line.figure("decoded_accepted", fed.accepted);
    line.check(fed.accepted > 0, || "no decoder took anything".to_owned());
    line.check(fed.accepted < fed.inputs, || "nothing was refused".to_owned());
    if let Some((name, bytes)) = fed.unsound {
        line.fail(format!("{name} took what it cannot write: {bytes:02x?}"));
    }
    Ok(())
}

/// What became of the inputs.
#[derive(Debug, Default)]
struct Fed {
    inputs: u64,
    accepted: u64,
    unsound: Option<(&'static str, Vec<u8>)>,
}

fn feed(vectors: &[Vec<u8>], length: Duration, seed: u64) -> Fed {
    let clock = Clock::system();
    let deadline = clock.mono() + length;
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut fed = Fed::default();
    while clock.mono() < deadline {
        for _ in 0..TURN {
            let bytes = spoiled(vectors, &mut rng);
            let (accepted, unsound) = decode_all(&bytes);
            fed.inputs += 1;
            fed.accepted += accepted;
            if let Some(name) = unsound {
                fed.unsound.get_or_insert((name, bytes));
            }
        }
    }
    fed
}
