//! A segment without an item: what is written in its place when the law wants it gone.

use proto::decode::DecodeError;
use proto::id::ItemId;
use proto::segment::Segment;

use crate::pack::expand;

/// Takes an item out of a segment; whether it stood there, as itself or repeated.
pub fn take_out(segment: &mut Segment, id: ItemId) -> bool {
    let before = segment.items.len() + segment.repeats.len();
    segment.items.retain(|it| it.item.id != id);
    segment.repeats.retain(|it| it.placed.item.id != id);
    segment.items.len() + segment.repeats.len() < before
}

/// A segment without these items; `None` if none is in there. `bin` is what [`Packed::bin`] holds.
///
/// [`Packed::bin`]: crate::Packed::bin
///
/// # Errors
/// When these bytes are no segment's.
pub fn rewrite(bin: &[u8], ids: &[ItemId]) -> Result<Option<Segment>, DecodeError> {
    let mut segment = Segment::decode(&expand(bin)?)?;
    let mut is_changed = false;
    for &id in ids {
        is_changed |= take_out(&mut segment, id);
    }
    Ok(is_changed.then_some(segment))
}

#[cfg(test)]
mod tests {
    use proto::id::Gen;
    use proto::item::{Lane, Repeat};

    use super::*;
    use crate::pack::tests::{header, placed};
    use crate::{Packed, Packing};

    #[test]
    fn an_item_is_taken_out_of_a_segment_and_of_its_repeats() {
        let placed = |seq| placed(seq, Lane::HighGift);
        let repeats = vec![Repeat { gen_no: Gen(1), placed: placed(1) }];
        let segment = Segment { header: header(), items: vec![placed(2), placed(3)], repeats };
        let packed = Packed::of(&segment, &Packing::default());

        let without = rewrite(&packed.bin, &[ItemId(1002)]).unwrap().unwrap();
        let without_both = rewrite(&packed.bin, &[ItemId(1002), ItemId(1001)]).unwrap().unwrap();

        assert_eq!(without, Segment { items: vec![placed(3)], ..segment.clone() });
        let left = Segment { items: vec![placed(3)], repeats: Vec::new(), ..segment };
        assert_eq!(without_both, left);
        assert_eq!(rewrite(&packed.bin, &[ItemId(4)]).unwrap(), None);
        assert!(rewrite(b"no segment", &[ItemId(4)]).is_err());
    }
}
