//! All calls of the API.

use super::call::{Call, Header, Query};
use super::{
    audit, board, catalogue, evidence, exclusions, gift, items, openapi, people, quota, room,
    shown, standing, words,
};

/// All of them.
pub(super) fn all() -> Vec<Call> {
    [rooms(), things(), sanctions(), persons(), boards(), lists(), records()]
        .into_iter()
        .flatten()
        .collect()
}

fn rooms() -> Vec<Call> {
    vec![
        Call::get("read_document", openapi::PATH, openapi::read)
            .says("This document; needs no key.")
            .gives(200, "Document"),
        Call::post("create_room", "/v1/rooms", room::create)
            .says("Makes a room: 201, or 200 with the one that this app has already.")
            .body("CreateRoom")
            .gives(201, "Room")
            .gives(200, "Room")
            .tagged()
            .refuses([409, 412]),
        Call::get("list_rooms", "/v1/rooms", room::list)
            .says("The app's rooms by name, closed ones too.")
            .paged()
            .gives(200, "Rooms"),
        Call::get("read_room", "/v1/rooms/{room}", room::read)
            .says("A room and its settings.")
            .gives(200, "Room")
            .tagged(),
        Call::patch("update_room", "/v1/rooms/{room}", room::update)
            .says("Changes the settings that the body names, and no others.")
            .signed()
            .header(Header::IfMatch)
            .body("RoomSettings")
            .gives(200, "Room")
            .tagged()
            .refuses([412]),
        Call::post("close_room", "/v1/rooms/{room}/close", room::close)
            .says("Closes a room, which takes and shows nothing more; again does no harm.")
            .signed()
            .gives(200, "Room")
            .tagged()
            .refuses([412]),
        Call::get("read_online", "/v1/rooms/{room}/online", room::online)
            .says("Who is in a room, as its links count.")
            .gives(200, "Online"),
    ]
}

fn things() -> Vec<Call> {
    vec![
        Call::post("give_gift", "/v1/rooms/{room}/gifts", gift::give)
            .says("Shows a gift: 202 once it is durable, 200 for the same request again.")
            .header(Header::Key)
            .body("Gift")
            .gives(202, "Shown")
            .gives(200, "Shown")
            .refuses([409]),
        Call::post("show_notice", "/v1/rooms/{room}/notices", gift::notify)
            .says("Shows words of the house, as a gift.")
            .header(Header::MayKey)
            .body("Notice")
            .gives(202, "Shown")
            .gives(200, "Shown")
            .refuses([409]),
        Call::post("show_system_message", "/v1/rooms/{room}/system-messages", shown::message)
            .says("Shows words of the business server in the stream of items.")
            .header(Header::MayKey)
            .body("Notice")
            .gives(202, "Shown")
            .gives(200, "Shown")
            .refuses([409]),
        Call::post("show_entry_effect", "/v1/rooms/{room}/entry-effects", shown::effect)
            .says("Shows that a viewer comes in with an effect.")
            .header(Header::Key)
            .body("Effect")
            .gives(202, "Shown")
            .gives(200, "Shown")
            .refuses([409]),
        Call::post("show_custom_item", "/v1/rooms/{room}/custom-items", shown::custom)
            .says("Shows an item of a kind of the app's own.")
            .header(Header::Key)
            .body("Custom")
            .gives(202, "Shown")
            .gives(200, "Shown")
            .refuses([409]),
        Call::get("list_items", "/v1/rooms/{room}/items", items::recent)
            .says("What the room showed last, the oldest first.")
            .gives(200, "Items"),
        Call::get("list_held", "/v1/rooms/{room}/held", items::held)
            .says("Comments that the room holds back at this chatserver, the oldest first.")
            .paged()
            .gives(200, "HeldComments"),
        Call::delete("recall_item", "/v1/rooms/{room}/items/{id}", items::recall)
            .says("Takes an item from all screens: 202 with the tombstone's id, 200 again.")
            .signed()
            .gives(202, "Shown")
            .gives(200, "Shown")
            .refuses([409, 412]),
        Call::post("erase_item", "/v1/rooms/{room}/items/{id}/erase", items::erase)
            .says("Takes an item from all screens and out of all segments; evidence keeps it.")
            .signed()
            .gives(202, "Shown")
            .gives(200, "Shown")
            .refuses([409, 412]),
    ]
}

