//! What a room tells everyone in it.

use crate::attribute::{ATTRIBUTES_MAX, Attribute, Value};
use crate::codec::{Builder, refused, word};
use crate::decode::DecodeError;
use crate::frame::Control;
use crate::generated::{self as fb, ValueKind};
use crate::id::{AttributeName, RoomId};

pub(super) fn write(
    b: &mut Builder,
    room: &RoomId,
    attributes: &[Attribute],
) -> fb::AttributesChangeArgs<'static> {
    let room = Some(b.create_string(room.as_str()));
    let mut offsets = Vec::with_capacity(attributes.len());
    for Attribute { name, version, value } in attributes {
        let name = Some(b.create_string(name.as_str()));
        let args = fb::AttributeArgs { name, version: *version, ..Default::default() };
        let args = match value {
            None => args,
            Some(Value::Count(count)) => {
                fb::AttributeArgs { kind: ValueKind::Count, count: *count, ..args }
            }
            Some(Value::Text(text)) => {
                let text = Some(b.create_string(text));
                fb::AttributeArgs { kind: ValueKind::Text, text, ..args }
            }
        };
        offsets.push(fb::Attribute::create(b, &args));
    }
    fb::AttributesChangeArgs { room, attributes: Some(b.create_vector(&offsets)) }
}

pub(super) fn read(it: fb::AttributesChange<'_>) -> Result<Control, DecodeError> {
    // The notice stands beside the attributes.
    if it.attributes().map_or(0, |it| it.len()) > ATTRIBUTES_MAX + 1 {
        return refused("attributes");
    }
    let attributes = it.attributes().into_iter().flatten().map(attribute);
    Ok(Control::Attributes {
        room: word::room(it.room())?,
        attributes: attributes.collect::<Result<_, _>>()?,
    })
}

fn attribute(it: fb::Attribute<'_>) -> Result<Attribute, DecodeError> {
    let name = AttributeName::parse(it.name()).or_else(|_| refused("name"))?;
    let value = match it.kind() {
        ValueKind::Nothing => None,
        ValueKind::Count => Some(Value::Count(it.count())),
        ValueKind::Text => Some(Value::Text(it.text().unwrap_or_default().to_owned())),
        _ => return refused("kind"),
    };
    let attribute = Attribute { name, version: it.version(), value };
    if attribute.fits() { Ok(attribute) } else { refused("value") }
}
