//! `POST /v1/enter:batch`: a business server asks for many viewers at once.
//!
//! Each question is admitted and answered as if it came alone. What is common to many answers stands
//! once: segments, how to try again, and addresses, which answers name by their place in a list. A
//! question that is refused has a problem in the place of its answer.

use std::net::IpAddr;

use auth_core::ticket::TICKET_BYTES_MAX;
use gslb_core::assign::ADDRESSES_PER_ANSWER;

use super::admission::Business;
use super::ask::{self, Ask, Asks};
use super::listing::Listing;
use super::render::{self, Form};
use super::{Answerer, Moment, Refusal};

/// Bytes of a question with the longest ticket.
const QUESTION_BYTES_MAX: usize = TICKET_BYTES_MAX + 512;

/// Bytes of usual offers, three tokens, and of a viewer's part of the addresses.
const OFFERS_BYTES: usize = 832;

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
        answer: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let Asks { list: asks, count, .. } = ask::read_all(body)?;
        let max = self.config.batch_max;
        if count > max as usize {
            return Err(Refusal::BatchTooLong { questions: count, max });
        }
        answer.reserve(count * OFFERS_BYTES);
        let known = self.look();
        let bases = &known.sight.bases;
        let mut listing = Listing::new(count * ADDRESSES_PER_ANSWER);
        render::put_server(&Form::Json, known.now, answer);
        self.written.common_json(bases.next(self.region(&asks, from, &known)), answer);
        answer.extend_from_slice(b",\"answers\":[");
        for (at, ask) in asks.iter().enumerate() {
            if at > 0 {
                answer.push(b',');
            }
            let start = answer.len();
            let form = Form::Listed(&mut listing);
            if let Err(refusal) = self.answer_one_of(form, ask, from, business, &known, answer) {
                answer.truncate(start);
                self.counts.refused(&refusal);
                render::put_json(&refusal.problem(known.now).0, answer);
            }
        }
        answer.extend_from_slice(b"],\"addresses\":[");
        answer.extend_from_slice(listing.json());
        answer.extend_from_slice(b"]}");
        Ok(())
    }

    /// The region that all viewers of a batch are in: its bases are theirs. None if they are in
    /// several; then they get the bases of no region, since bases stand once in the answer.
    fn region<'a>(&'a self, asks: &[Ask<'_>], from: IpAddr, known: &'a Moment) -> &'a str {
        if !known.sight.bases.has_regions() {
            return "";
        }
        let of = |ask: &Ask<'_>| self.region_of(ask.client.ip.unwrap_or(from), known);
        let mut regions = asks.iter().map(of);
        let first = regions.next().unwrap_or_default();
        if regions.all(|it| it == first) { first } else { "" }
    }

    fn answer_one_of(
        &self,
        mut form: Form<'_>,
        ask: &Ask<'_>,
        from: IpAddr,
        business: Business,
        known: &Moment,
        answer: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let admitted = self.admission.admit_one_of(from, business, ask.client.ip)?;
        answer.push(b'{');
        self.offer(&mut form, ask, admitted, known, answer)?;
        answer.push(b'}');
        Ok(())
    }
}
