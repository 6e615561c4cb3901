//! What a room tells everyone in it, and those who come later.

use proto::attribute::{Attribute, Value};
use proto::control::{Fact, RoomFact, Standing};
use proto::frame::{Control, Downlink, Outcome};
use proto::id::{AttributeName, ViewerId};
use proto::verdict::{Reason, Verdict};

use crate::world::{APP, World, room};

#[tokio::test]
async fn a_notice_is_told_to_those_who_are_there_and_to_those_who_come() {
    let world = World::new().await;
    let mut early = world.enter("tcp", "alice", "r").await;
    let (notice, votes) = (text("notice", 1, "welcome"), count("votes", 2, 7));

    world.tell(write(notice.clone())).await;
    world.tell(write(votes.clone())).await;
    assert_eq!(early.receive().await, told(vec![notice.clone()]));
    assert_eq!(early.receive().await, told(vec![votes.clone()]));
    let mut late = world.enter("ws", "bob", "r").await;

    assert_eq!(late.receive().await, told(vec![notice.clone(), votes.clone()]));
    let gone = Attribute { value: None, ..text("notice", 3, "") };
    world.tell(write(gone.clone())).await;
    assert_eq!(late.receive().await, told(vec![gone]));
    let mut last = world.enter("tcp", "carol", "r").await;
    assert_eq!(last.receive().await, told(vec![votes]));
}

#[tokio::test]
async fn what_a_closed_room_told_is_not_told_in_a_later_one_of_its_name() {
    let world = World::new().await;
    world.open_room("q").await;
    let mut bob = world.enter("tcp", "bob", "q").await;
    // Facts are done in their order: once bob is told, those before are done.
    let mut tell = async |version, fact| {
        world.tell(fact).await;
        let attribute = text("last", version, "told");
        world.tell(Fact::Attribute { app: APP, room: room("q"), attribute }).await;
        bob.receive().await;
    };
    let is = |version, open| {
        let settings = proto::control::RoomSettings::default();
        Fact::Room(RoomFact { app: APP, room: room("r"), version, open, settings })
    };
    tell(1, write(text("notice", 1, "welcome"))).await;
    tell(2, is(100, false)).await;
    tell(3, write(text("notice", 2, "still here"))).await;
    tell(4, is(102, true)).await;
    tell(5, write(text("theme", 3, "red"))).await;

    let mut alice = world.enter("tcp", "alice", "r").await;

    assert_eq!(alice.receive().await, told(vec![text("theme", 3, "red")]));
}

#[tokio::test]
async fn who_is_on_the_allow_list_is_heard_when_nobody_else_is() {
    let mut world = World::new().await;
    let viewer = ViewerId::parse("alice").unwrap();
    let standing = Standing { listed: true, ..Standing::default() };
    let mut bob = world.enter("tcp", "bob", "r").await;
    world.tell(Fact::Keep { app: APP, room: room("r"), keep_permille: 0 }).await;
    world.tell(Fact::Person { app: APP, room: room("r"), viewer: viewer.clone(), standing }).await;
    world.tell(write(text("last", 1, "told"))).await;
    assert_eq!(bob.receive().await, told(vec![text("last", 1, "told")]));
    let mut alice = world.enter("tcp", "alice", "r").await;

    bob.comment(1, "not heard").await;
    let Some(Outcome::Verdict(Verdict::Drop { reason, .. })) = bob.refused(1).await else {
        panic!("a share of none was let through")
    };
    alice.comment(1, "heard").await;

    assert_eq!(reason, Reason::RoomBusy);
    let is_comment =
        |it: &proto::envelope::UplinkEntry| matches!(it.act, proto::envelope::Act::Comment { .. });
    assert_eq!(world.act(is_comment).await.viewer, viewer);
}

fn write(attribute: Attribute) -> Fact {
    Fact::Attribute { app: APP, room: room("r"), attribute }
}

fn text(name: &str, version: u64, text: &str) -> Attribute {
    let name = AttributeName::parse(name).unwrap();
    Attribute { name, version, value: Some(Value::Text(text.to_owned())) }
}

fn count(name: &str, version: u64, count: i64) -> Attribute {
    let name = AttributeName::parse(name).unwrap();
    Attribute { name, version, value: Some(Value::Count(count)) }
}

fn told(attributes: Vec<Attribute>) -> Downlink {
    Downlink::Control(Control::Attributes { room: room("r"), attributes })
}
