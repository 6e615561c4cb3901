//! A busy room with everything on, in virtual time.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use chatserver_core::judge::Now;
use chatserver_core::ledger;
use chatserver_core::said::VERDICTS_MAX;
use chatserver_core::sender::SenderSecret;
use chatserver_core::shard::{Input, Limits, Output, Shard};
use chatserver_core::words::Words;
use proto::control::{Action, Fact, RoomFact, RoomSettings};
use proto::envelope::{Act, Reply, RoomEntry, RoomEvent, UplinkEntry};
use proto::frame::Outcome;
use proto::id::{AppId, Cid, ItemId, NodeId, RoomId, SessionId, ViewerId};
use proto::item::{Role, Style};
use proto::time::{Mono, Wall};
use proto::verdict::{Fate, Reason, Verdict};

use super::evidence;
use super::texts::Texts;
use crate::cpu;

/// Comments of one turn.
pub(super) const TURN_COMMENTS: usize = 1_000;
/// Time of one turn: 10,000 comments a second.
const TURN_MS: u64 = 100;
/// Who sends them: each of them every second.
const VIEWERS: usize = 10_000;
/// Turns after which as much is remembered of every viewer as ever will be.
const WARM_TURNS: usize = (VERDICTS_MAX + 1) * VIEWERS / TURN_COMMENTS;
const START: Wall = Wall(1_800_000_000_000);
const APP: AppId = AppId(1);

pub(super) struct Scene {
    pub(super) words: Arc<Words>,
    texts: Vec<String>,
    viewers: Vec<ViewerId>,
    room: RoomId,
    shard: Shard,
    now: Now,
    said: usize,
    judged: usize,
    admitted: usize,
    published: Vec<ItemId>,
}

impl Scene {
    pub(super) fn new(texts: &Texts) -> anyhow::Result<Self> {
        let words = Arc::new(Words::compile(&texts.words)?);
        let room = RoomId::parse("concert")?;
        let now = Now { mono: Mono(1_000_000), wall: START };
        let (senders_max, asked_max) = (2 * VIEWERS, 200_000);
        let limits = Limits { shard: 1, rooms_max: 10, senders_max, asked_max, nodes_min: 1 };
        let mut shard = Shard::new(limits, SenderSecret::new([7; 32]), START);
        let settings = RoomSettings {
            repeat_ms: 10_000,
            echo_max: 100_000,
            links: Action::Refuse,
            contacts: Action::Refuse,
            // Nobody is refused for want of room: a refusal costs less.
            items_per_s: u32::MAX,
            ..RoomSettings::default()
        };
        let fact = RoomFact { app: APP, room: room.clone(), version: 1, open: true, settings };
        shard.handle(Input::Fact(Fact::Room(fact)), now);
        let list = Some(Arc::clone(&words));
        shard.handle(Input::Words { app: APP, room: None, words: list }, now);
        let viewers = (0..VIEWERS).map(|it| ViewerId::parse(&format!("viewer-{it}")));
        let viewers = viewers.collect::<Result<_, _>>()?;
        let texts = texts.all.clone();
        let (said, judged, admitted, published) = (0, 0, 0, Vec::new());
        let mut scene =
            Self { words, texts, viewers, room, shard, now, said, judged, admitted, published };
        scene.play(WARM_TURNS)?;
        (scene.judged, scene.admitted) = (0, 0);
        Ok(scene)
    }

    /// Plays turns: how many comments are judged in a second of this core, and how many with all
    /// that follows.
    pub(super) fn play(&mut self, turns: usize) -> anyhow::Result<(f64, f64)> {
        let (mut judging, mut answering) = (0.0, 0.0);
        for _ in 0..turns {
            let comments = self.comments();
            let start = cpu::thread();
            comments.into_iter().for_each(|it| self.judge(it));
            let judged = cpu::thread();
            self.answer(|_, _| {})?;
            answering += (cpu::thread() - judged).as_secs_f64();
            judging += (judged - start).as_secs_f64();
        }
        let comments = (turns * TURN_COMMENTS) as f64;
        Ok((comments / judging, comments / (judging + answering)))
    }