fn sanctions() -> Vec<Call> {
    vec![
        Call::post("mute", "/v1/rooms/{room}/mutes", people::mute)
            .says("Refuses a viewer's comments for so many seconds.")
            .signed()
            .body("Mute")
            .gives(200, "Until")
            .refuses([409, 412]),
        Call::get("list_mutes", "/v1/rooms/{room}/mutes", people::mutes)
            .says("Mutes that are not over.")
            .paged()
            .gives(200, "Sanctions"),
        Call::delete("unmute", "/v1/rooms/{room}/mutes/{viewer}", people::unmute)
            .says("Ends a mute, if there is one.")
            .signed()
            .gives_nothing()
            .refuses([409, 412]),
        Call::post("ban", "/v1/rooms/{room}/bans", people::ban)
            .says("Keeps a viewer out for so many seconds, or for ever.")
            .signed()
            .body("Ban")
            .gives(200, "Until")
            .refuses([409, 412]),
        Call::get("list_bans", "/v1/rooms/{room}/bans", people::bans)
            .says("Bans that are not over.")
            .paged()
            .gives(200, "Sanctions"),
        Call::delete("unban", "/v1/rooms/{room}/bans/{viewer}", people::unban)
            .says("Ends a ban, if there is one.")
            .signed()
            .gives_nothing()
            .refuses([409, 412]),
        Call::post("kick", "/v1/rooms/{room}/kicks", people::kick)
            .says("Ends a viewer's sessions, and refuses what was issued for new ones so far.")
            .signed()
            .body("Kick")
            .gives_nothing()
            .refuses([409, 412]),
        Call::post("exclude", "/v1/rooms/{room}/exclusions", exclusions::exclude)
            .says("Keeps a device or a range of addresses out.")
            .signed()
            .body("Exclude")
            .gives(200, "ExcludedUntil")
            .refuses([409, 412]),
        Call::get("list_exclusions", "/v1/rooms/{room}/exclusions", people::exclusions)
            .says("Devices and ranges that are kept out now.")
            .paged()
            .gives(200, "Sanctions"),
        Call::delete(
            "readmit_device",
            "/v1/rooms/{room}/exclusions/device/{device}",
            exclusions::readmit_device,
        )
        .says("Lets a device in again.")
        .signed()
        .gives_nothing()
        .refuses([409, 412]),
        Call::delete(
            "readmit_range",
            "/v1/rooms/{room}/exclusions/range/{range}",
            exclusions::readmit_range,
        )
        .says("Lets a range of addresses in again; its slash stands as %2F.")
        .signed()
        .gives_nothing()
        .refuses([409, 412]),
    ]
}

fn persons() -> Vec<Call> {
    vec![
        Call::post("put_people", "/v1/rooms/{room}/people", standing::put_many)
            .says("Says of many viewers what they are, such as of a list of followers.")
            .signed()
            .body("People")
            .gives_nothing()
            .refuses([409, 412]),
        Call::get("list_people", "/v1/rooms/{room}/people", standing::list)
            .says("Everyone of whom the room says something.")
            .paged()
            .gives(200, "Persons"),
        Call::get("read_person", "/v1/rooms/{room}/people/{viewer}", standing::read)
            .says("What a viewer is in the room.")
            .gives(200, "Person"),
        Call::put("put_person", "/v1/rooms/{room}/people/{viewer}", standing::put)
            .says("Says what a viewer is in the room, whatever the viewer's ticket says.")
            .signed()
            .body("Standing")
            .gives(200, "Person")
            .refuses([409, 412]),
        Call::delete("remove_person", "/v1/rooms/{room}/people/{viewer}", standing::remove)
            .says("Says nothing of a viewer any more.")
            .signed()
            .gives_nothing()
            .refuses([409, 412]),
    ]
}

