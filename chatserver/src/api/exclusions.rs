//! Devices and ranges of addresses that may not enter.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use chatserver_core::rank::Act;
use proto::control::{Excluded, Fact};
use proto::id::DeviceId;
use proto::network::Network;
use proto::time::Wall;
use serde::{Deserialize, Serialize};

use super::Api;
use super::acts::{Deed, Signed, What};
use super::caller::{Asked, Body, Caller, Names};
use super::no::No;

/// Of one room: links compare every login with its ranges.
const EXCLUSIONS_MAX: usize = 500;
/// The widest ranges: wider ones would shut out whole countries by a slip of the hand.
const BITS_MIN: (u8, u8) = (8, 19);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Exclude {
    device: Option<String>,
    range: Option<String>,
    seconds: Option<u64>,
}

#[derive(Debug, Serialize)]
struct Until {
    #[serde(flatten)]
    what: Excluded,
    until: Wall,
}

/// `POST /v1/rooms/{room}/exclusions`: sessions that name a device, or come from a range of
/// addresses, end and may not enter, for so many seconds or for ever.
pub(crate) async fn exclude(
    State(api): State<Arc<Api>>,
    Caller(app): Caller,
    Names(room): Names<String>,
    Asked(signed): Asked<Signed>,
    Body(Exclude { device, range, seconds }): Body<Exclude>,
) -> Result<Response, No> {
    let until = api.end_of(seconds)?;
    let what = match (device, range) {
        (Some(device), None) => device_of(&device)?,
        (None, Some(range)) => range_of(&range)?,
        _ => {
            let why = "one of device and range is needed".to_owned();
            return Err(No::Field { field: "device", why });
        }
    };
    let deed = api.deed(app, &room, signed).await?;
    deed.allow(Act::Arrange)?;
    api.set(&deed, what.clone(), until).await?;
    Ok(Json(Until { what, until }).into_response())
}

/// `DELETE /v1/rooms/{room}/exclusions/device/{device}`: 204, whether or not there was one.
pub(crate) async fn readmit_device(
    State(api): State<Arc<Api>>,
    Caller(app): Caller,
    Names((room, device)): Names<(String, String)>,
    Asked(signed): Asked<Signed>,
) -> Result<Response, No> {
    let deed = api.deed(app, &room, signed).await?;
    api.readmit(&deed, device_of(&device)?).await
}

/// `DELETE /v1/rooms/{room}/exclusions/range/{range}`, the slash as `%2F`: likewise.
pub(crate) async fn readmit_range(
    State(api): State<Arc<Api>>,
    Caller(app): Caller,
    Names((room, range)): Names<(String, String)>,
    Asked(signed): Asked<Signed>,
) -> Result<Response, No> {
    let deed = api.deed(app, &room, signed).await?;
    api.readmit(&deed, range_of(&range)?).await
}

impl Api {
    async fn readmit(&self, deed: &Deed, what: Excluded) -> Result<Response, No> {
        deed.allow(Act::Arrange)?;
        self.set(deed, what, Wall(0)).await?;
        Ok(StatusCode::NO_CONTENT.into_response())
    }

    async fn set(&self, deed: &Deed, what: Excluded, until: Wall) -> Result<(), No> {
        let on = match &what {
            Excluded::Device(device) => format!("device {device}"),
            Excluded::Range(range) => range.to_string(),
        };
        let (name, end) =
            if until == Wall(0) { ("readmit", None) } else { ("exclude", Some(until)) };
        let record = deed.record(self, name, What { on: Some(on), until: end, value: None });
        let act = Fact::Exclude { app: deed.app, room: deed.room.clone(), what, until };
        self.act(act, end.map(|_| EXCLUSIONS_MAX), deed, record).await
    }
}

fn device_of(device: &str) -> Result<Excluded, No> {
    let device = DeviceId::parse(device);
    device
        .map(Excluded::Device)
        .map_err(|error| No::Field { field: "device", why: error.to_string() })
}

fn range_of(range: &str) -> Result<Excluded, No> {
    let field = |why| No::Field { field: "range", why };
    let range: Network = range.parse().map_err(|error| field(format!("{error}")))?;
    let bits_min = if range.is_ipv4() { BITS_MIN.0 } else { BITS_MIN.1 };
    if range.bits() < bits_min {
        return Err(field(format!("must share at least {bits_min} bits")));
    }
    Ok(Excluded::Range(range))
}
