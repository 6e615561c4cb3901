//! What viewers report of segment bases goes to `gauges`, once a second, one vote a session.

use std::sync::Arc;

use bus::{At, Tail, Tailed, topic};
use proto::control::Fact;
use proto::frame::{Report, Uplink};
use proto::head::Base;
use proto::quality::{BaseGauge, BaseGauges, BaseReport};

use crate::world::World;

#[tokio::test]
async fn reports_are_summed_up_by_base_and_one_session_counts_once() {
    let world = World::new().await;
    world.open_room("r").await;
    let topic = topic::gauges();
    let bus = Arc::clone(&world.bus) as _;
    let mut gauges = Tail::open(bus, topic.clone(), Tail::all(&topic), At::End).await.unwrap();
    let bases = vec![base("https://cdn-a.example"), base("https://cdn-b.example")];
    world.tell(Fact::Bases { bases }).await;
    let mut first = world.enter("tcp", "viewer-1", "r").await;
    let mut second = world.enter("tcp", "viewer-2", "r").await;

    let bad = report(&[("https://cdn-a.example", true), ("https://elsewhere.example", true)]);
    first.send(bad.clone()).await;
    first.send(bad.clone()).await;
    first.send(bad).await;
    first.lives().await;
    let good = report(&[("https://cdn-a.example", false), ("https://cdn-b.example", false)]);
    second.send(good).await;
    second.lives().await;

    let mut sums = [(0, 0); 2];
    while sums[1].0 == 0 {
        for gauge in next_bases(&mut gauges).await {
            let index = usize::from(gauge.base.contains("cdn-b"));
            sums[index].0 += gauge.reports;
            sums[index].1 += gauge.bad;
        }
    }
    assert_eq!(sums, [(2, 1), (1, 0)]);
    assert_eq!(world.metric(r#"link_base_votes_total{vote="unknown"}"#), 1);
}

fn base(base: &str) -> Base {
    Base { base: base.to_owned(), weight: 100 }
}

fn report(bases: &[(&str, bool)]) -> Uplink {
    let base = |&(base, is_bad): &(&str, bool)| BaseReport {
        base: base.to_owned(),
        fetches: 5,
        is_bad,
        ..BaseReport::default()
    };
    let bases = bases.iter().map(base).collect();
    Uplink::Report(Report { fetches: 5, bases, ..Report::default() })
}

async fn next_bases(gauges: &mut Tail) -> Vec<BaseGauge> {
    loop {
        let Tailed::Records(records) = gauges.next(1).await.unwrap() else { continue };
        let bases = BaseGauges::decode(&records[0].value).unwrap().bases;
        if !bases.is_empty() {
            return bases;
        }
    }
}
