//! The business API of a running `up`, called with the key that it keeps in its data folder.

use std::path::Path;

use serde_json::{Value, json};

use crate::get::{Got, ask};
use crate::process::{Up, until};

/// A business server's hand.
pub(crate) struct Api {
    base: String,
    key: String,
}

impl Api {
    /// Waits until the demo room is there.
    pub(crate) async fn of(up: &Up, data: &Path) -> Self {
        let identity = std::fs::read(data.join("identity.json")).unwrap();
        let identity: Value = serde_json::from_slice(&identity).unwrap();
        let key = identity["api_key"].as_str().unwrap().to_owned();
        let api = Self { base: up.url("api").to_owned(), key };
        until("the room", async || (api.room().await.status == 200).then_some(())).await;
        api
    }

    /// The demo room.
    pub(crate) async fn room(&self) -> Got {
        self.call("GET", "", "", "").await
    }

    /// Changes settings of the demo room.
    pub(crate) async fn patch(&self, changes: &Value) -> Got {
        self.call("PATCH", "", "", &changes.to_string()).await
    }

    /// Closes the demo room.
    pub(crate) async fn close(&self) -> Got {
        self.call("POST", "/close", "", "").await
    }

    /// A gift to the demo room: the status, and the item's id.
    pub(crate) async fn gift(&self, key: &str) -> (u16, String) {
        let gift = json!({ "viewer": "patron", "gift_no": 7, "count": 1, "lane": "high" });
        self.item("/gifts", key, &gift).await
    }

    /// Words of the house.
    pub(crate) async fn notice(&self, key: &str, text: &str) -> (u16, String) {
        self.item("/notices", key, &json!({ "text": text })).await
    }

    async fn item(&self, path: &str, key: &str, body: &Value) -> (u16, String) {
        let header = format!("idempotency-key: {key}\r\n");
        let got = self.call("POST", path, &header, &body.to_string()).await;
        let id = got.json()["id"].as_str().unwrap_or_default().to_owned();
        (got.status, id)
    }

    async fn call(&self, method: &str, path: &str, headers: &str, body: &str) -> Got {
        let headers = format!(
            "authorization: Bearer {}\r\ncontent-type: application/json\r\n{headers}",
            self.key
        );
        ask(&self.base, method, &format!("/v1/rooms/demo{path}"), &headers, body).await
    }
}
