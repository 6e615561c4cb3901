//! `POST /v1/enter:batch`: a business server asks for many viewers at once.
//!
//! Each question is admitted and answered as if it came alone; what is common to the answers stands
//! once. A question that is refused has a problem in the place of its answer.

use std::fmt;
use std::net::IpAddr;

use auth_core::ticket::TICKET_BYTES_MAX;
use gslb_core::bases::Rotation;
use proto::time::Wall;
use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};

use super::admission::Business;
use super::ask::{self, Ask};
use super::render::{self, Form};
use super::{Answerer, Refusal};

/// Bytes of a question with the longest ticket.
const QUESTION_BYTES_MAX: usize = TICKET_BYTES_MAX + 512;

/// Bytes of usual offers.
const OFFERS_BYTES: usize = 1024;

/// The questions of one batch.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asks<'a> {
    #[serde(borrow)]
    requests: List<'a>,
}

/// As many as any configuration allows; the others are counted.
struct List<'a> {
    asks: Vec<Ask<'a>>,
    count: usize,
}

impl Answerer {
    /// Bytes of a batch's body.
    pub(super) const fn batch_bytes_max(&self) -> usize {
        self.config.batch_max as usize * QUESTION_BYTES_MAX
    }

    /// Who shows this API key; without one nobody may ask for many.
    pub(super) fn business(&self, api_key: Option<&str>) -> Result<Business, Refusal> {
        let api_key = api_key.ok_or(Refusal::ApiKeyMissing)?;
        self.admission.business(api_key).ok_or(Refusal::ApiKey)
    }

    /// Writes the answers to a batch, a [`BatchResponse`](proto::enter::BatchResponse) as JSON,
    /// behind what `answer` holds. After a refusal of the batch as a whole nothing is written.
    pub(super) fn answer_all(
        &self,
        body: &[u8],
        from: IpAddr,
        business: Business,
        now: Wall,
        answer: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let asks: Asks<'_> = ask::read(body)?;
        let List { asks, count } = asks.requests;
        let max = self.config.batch_max;
        if count > max as usize {
            return Err(Refusal::BatchTooLong { questions: count, max });
        }
        answer.reserve(count * OFFERS_BYTES);
        render::put_server(Form::Json, now, answer);
        // They are viewers of anywhere.
        let bases = self.known.bases.load();
        self.written.common_json(bases.next(""), answer);
        answer.extend_from_slice(b",\"answers\":[");
        for (at, ask) in asks.iter().enumerate() {
            if at > 0 {
                answer.push(b',');
            }
            let start = answer.len();
            if let Err(refusal) = self.answer_one_of(ask, from, business, &bases, now, answer) {
                answer.truncate(start);
                self.counts.refused(&refusal);
                render::put_json(&refusal.problem(now).0, answer);
            }
        }
        answer.extend_from_slice(b"]}");
        Ok(())
    }

    fn answer_one_of(
        &self,
        ask: &Ask<'_>,
        from: IpAddr,
        business: Business,
        bases: &Rotation,
        now: Wall,
        answer: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let admitted = self.admission.admit_one_of(from, business, ask.client.ip)?;
        answer.push(b'{');
        self.offer(Form::Json, ask, admitted, bases, now, answer)?;
        answer.push(b'}');
        Ok(())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for List<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = List<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a list of questions")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<List<'de>, A::Error> {
                let mut list = List { asks: Vec::new(), count: 0 };
                while let Some(ask) = seq.next_element()? {
                    list.count += 1;
                    if list.asks.len() < crate::config::BATCH_MAX as usize {
                        list.asks.push(ask);
                    }
                }
                Ok(list)
            }
        }

        deserializer.deserialize_seq(Reader)
    }
}
