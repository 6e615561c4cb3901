//! Gift catalogues, from the API to those who publish them.

use proto::control::{Fact, Gathering};
use proto::id::AppId;
use proto::limits::CATALOGUE_BYTES_MAX;
use reqwest::Method;
use serde_json::{Value, json};

use super::world::*;

const PATH: &str = "/v1/catalogue";

#[tokio::test]
async fn a_catalogue_is_told_in_parts_and_read_back() {
    let world = World::start().await;
    let mut facts = world.facts().await;
    let gifts: Vec<Value> = (1..1000)
        .map(|no| json!({"no": no, "name": "火箭", "icon": format!("{no}.webp")}))
        .collect();
    let catalogue = json!({"gifts": gifts});
    let none = world.call(Method::GET, PATH, &[], None).await.1;

    let put = json!({"catalogue": catalogue});
    let (status, answer) = world.call(Method::PUT, PATH, &[], Some(put)).await;
    let mut gathering = Gathering::default();
    let (version, text) = loop {
        let Fact::Catalogue(part) = facts.find(|it| matches!(it, Fact::Catalogue(_))).await else {
            unreachable!("no other was looked for")
        };
        assert_eq!(part.app, AppId(1));
        if let Some(whole) = gathering.take(part) {
            break whole;
        }
    };

    assert_eq!(none, json!({"version": 0, "catalogue": null}));
    assert_eq!((status.as_u16(), &answer["version"]), (200, &json!(1)));
    assert_eq!((version, text.parse::<Value>().unwrap()), (1, catalogue.clone()));
    let read = world.call(Method::GET, PATH, &[], None).await.1;
    assert_eq!(read, json!({"version": 1, "catalogue": catalogue}));
    let audit = world.call(Method::GET, "/v1/audit", &[], None).await.1;
    assert_eq!(audit["rows"][0]["act"], "catalogue");
}

#[tokio::test]
async fn a_catalogue_is_replaced_by_its_version_and_refused_with_a_reason() {
    let world = World::start().await;
    let put = async |version: &str, catalogue: Value| {
        let body = Some(json!({"catalogue": catalogue}));
        let (status, body) = world.call(Method::PUT, PATH, &[("if-match", version)], body).await;
        (status.as_u16(), body)
    };

    assert_eq!(put("\"0\"", json!([1])).await.1["version"], 1);
    assert_eq!(put("\"0\"", json!([2])).await.1["code"], "changed");
    assert_eq!(put("\"1\"", json!([2])).await.1["version"], 2);
    assert_eq!(put("*", json!({})).await.1["version"], 3);
    for refused in [json!("text"), json!(null), json!(["x".repeat(CATALOGUE_BYTES_MAX)])] {
        let (status, body) = put("*", refused).await;
        assert_eq!((status, &body["code"]), (400, &json!("invalid_field")));
    }
}