    /// Plays turns of which everything is put down: how many comments a second of this core, with
    /// all that follows.
    pub(super) fn play_witnessed(&mut self, turns: usize) -> anyhow::Result<f64> {
        let mut spent = Duration::ZERO;
        for _ in 0..turns {
            let comments = self.comments();
            let start = cpu::thread();
            let mut turn = evidence::Turn::hear(&comments, self.now.wall);
            comments.into_iter().for_each(|it| self.judge(it));
            self.answer(|comment, outcome| turn.tell(comment, outcome))?;
            black_box(turn.pack());
            spent += cpu::thread() - start;
        }
        Ok((turns * TURN_COMMENTS) as f64 / spent.as_secs_f64())
    }

    /// What comes next from the link.
    pub(super) fn comments(&mut self) -> Vec<Input> {
        self.now.mono.0 += TURN_MS;
        self.now.wall.0 += TURN_MS;
        self.shard.tick(self.now);
        (0..TURN_COMMENTS).map(|_| self.comment()).collect()
    }

    fn comment(&mut self) -> Input {
        let (viewer, cid) = (self.said % VIEWERS, self.said / VIEWERS);
        let text = self.texts[self.said % self.texts.len()].clone();
        self.said += 1;
        let entry = UplinkEntry {
            session: SessionId(viewer as u64),
            app: APP,
            room: self.room.clone(),
            viewer: self.viewers[viewer].clone(),
            role: Role::Viewer,
            may_send: true,
            at: self.now.wall,
            origin: None,
            act: Act::Comment {
                cid: Cid(cid as u64),
                text,
                style: Style::default(),
                media_ms: None,
            },
        };
        Input::Uplink { node: NodeId(1), entry }
    }

    pub(super) fn judge(&mut self, comment: Input) {
        self.shard.handle(comment, self.now);
    }

    /// Everything that follows: the bus takes what was admitted, and each sender has an answer,
    /// which `told` hears.
    pub(super) fn answer(
        &mut self,
        mut told: impl FnMut(ledger::Comment, Outcome),
    ) -> anyhow::Result<()> {
        let mut answered = 0;
        while let Some(output) = self.shard.poll() {
            match output {
                Output::Publish(accepted) => {
                    let id = accepted.item.id;
                    self.shard.handle(Input::Published(id), self.now);
                    self.published.push(id);
                }
                Output::Reply { node, reply: Reply::Ack { session, cid, outcome }, .. } => {
                    answered += 1;
                    told(ledger::Comment { node, session, cid }, outcome);
                    self.admitted +=
                        usize::from(matches!(outcome, Outcome::Verdict(Verdict::Admit(_))));
                }
                Output::Reply { reply: Reply::Close { .. }, .. }
                | Output::Tell(_)
                | Output::Review(_)
                | Output::Unasked(_) => {}
            }
        }
        ensure!(answered == TURN_COMMENTS, "{answered} of {TURN_COMMENTS} comments have an answer");
        self.judged += TURN_COMMENTS;
        self.shed();
        Ok(())
    }

    /// The broadcaster gives up what it cannot show.
    fn shed(&mut self) {
        let shed = |id| (id, Fate::Shed { reason: Reason::OverBudget });
        let fates = self.published.drain(..).map(shed).collect();
        let event = RoomEvent::Fates { fates };
        let entry = RoomEntry { app: APP, room: self.room.clone(), event };
        self.shard.handle(Input::Event(entry), self.now);
        while self.shard.poll().is_some() {}
    }

    /// The part of all comments that was admitted.
    pub(super) fn admitted(&self) -> f64 {
        self.admitted as f64 / self.judged as f64
    }
}
