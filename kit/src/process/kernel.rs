//! What the kernel holds for connections: the slab objects of sockets, files and their watchers,
//! and the pages of their queues.
//!
//! Both ends of a connection over loopback are in this kernel, and cost the same: half of what it
//! grows by is one end's. Its own bookkeeping of the process, such as page tables, is not counted.

use std::fs;

use anyhow::Context;

/// Slab caches that sockets, their files and what watches them take objects of. Directory entries
/// are in one of them, so a compiler that runs meanwhile shows.
const CACHES: [&str; 9] = [
    "TCP",
    "UDP",
    "sock_inode_cache",
    "filp",
    "dentry",
    "eventpoll_epi",
    "eventpoll_pwq",
    "ep_head",
    "lsm_file_cache",
];
const PAGE_BYTES: u64 = 4096;

/// Bytes of all connections of this machine; `None` where the kernel does not tell, as it tells
/// only root.
///
/// # Errors
/// When there is no `/proc/net/sockstat`.
pub fn bytes() -> anyhow::Result<Option<u64>> {
    let Ok(slabs) = fs::read_to_string("/proc/slabinfo") else {
        return Ok(None);
    };
    let sockets = fs::read_to_string("/proc/net/sockstat").context("no sockstat in /proc")?;
    Ok(Some(objects(&slabs) + queues(&sockets)))
}

/// Objects in use, times their size.
fn objects(slabs: &str) -> u64 {
    let of_line = |line: &str| {
        let mut words = line.split_whitespace();
        let cache = words.next()?;
        let mut number = || words.next()?.parse::<u64>().ok();
        let (in_use, _, bytes) = (number()?, number()?, number()?);
        CACHES.contains(&cache).then_some(in_use * bytes)
    };
    slabs.lines().filter_map(of_line).sum()
}

/// `mem` of TCP and UDP is in pages.
fn queues(sockets: &str) -> u64 {
    let of_line = |line: &str| {
        let (kind, counts) = line.split_once(": ")?;
        let mem = counts.split_once("mem ")?.1.split(' ').next()?.parse::<u64>().ok()?;
        ["TCP", "UDP"].contains(&kind).then_some(mem * PAGE_BYTES)
    };
    sockets.lines().filter_map(of_line).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_of_sockets_count() {
        let slabs = "slabinfo - version: 2.1\n\
            # name            <active_objs> <num_objs> <objsize>\n\
            bio-312               12     12    320   12    1 : tunables    0    0    0\n\
            TCP                    3     13   2368   13    8 : tunables    0    0    0\n\
            filp                  10     42    192   21    1 : tunables    0    0    0\n";

        assert_eq!(objects(slabs), 3 * 2368 + 10 * 192);
    }

    #[test]
    fn pages_of_queues_count() {
        let sockets = "sockets: used 280\nTCP: inuse 238 orphan 0 tw 1718 alloc 238 mem 2\n\
            UDP: inuse 3 mem 16\nUDPLITE: inuse 0\nFRAG: inuse 0 memory 7\n";

        assert_eq!(queues(sockets), 18 * 4096);
    }
}
