//! The same items as others would put them into a file.

use proto::item::{Body, Mode, Placed, Size};

/// Bilibili's `DmSegMobileReply`: one `DanmakuElem` an item, with the fields that its web client
/// gets.
pub(super) fn protobuf(items: &[Placed]) -> Vec<u8> {
    let mut file = Vec::new();
    for placed in items {
        let elem = elem(placed);
        key(&mut file, 1, 2);
        varint(&mut file, elem.len() as u64);
        file.extend_from_slice(&elem);
    }
    file
}

/// Rows of fixed width with the text behind, as structures are written as they are.
pub(super) fn rows(items: &[Placed]) -> Vec<u8> {
    let mut file = Vec::new();
    for Placed { seq, item } in items {
        let (text, color) = content(&item.body);
        file.extend_from_slice(&item.id.0.to_le_bytes());
        file.extend_from_slice(&seq.0.to_le_bytes());
        file.extend_from_slice(&item.sender.0.to_le_bytes());
        file.extend_from_slice(&item.at.0.to_le_bytes());
        file.extend_from_slice(&color.to_le_bytes());
        file.extend_from_slice(&[item.lane as u8, item.role as u8]);
        file.extend_from_slice(&u16::try_from(text.len()).unwrap_or(u16::MAX).to_le_bytes());
        file.extend_from_slice(text.as_bytes());
    }
    file
}

fn elem(Placed { item, .. }: &Placed) -> Vec<u8> {
    let (text, color) = content(&item.body);
    let (mode, size) = look(&item.body);
    let mut elem = Vec::new();
    for (field, number) in
        [(1, item.id.0), (2, item.at.0 % 86_400_000), (3, mode), (4, size), (5, u64::from(color))]
    {
        key(&mut elem, field, 0);
        varint(&mut elem, number);
    }
    bytes(&mut elem, 6, format!("{:08x}", item.sender.0 & 0xFFFF_FFFF).as_bytes());
    bytes(&mut elem, 7, text.as_bytes());
    key(&mut elem, 8, 0);
    varint(&mut elem, item.at.0 / 1000);
    bytes(&mut elem, 12, item.id.0.to_string().as_bytes());
    elem
}

fn content(body: &Body) -> (&str, u32) {
    let color = if let Body::Comment { style, .. } = body { style.color } else { 0 };
    (body.text().unwrap_or_default(), color)
}

/// Bilibili's numbers for where a comment goes and how large it is.
fn look(body: &Body) -> (u64, u64) {
    let Body::Comment { style, .. } = body else {
        return (1, 25);
    };
    let mode = match style.mode {
        Mode::Scroll => 1,
        Mode::Bottom => 4,
        Mode::Top => 5,
        Mode::Reverse => 6,
    };
    let size = match style.size {
        Size::Small => 18,
        Size::Normal => 25,
        Size::Large => 36,
    };
    (mode, size)
}

fn bytes(to: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    key(to, field, 2);
    varint(to, bytes.len() as u64);
    to.extend_from_slice(bytes);
}

fn key(to: &mut Vec<u8>, field: u64, wire: u64) {
    varint(to, field << 3 | wire);
}

fn varint(to: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        to.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    to.push(number.to_le_bytes()[0]);
}
