//! Every metric of the system. The names are promises to dashboards and alarms.

use super::{Kind, Metric};

macro_rules! metrics {
    ($($const:ident = $kind:ident $name:literal [$($label:literal),*] $help:literal;)+) => {
        $(
            #[doc = $help]
            pub const $const: Metric =
                Metric { name: $name, kind: Kind::$kind, labels: &[$($label),*], help: $help };
        )+
        /// The whole list.
        pub const ALL: &[Metric] = &[$($const,)+];
    };
}

metrics! {
    PROCESS_RESIDENT_BYTES = Gauge "process_resident_bytes" [] "Memory in use by the process.";
    PROCESS_TASKS = Gauge "process_tasks" [] "Asynchronous tasks alive.";
    HTTP_CONNECTIONS = Gauge "http_connections" ["service"] "HTTP connections open.";
    HTTP_CONNECTIONS_ENDED_TOTAL = Counter "http_connections_ended_total" ["service", "why"] "HTTP connections that the server ended: full, handshake, silent, protocol; proxy_header for a trusted proxy without a PROXY header that can be read, proxy_untrusted for a PROXY header of somebody else.";

    CHANNEL_CERTIFICATE_END_SECONDS = Gauge "channel_certificate_end_seconds" ["suite"] "When the certificate in use ends, in seconds since 1970: T or G.";
    CHANNEL_CERTIFICATE_RELOADS_TOTAL = Counter "channel_certificate_reloads_total" ["suite", "outcome"] "Certificate files that changed: taken, or refused, and the old certificate stays.";

    AUTH_KEY_ANSWERS_TOTAL = Counter "auth_key_answers_total" ["keys", "outcome"] "Requests for keys of links, of sealed rooms and for masters: ok, or the problem's code.";
    AUTH_EPOCHS_PUBLISHED_TOTAL = Counter "auth_epochs_published_total" [] "Epoch facts that the bus took.";
    AUTH_PUBLISH_FAILURES_TOTAL = Counter "auth_publish_failures_total" [] "Appends to control that the bus did not take, or too late.";
    AUTH_FACTS_REFUSED_TOTAL = Counter "auth_facts_refused_total" [] "Facts on control that are damaged, of another interval, or that change what is published.";
    AUTH_HORIZON_SECONDS = Gauge "auth_horizon_seconds" [] "How long tokens can be minted and verified without another epoch.";
    AUTH_EPOCH_ALG = Gauge "auth_epoch_alg" [] "Token algorithm of the running epoch: 1 HMAC-SHA-256, 2 HMAC-SM3, 3 HMAC-SHA-512/256; 0 unknown.";
    AUTH_LEADS = Gauge "auth_leads" [] "Whether this service draws the epochs: of all auth services, one.";
    AUTH_MASTERS = Gauge "auth_masters" [] "Masters held.";
    AUTH_ROTATIONS_TOTAL = Counter "auth_rotations_total" [] "Masters added on an operator's call.";
    AUTH_OPERATOR_CALLS_TOTAL = Counter "auth_operator_calls_total" ["status"] "Calls of operators, by status.";

    LINK_SESSIONS = Gauge "link_sessions" [] "Sessions logged in.";
    LINK_HANDSHAKES = Gauge "link_handshakes" [] "Connections before login.";
    LINK_TURNED_AWAY_TOTAL = Counter "link_turned_away_total" ["why"] "Connections closed before a frame was read: full, share, address, node, handshake; proxy_header: a trusted proxy named no client; proxies_full: too many of theirs were to name one.";
    LINK_RETRIES_TOTAL = Counter "link_retries_total" [] "QUIC clients that were asked to show first where they are.";
    LINK_LOGINS_TOTAL = Counter "link_logins_total" ["outcome"] "Logins by outcome: ok, or why the credential was refused.";
    LINK_CLOSES_TOTAL = Counter "link_closes_total" ["code"] "Conversations ended by the node, by close code.";
    LINK_FRAMES_TOTAL = Counter "link_frames_total" [] "Frames from clients.";
    LINK_WRITES_TOTAL = Counter "link_writes_total" [] "Writes to sockets.";
    LINK_WRITTEN_BYTES_TOTAL = Counter "link_written_bytes_total" [] "Bytes written to sockets, before encryption.";
    LINK_SAVED_BYTES_TOTAL = Counter "link_saved_bytes_total" [] "Bytes that compression took off what was written, summed over sessions.";
    LINK_SKIPPED_ITEMS_TOTAL = Counter "link_skipped_items_total" [] "Items left out for sessions that read too slowly.";
    LINK_OUTBOX_BYTES = Gauge "link_outbox_bytes" [] "Bytes handed to sessions and not yet written.";
    LINK_RING_BYTES = Gauge "link_ring_bytes" [] "Bytes of recent frames kept for all rooms, in one framing.";
    LINK_FLUSHES_TOTAL = Counter "link_flushes_total" [] "Flushes taken in from the bus.";
    LINK_BUSY_ACTS_TOTAL = Counter "link_busy_acts_total" [] "Acts that the bus did not take.";
    LINK_DROPPED_COMMENTS_TOTAL = Counter "link_dropped_comments_total" ["reason"] "Comments answered by the node itself, by reason.";
    LINK_CAPPED_COMMENTS_TOTAL = Counter "link_capped_comments_total" [] "Comments of those answered room_busy that were more than this node alone passes on of a room, whatever share all are told.";
    LINK_LEAVES_WAITING = Gauge "link_leaves_waiting" [] "Leaves not yet told to chatservers.";
    LINK_LEAVES_UNTOLD_TOTAL = Counter "link_leaves_untold_total" [] "Leaves given up because too many waited.";
    LINK_KEYS_HORIZON_SECONDS = Gauge "link_keys_horizon_seconds" [] "How long logins survive without the auth service.";
    LINK_ROOM_KEY_FETCHES_TOTAL = Counter "link_room_key_fetches_total" ["outcome"] "Fetches of sealed rooms' keys from the auth service: ok, failed.";
    LINK_KEY_FETCHES_TOTAL = Counter "link_key_fetches_total" ["outcome"] "Fetches of keys from the auth service: ok, failed.";
    LINK_CONTROL_AGE_MILLISECONDS = Gauge "link_control_age_milliseconds" [] "How old the node's knowledge of control is; nobody is let in beyond control_ms_max.";
    LINK_POLICY_REFUSALS_TOTAL = Counter "link_policy_refusals_total" [] "Joins refused because a room's policy does not let this kind of account in.";
    LINK_UNKEPT_USES_TOTAL = Counter "link_unkept_uses_total" [] "Used single-use tokens that could not be kept on disk: after a restart they could be used again.";
    LINK_CONTROL_LOSSES_TOTAL = Counter "link_control_losses_total" [] "Times that the bus had lost what it held of control, which was then read again from its beginning.";
    LINK_FACTS_IGNORED = Gauge "link_facts_ignored" [] "Facts about roles and attributes that were ignored since the start because too many rooms have some.";
    LINK_ROOMS_REFUSED = Gauge "link_rooms_refused" [] "Facts about open rooms that were not taken in since the start because rooms_max are known: their viewers get no_room here.";
    LINK_BESIEGED = Gauge "link_besieged" [] "Whether the node counts as attacked: it gets no new viewers, and its sessions move.";
    LINK_LOAD_REPORTS_TOTAL = Counter "link_load_reports_total" [] "Load reports sent, each to every collector.";
    LINK_LOST_RECORDS_TOTAL = Counter "link_lost_records_total" ["topic"] "Records that left the bus before the node read them.";
    LINK_DAMAGED_RECORDS_TOTAL = Counter "link_damaged_records_total" [] "Records from the bus that could not be decoded.";
    LINK_VIEWER_FETCHES_TOTAL = Counter "link_viewer_fetches_total" ["outcome"] "Segments that viewers report: fetched, failed, missed.";
    LINK_BASE_VOTES_TOTAL = Counter "link_base_votes_total" ["vote"] "What viewers' reports say of segment bases: good, bad; unknown: nobody hands out such a base, or it was called well without a fetch.";
    LINK_JOINS_TOTAL = Counter "link_joins_total" ["outcome"] "Joins into rooms: in, or why not: room_limited and node_limited for their rates, crowded for too many people, too_many_rooms of one session, no_guests, policy, banned, no_room.";
    LINK_ENTRY_TURNS_TOTAL = Counter "link_entry_turns_total" ["outcome"] "Times that the node told the others what is wanted in rooms: ok; away, and it keeps to its part of the limits.";
    LINK_ENTRY_NODES = Gauge "link_entry_nodes" [] "Link nodes that share the limits of rooms, as far as this one knows.";
    LINK_OWED_JOINS_TOTAL = Counter "link_owed_joins_total" [] "Joins let in that the room's bucket did not have; the node lets so many fewer in afterwards.";
    LINK_TLS_FAULTS_TOTAL = Counter "link_tls_faults_total" ["fault"] "Lean TLS sessions that ended for what came over them: cut without a goodbye, alert of the client, or what was refused: seal, length, message, form, value, quiet, changes.";
    LINK_DRAINED_SESSIONS_TOTAL = Counter "link_drained_sessions_total" ["to"] "Sessions sent away because the node drained: to addresses, which a gslb named; or to enter.";
    STACK_WORKERS = Gauge "stack_workers" [] "Worker processes of a link that are ready.";
    STACK_WORKER_ENDS_TOTAL = Counter "stack_worker_ends_total" ["why"] "Worker processes that ended: told, for a rolling restart; failed; hung, and killed. The last two are started again.";
    LINK_WORKER_REPORTS_TOTAL = Counter "link_worker_reports_total" ["outcome"] "Load reports of workers: heard; refused, since they are no newer ones of a worker of this node.";

    GSLB_ANSWERS_TOTAL = Counter "gslb_answers_total" ["outcome", "by", "carrier"] "Answers: assigned, renewed; or read-only because the fleet is full, none_live, no_transport. By what let the viewer in: ticket, or none in a room that is open, or for a guest. And by the carrier on whose network the viewer is; none where one is renewed.";
    GSLB_REFUSALS_TOTAL = Counter "gslb_refusals_total" ["reason"] "Questions refused, by the problem's code.";
    GSLB_DATAGRAMS_TOTAL = Counter "gslb_datagrams_total" ["outcome"] "Load reports: joined, renewed, lost on their way, or why refused.";
    GSLB_NODES = Gauge "gslb_nodes" ["state"] "Link nodes: live under lease, and taking viewers.";
    GSLB_SNAPSHOT_AGE_SECONDS = Histogram "gslb_snapshot_age_seconds" [] "Age of a snapshot when the next one replaced it.";
    GSLB_TABLE_FAILURES_TOTAL = Counter "gslb_table_failures_total" ["operation"] "Load table calls that failed or came too late: get, put, decode.";
    GSLB_TABLE_SILENCE_MILLISECONDS = Gauge "gslb_table_silence_milliseconds" [] "How long no value of the load table has been new; beyond fresh_ms_max loads are believed less and less.";
    GSLB_LEADS = Gauge "gslb_leads" [] "Whether this process does what one gslb does for all: of all that collect, one.";
    GSLB_MOVES_TOTAL = Counter "gslb_moves_total" ["outcome"] "Nodes, besieged or draining, whose sessions were to move: told, failed, or nowhere, where no other node of the unit has room for any.";
    GSLB_UNMOVED_SESSIONS = Gauge "gslb_unmoved_sessions" [] "Sessions of besieged nodes that stay because no reserve has room, by the last plan of each node; 0 where another gslb leads.";
    GSLB_MASTERS_FETCHES_TOTAL = Counter "gslb_masters_fetches_total" ["outcome"] "Fetches of the master keys: ok, failed; and unsaved, where the copy on disk was not written.";
    GSLB_KEYS_HORIZON_SECONDS = Gauge "gslb_keys_horizon_seconds" [] "How long tokens can be minted without another epoch.";
    GSLB_CONTROL_AGE_SECONDS = Gauge "gslb_control_age_seconds" [] "How long ago everything on control was known; beyond half of token_ttl_s + skew_s nobody enters.";
    GSLB_JWKS_CHANGES_TOTAL = Counter "gslb_jwks_changes_total" ["outcome"] "Files of ticket keys that changed: taken, refused.";
    GSLB_PLACE_LOADS_TOTAL = Counter "gslb_place_loads_total" ["outcome"] "Tables made of the files of addresses: taken; and files refused, where the table from before stays.";
    GSLB_PLACE_RANGES = Gauge "gslb_place_ranges" ["family"] "Ranges of addresses that are told apart: ipv4, ipv6.";
    GSLB_FACTS_REFUSED_TOTAL = Counter "gslb_facts_refused_total" ["kind"] "Facts on control that were not taken: malformed, epoch, skipped; lost: times that the bus came back without what had been read.";
    GSLB_BASE_VOTES_TOTAL = Counter "gslb_base_votes_total" ["vote"] "Viewers' votes on segment bases, as links sum them up: good, bad; unknown: no such base here.";
    GSLB_BASE_PERCENT = Gauge "gslb_base_percent" ["base"] "Share of its weight that a segment base gets: 100 when it is well, 1 when it is drained, 0 when it is gone.";
    GSLB_BASE_MOVES_TOTAL = Counter "gslb_base_moves_total" ["base", "why"] "Changes of that share: reports, store, least_bad, well, quiet, trial, announced, silent.";

    CHATSERVER_COMMENTS_TOTAL = Counter "chatserver_comments_total" ["verdict"] "Verdicts told to senders: admit, shadow, or the reason of the refusal.";
    CHATSERVER_ACTS_TOTAL = Counter "chatserver_acts_total" ["act"] "Other acts of viewers: join, leave, like.";
    CHATSERVER_FATES_TOLD_TOTAL = Counter "chatserver_fates_told_total" ["fate"] "Admitted comments whose senders were told that they were merged or shed.";
    CHATSERVER_UPLINK_AGE_SECONDS = Histogram "chatserver_uplink_age_seconds" [] "Age of uplink records when they are judged.";
    CHATSERVER_TURN_SECONDS = Histogram "chatserver_turn_seconds" [] "Time from taking uplink records to their results being on the bus.";
    CHATSERVER_RECORDS_DAMAGED_TOTAL = Counter "chatserver_records_damaged_total" [] "Bus records that could not be decoded and were passed over.";
    CHATSERVER_RECORDS_SKIPPED_TOTAL = Counter "chatserver_records_skipped_total" [] "Bus records that were gone before they were read.";
    CHATSERVER_BUS_AWAY_TOTAL = Counter "chatserver_bus_away_total" [] "Publishes that the bus did not answer in time.";
    CHATSERVER_ROOMS = Gauge "chatserver_rooms" [] "Rooms known.";
    CHATSERVER_ITEMS_ASKED = Gauge "chatserver_items_asked" [] "Admitted comments whose fate is not known yet.";
    CHATSERVER_COMMENTS_HELD = Gauge "chatserver_comments_held" [] "Comments that rooms hold back before they are shown.";
    CHATSERVER_FACTS_IGNORED = Gauge "chatserver_facts_ignored" [] "Facts ignored since the start because too many rooms are known.";
    CHATSERVER_FACTS_UNTOLD_TOTAL = Counter "chatserver_facts_untold_total" [] "Facts that the bus did not take when everyone was to be told; they are told again.";
    CHATSERVER_GIFTS_TOTAL = Counter "chatserver_gifts_total" ["lane", "outcome"] "Items that business servers asked for: accepted, repeated, reused (key with other content), over_share.";
    CHATSERVER_JOURNAL_OPEN_ENTRIES = Gauge "chatserver_journal_open_entries" [] "Acknowledged gifts and notices not known to be shown, in the partitions this process keeps.";
    CHATSERVER_JOURNAL_REPUBLISHED_TOTAL = Counter "chatserver_journal_republished_total" [] "Open journal entries published again.";
    CHATSERVER_JOURNAL_CLOSED_TOTAL = Counter "chatserver_journal_closed_total" [] "Journal entries closed.";
    CHATSERVER_FLOW_TURNS_TOTAL = Counter "chatserver_flow_turns_total" ["outcome"] "Turns of sharing what rooms may show with the other chatservers: ok, or away (this one keeps to its own part).";
    CHATSERVER_FLOW_NODES = Gauge "chatserver_flow_nodes" [] "Chatservers that share what rooms may show, as far as is known.";
    CHATSERVER_ROOMS_SAMPLED = Gauge "chatserver_rooms_sampled" [] "Rooms of whose comments links pass on a share only.";
    CHATSERVER_KEEPS_TOLD_TOTAL = Counter "chatserver_keeps_told_total" [] "Changes of the share of a room's comments that links pass on, told by this process.";
    CHATSERVER_REVIEWS_TOTAL = Counter "chatserver_reviews_total" ["outcome"] "Comments that a review hook was to be asked about: allow, refuse, shadow, mask; no answer that counts: forbidden, unreachable, deadline, redirect, status, too_large, answer; not asked: no_hook, full, shut.";
    CHATSERVER_REVIEW_SECONDS = Histogram "chatserver_review_seconds" [] "Time that review hooks took, answered or not.";
    CHATSERVER_REVIEWS_WAITING = Gauge "chatserver_reviews_waiting" [] "Comments that wait for a review hook.";
    CHATSERVER_REVIEW_HOOKS_SHUT = Gauge "chatserver_review_hooks_shut" [] "Review hooks that are not asked for a while because they failed.";
    CHATSERVER_EVIDENCE_RECORDS_TOTAL = Counter "chatserver_evidence_records_total" [] "Records that the evidence ledger took: comments, what became of them later, exports, erasures.";
    CHATSERVER_EVIDENCE_LOST_TOTAL = Counter "chatserver_evidence_lost_total" ["why"] "Records that are not in the evidence ledger: queue (the disk is too slow), disk (it said no).";
    CHATSERVER_EVIDENCE_WAITING = Gauge "chatserver_evidence_waiting" [] "Records that wait for the disk.";
    CHATSERVER_EVIDENCE_BYTES = Gauge "chatserver_evidence_bytes" [] "Bytes of the evidence ledger's files.";
    CHATSERVER_EVIDENCE_FILES_REMOVED_TOTAL = Counter "chatserver_evidence_files_removed_total" ["why"] "Files of the evidence ledger that were removed: over (their time), full (before their time, because bytes_max is reached).";
    CHATSERVER_EVIDENCE_DAMAGED_BYTES_TOTAL = Counter "chatserver_evidence_damaged_bytes_total" [] "Bytes of rewritten files of the evidence ledger in which no record could be read.";
    CHATSERVER_EVIDENCE_ERASED_TOTAL = Counter "chatserver_evidence_erased_total" [] "Records removed with their accounts.";
    CHATSERVER_EVENTS_TOTAL = Counter "chatserver_events_total" ["outcome"] "Events for business servers: told; lost: rate (viewers did more than may be told), queue and full (too many waited), old (nobody took them for too long), end (the process ended).";
    CHATSERVER_EVENT_CALLS_TOTAL = Counter "chatserver_event_calls_total" ["outcome"] "Batches of events posted: ok, forbidden, unreachable, deadline, redirect, status, too_large.";
    CHATSERVER_DEVICES_CLOSED_TOTAL = Counter "chatserver_devices_closed_total" [] "Sessions told to end because their viewer came in with another device.";
    CHATSERVER_DEVICES_FAILED_TOTAL = Counter "chatserver_devices_failed_total" [] "Viewers whose joins and leaves in single-device rooms the room store did not take.";
    CHATSERVER_SWEPT_COMMENTS_TOTAL = Counter "chatserver_swept_comments_total" ["outcome"] "Comments of the last ten minutes looked at again because a list of words changed: kept, recalled, recalled_before (by somebody else), left (the room is closed, or too many at once).";
    CHATSERVER_SWEEP_BYTES = Gauge "chatserver_sweep_bytes" [] "Bytes of comments kept to be looked at again.";
    CHATSERVER_SWEEP_FORGOTTEN_TOTAL = Counter "chatserver_sweep_forgotten_total" [] "Comments forgotten before ten minutes were over, because sweep_bytes_max is reached.";
    CHATSERVER_REQUESTS_TOTAL = Counter "chatserver_requests_total" ["status"] "Requests of the business API, by status.";
    CHATSERVER_REQUESTS_LIMITED_TOTAL = Counter "chatserver_requests_limited_total" [] "Requests of the business API refused because their app asks too often.";

    BROADCASTER_ROOMS = Gauge "broadcaster_rooms" [] "Rooms driven by this process.";
    BROADCASTER_ITEMS_TOTAL = Counter "broadcaster_items_total" ["lane", "fate"] "Items by lane and fate: sealed, merged, told_again, deferred, or the reason why shed.";
    BROADCASTER_TICK_LATE_SECONDS = Histogram "broadcaster_tick_late_seconds" [] "How late a partition's rooms had their turn, from when the first of them was due.";
    BROADCASTER_FLUSHES_TOTAL = Counter "broadcaster_flushes_total" [] "Flushes with items.";
    BROADCASTER_SEALS_TOTAL = Counter "broadcaster_seals_total" [] "Slots sealed, empty ones included.";
    BROADCASTER_SEGMENT_BYTES_TOTAL = Counter "broadcaster_segment_bytes_total" ["tier"] "Compressed bytes of binary segments.";
    BROADCASTER_STORE_ERRORS_TOTAL = Counter "broadcaster_store_errors_total" ["store", "call"] "Calls to a store that failed or came too late, by the store's number: create, replace, get, remove; queue_full, erasure_lost.";
    BROADCASTER_PURGES_TOTAL = Counter "broadcaster_purges_total" ["outcome"] "Files of erased items that caches were told to forget: done, refused, away, queue_full.";
    BROADCASTER_STORES_REFUSING = Gauge "broadcaster_stores_refusing" [] "Stores whose newest write failed; slots are served from memory while all do.";
    BROADCASTER_KEY_FETCHES_TOTAL = Counter "broadcaster_key_fetches_total" ["outcome"] "Fetches of sealed rooms' keys: ok, failed.";
    BROADCASTER_KEYLESS_SLOTS = Gauge "broadcaster_keyless_slots" [] "Slots of sealed rooms that wait for a key.";
    BROADCASTER_KEYLESS_SLOTS_LOST_TOTAL = Counter "broadcaster_keyless_slots_lost_total" [] "Slots of sealed rooms that were pushed and written nowhere, since their key did not come.";
    BROADCASTER_UNOPENED_FILES_TOTAL = Counter "broadcaster_unopened_files_total" [] "Sealed files that did not open when a room was taken over: their items may be shown again.";
    BROADCASTER_PUBLISH_ERRORS_TOTAL = Counter "broadcaster_publish_errors_total" ["topic", "why"] "Records that the bus did not take at once, or a unit not at all.";
    BROADCASTER_RECORDS_SKIPPED_TOTAL = Counter "broadcaster_records_skipped_total" ["topic"] "Records that could not be decoded, were gone before they were read, or were too many.";
    BROADCASTER_HELD_REQUESTS = Gauge "broadcaster_held_requests" [] "Requests that wait for the next slot.";
    BROADCASTER_LIVE_VIEWERS = Gauge "broadcaster_live_viewers" [] "Viewers that read a room as an FLV stream.";
    BROADCASTER_LIVE_LAGGED_TOTAL = Counter "broadcaster_live_lagged_total" [] "FLV viewers that were let go since they read too slowly.";
    BROADCASTER_PUSHES_UP = Gauge "broadcaster_pushes_up" ["push"] "1 while a push, by its number in the configuration, is taken; 0 while it is away, or its room is another's.";
    BROADCASTER_PUSH_CONNECTIONS_TOTAL = Counter "broadcaster_push_connections_total" ["push", "outcome"] "Connections of a push that were taken, and why others were not or ended: unreachable, refused, late, unclear, lost.";
    BROADCASTER_PUSH_FRAMES_TOTAL = Counter "broadcaster_push_frames_total" ["push"] "Frames that a push sent.";
    BROADCASTER_PUSH_LOST_MOMENTS_TOTAL = Counter "broadcaster_push_lost_moments_total" ["push"] "Flushes and ends of slots that a push gave up while it was away or slow.";
    BROADCASTER_ARCHIVE_SLOTS_TOTAL = Counter "broadcaster_archive_slots_total" ["outcome"] "Slots of recorded rooms: recorded, or lost since no store had them any more.";
    BROADCASTER_ARCHIVE_ERRORS_TOTAL = Counter "broadcaster_archive_errors_total" ["call"] "What the archive could not do and tries again: read, write, sync, erase, publish, remove.";
    BROADCASTER_ORIGIN_ANSWERS_TOTAL = Counter "broadcaster_origin_answers_total" ["status"] "Answers of the origin, by status.";
}
