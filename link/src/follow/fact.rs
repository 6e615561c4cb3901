//! What a fact does to this node: who may be here, and what rooms are like.

use std::sync::Arc;

use kit::task::Tasks;
use link_core::ring::Switch;
use proto::attribute::Attribute;
use proto::close::CloseCode;
use proto::control::{Fact, RoomFact};
use proto::frame::{Control, Downlink};
use proto::head::Base;
use proto::id::{AppId, RoomId, ViewerId};
use proto::time::Wall;

use crate::drain::{self, Order};
use crate::line::{Mail, end};
use crate::node::Node;

/// Does it. Sessions that move over a while do so in `moves`.
pub(super) fn learn(node: &Arc<Node>, fact: &Fact, moves: &mut Tasks) {
    let now = node.clock.wall();
    match fact {
        Fact::Epoch(_) => node.door.refetch.notify_one(),
        Fact::Room(fact) => room(node, fact),
        Fact::Kick { app, viewer, .. } => {
            node.door.learn(fact, now);
            tell(node, *app, viewer, &Mail::Kicked);
        }
        Fact::Ban { app, room, viewer, until } => {
            node.door.learn(fact, now);
            if *until > now {
                tell(node, *app, viewer, &Mail::Banned { room: room.clone() });
            }
        }
        Fact::Revoked { .. } | Fact::Sdk(_) => node.door.learn(fact, now),
        Fact::Policy(_) => {
            node.door.learn(fact, now);
            node.lines.review();
        }
        Fact::Mute { app, room, viewer, until } => mute(node, *app, room, viewer, *until),
        Fact::Close { node: place, session, code } => {
            if let (true, Some(code)) =
                (*place == node.config.bus_node(), CloseCode::from_code(*code))
            {
                node.lines.put(*session, end(code, 0));
            }
        }
        Fact::Keep { room, keep_permille, .. } => node.hub.lock().keep(room, *keep_permille),
        Fact::Heat { room, heat, gen_no, slot, .. } => {
            switch(node, room, Switch { heat: *heat, gen_no: *gen_no, slot: *slot });
        }
        Fact::Bases { bases } => weigh(node, bases),
        Fact::Move { node: place, sessions, window_ms, addresses, at, drain, .. } => {
            let is_due = drain.is_none_or(|start| node.is_drain_of(start));
            if *place == node.config.node && is_due && node.take_move(*at, *window_ms) {
                let order = Order {
                    addresses: addresses.as_slice().into(),
                    sessions: sessions.map(|it| node.config.part(it)),
                    window_ms: *window_ms,
                };
                if drain.is_some() {
                    node.drain_order.send_replace(Some(order));
                } else {
                    let node = Arc::clone(node);
                    moves.spawn("move", async move {
                        drain::send_away(&node, order).await;
                        Ok(())
                    });
                }
            }
        }
        Fact::Exclude { room, until, .. } => {
            node.door.learn(fact, now);
            if *until > now {
                review(node, room);
            }
        }
        Fact::Person { app, room, viewer, standing } => {
            if !node.hub.lock().is_closed(*app, room) {
                node.boards.lock().stand(*app, room, viewer, *standing);
            }
        }
        Fact::Attribute { app, room, attribute } => write(node, *app, room, attribute),
        Fact::Sealed { .. } => node.vault.learn(fact),
        Fact::Lease(_) | Fact::Words { .. } | Fact::Catalogue(_) => {}
    }
}

fn room(node: &Node, fact: &RoomFact) {
    let had_guests = node.hub.lock().takes_guests(&fact.room);
    let was_open = node.hub.lock().is_open(&fact.room);
    let is_open = node.hub.lock().learn(fact);
    if had_guests && !node.hub.lock().takes_guests(&fact.room) {
        review(node, &fact.room);
    }
    if !fact.open {
        node.boards.lock().close(fact.app, &fact.room);
    }
    if was_open
        && !is_open
        && let Some(room) = node.rooms.find(&fact.room)
    {
        let closed = Control::Closed { room: fact.room.clone() };
        let wake = room.change(|ring| ring.news(closed, node.clock.mono()));
        room.ring(wake, &node.pump);
    }
}

fn weigh(node: &Node, bases: &[Base]) {
    node.quality.lock().learn(bases);
    let frame = Downlink::Control(Control::Bases { bases: bases.to_vec() }).encode();
    for line in node.lines.all() {
        line.put(Mail::Frame(frame.clone()));
    }
}

fn switch(node: &Node, id: &RoomId, switch: Switch) {
    if let Some(room) = node.rooms.know(id) {
        let wake = room.change(|ring| ring.switch(switch, node.clock.mono()));
        room.ring(wake, &node.pump);
    }
}

/// Lets every session of a room look whether it may still be there.
fn review(node: &Node, id: &RoomId) {
    if let Some(room) = node.rooms.find(id) {
        room.review();
    }
}

fn write(node: &Node, app: AppId, id: &RoomId, attribute: &Attribute) {
    if !node.hub.lock().is_closed(app, id)
        && node.boards.lock().write(app, id, attribute)
        && let Some(room) = node.rooms.find(id)
    {
        let attributes = vec![attribute.clone()];
        let news = Control::Attributes { room: id.clone(), attributes };
        let wake = room.change(|ring| ring.news(news, node.clock.mono()));
        room.ring(wake, &node.pump);
    }
}

fn mute(node: &Node, app: AppId, room: &RoomId, viewer: &ViewerId, until: Wall) {
    if until > node.clock.wall() {
        let muted = Control::Muted { room: room.clone(), until };
        tell(node, app, viewer, &Mail::Frame(Downlink::Control(muted).encode()));
    }
}

/// Leaves a mail for every session of a viewer.
fn tell(node: &Node, app: AppId, viewer: &ViewerId, mail: &Mail) {
    let sessions: Vec<_> = node.hub.lock().sessions_of(app, viewer).collect();
    for session in sessions {
        node.lines.put(session, mail.clone());
    }
}
