//! Many short lists of numbers in two flat arrays.

/// Lists by number.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    starts: Box<[u32]>,
    items: Box<[u32]>,
}

impl Lists {
    /// So many lists; each pair is (list, item), and a list keeps the order of its pairs.
    pub(super) fn of(lists: usize, pairs: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
        let mut starts = vec![0; lists + 1];
        for (list, _) in pairs.clone() {
            starts[list as usize + 1] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut items = vec![0; pairs.clone().count()];
        let mut next = starts.clone();
        for (list, item) in pairs {
            let place = &mut next[list as usize];
            items[*place as usize] = item;
            *place += 1;
        }
        Self { starts: starts.into(), items: items.into() }
    }

    /// The items of a list.
    pub(crate) fn list(&self, list: u32) -> &[u32] {
        let at = list as usize;
        &self.items[self.starts[at] as usize..self.starts[at + 1] as usize]
    }
}