fn boards() -> Vec<Call> {
    let attribute = "/v1/rooms/{room}/attributes/{name}";
    vec![
        Call::put("put_notice", "/v1/rooms/{room}/notice", board::put_notice)
            .says("Sets the room's notice, which everyone in it is told, now and on entering.")
            .signed()
            .header(Header::IfMatch)
            .body("Notice")
            .gives(200, "Attribute")
            .tagged()
            .refuses([409, 412]),
        Call::delete("clear_notice", "/v1/rooms/{room}/notice", board::clear_notice)
            .says("Removes the room's notice, if there is one.")
            .signed()
            .header(Header::IfMatch)
            .gives_nothing()
            .refuses([409, 412]),
        Call::get("list_attributes", "/v1/rooms/{room}/attributes", board::list)
            .says("The notice, attributes and counters.")
            .paged()
            .gives(200, "Attributes"),
        Call::get("read_attribute", attribute, board::read)
            .says("An attribute or a counter.")
            .gives(200, "Attribute")
            .tagged(),
        Call::put("put_attribute", attribute, board::put)
            .says("Sets an attribute, a text, or a counter, a number.")
            .signed()
            .header(Header::IfMatch)
            .body("PutAttribute")
            .gives(200, "Attribute")
            .tagged()
            .refuses([409, 412]),
        Call::delete("remove_attribute", attribute, board::remove)
            .says("Removes an attribute or a counter, if there is one.")
            .signed()
            .header(Header::IfMatch)
            .gives_nothing()
            .refuses([409, 412]),
        Call::post("add_to_counter", "/v1/rooms/{room}/counters/{name}", board::add)
            .says("Adds to a counter, which begins at 0; a repeated request adds again.")
            .signed()
            .body("Add")
            .gives(200, "Attribute")
            .tagged()
            .refuses([409, 412]),
    ]
}

fn lists() -> Vec<Call> {
    vec![
        Call::get("read_app_words", "/v1/words", words::read_app)
            .says("The app's list of words, which counts in all its rooms.")
            .gives(200, "Words")
            .tagged(),
        Call::put("put_app_words", "/v1/words", words::put_app)
            .says("Replaces the app's list of words.")
            .header(Header::IfMatch)
            .body("PutWords")
            .gives(200, "WordsReplaced")
            .tagged()
            .refuses([409, 412])
            .large(),
        Call::get("read_catalogue", "/v1/catalogue", catalogue::read)
            .says("The app's gift catalogue; version 0 and null if none was set.")
            .gives(200, "Catalogue")
            .tagged(),
        Call::put("put_catalogue", "/v1/catalogue", catalogue::put)
            .says("Replaces the app's gift catalogue, which is published for all its rooms.")
            .header(Header::IfMatch)
            .body("PutCatalogue")
            .gives(200, "CatalogueReplaced")
            .tagged()
            .refuses([412]),
        Call::get("read_room_words", "/v1/rooms/{room}/words", words::read_room)
            .says("The room's own list of words.")
            .gives(200, "Words")
            .tagged(),
        Call::put("put_room_words", "/v1/rooms/{room}/words", words::put_room)
            .says("Replaces the room's own list of words.")
            .signed()
            .header(Header::IfMatch)
            .body("PutWords")
            .gives(200, "WordsReplaced")
            .tagged()
            .refuses([409, 412])
            .large(),
    ]
}

fn records() -> Vec<Call> {
    vec![
        Call::get("read_quota", "/v1/quota", quota::read)
            .says("What the app has, and what it may have and ask.")
            .gives(200, "Quota"),
        Call::get("list_app_records", "/v1/audit", audit::of_app)
            .says("What was done to the app as a whole, the newest first.")
            .paged()
            .gives(200, "Records"),
        Call::get("list_room_records", "/v1/rooms/{room}/audit", audit::of_room)
            .says("What was done in a room, the newest first.")
            .paged()
            .gives(200, "Records"),
        Call::get("export_evidence", "/v1/evidence", evidence::export)
            .says("Comments with senders and verdicts, if this chatserver keeps them; 404 if not.")
            .asks(Query::Evidence)
            .gives(200, "Evidence")
            .refuses([404, 409]),
        Call::delete("erase_evidence", "/v1/evidence/{account}", evidence::erase)
            .says("Removes what an account said up to now from the evidence.")
            .gives(202, "Erased")
            .refuses([404, 409]),
    ]
}
