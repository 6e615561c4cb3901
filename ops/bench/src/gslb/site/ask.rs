//! What viewers and business servers ask, and whether answers are what they should be.

use anyhow::{Context, bail, ensure};
use auth_core::app::TicketAlg;
use auth_core::keyring::LinkKeyring;
use auth_core::link_id;
use auth_core::policy::Policies;
use auth_core::replay::Replays;
use auth_core::revocation::Revocations;
use auth_core::secret::Secret;
use auth_core::ticket::{Claims, Signer};
use auth_core::token::{self, Scope};
use proto::enter::{BatchResponse, EnterRequest, EnterResponse, Offer};
use proto::id::RoomId;
use proto::keys::{LinkKeys, LinkKeysRequest};

use super::setup::{APP, ED25519_PRIVATE, LINK, OPEN_APP, SECRET, UNIT, api_key};
use super::{SELDOM, Site};

/// Addresses of an answer.
pub(in super::super) const ADDRESSES: usize = 3;
/// How long tickets live, in seconds.
const TICKET_LIFE_S: u64 = 3_600;

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum Who {
    /// A viewer with a ticket.
    Ticket(TicketAlg),
    /// A viewer of a room that asks for none.
    Open,
    /// The same whose client can use one address of all.
    OpenOne,
}

impl Site {
    /// A question of a viewer of its own; its ticket holds for an hour.
    pub(in super::super) fn question(&self, who: Who, number: u32) -> anyhow::Result<String> {
        let mut question = EnterRequest::default();
        match who {
            Who::Ticket(alg) => question.ticket = self.ticket(alg, number)?,
            Who::Open | Who::OpenOne => {
                question.app = Some(OPEN_APP);
                question.room = Some(RoomId::parse(&format!("room-{number}"))?);
            }
        }
        if let Who::OpenOne = who {
            question.client.transports = vec![SELDOM];
        }
        Ok(serde_json::to_string(&question)?)
    }

    /// A business server's question for so many viewers of an open room.
    pub(in super::super) fn batch(&self, viewers: u32, number: u32) -> anyhow::Result<String> {
        let requests = (0..viewers).map(|it| self.question(Who::Open, number * viewers + it));
        let requests: Vec<String> = requests.collect::<anyhow::Result<_>>()?;
        Ok(format!(r#"{{"requests":[{}]}}"#, requests.join(",")))
    }

    /// What opens the door for batches.
    pub(in super::super) fn api_key(&self) -> String {
        api_key(OPEN_APP)
    }

    fn ticket(&self, alg: TicketAlg, number: u32) -> anyhow::Result<String> {
        let now_s = self.clock.wall().unix_s();
        let account = format!("user-{number}");
        let claims = Claims::viewer(APP, &account, "concert", now_s, now_s + TICKET_LIFE_S);
        let (kid, key) = match alg {
            TicketAlg::EdDsa => ("ed25519", ED25519_PRIVATE),
            TicketAlg::Es256 | TicketAlg::Hs256 => ("", SECRET),
        };
        Ok(Signer::new(kid, alg, &Secret::new(key.to_owned()))?.sign(&claims)?)
    }

    /// An answer is what it should be: so many addresses of as many nodes, each with a token that
    /// the node there would take.
    pub(in super::super) async fn check(
        &self,
        answer: &str,
        addresses: usize,
    ) -> anyhow::Result<()> {
        let answer: EnterResponse = serde_json::from_str(answer).context("this is no answer")?;
        self.check_offers(&answer.addresses, addresses).await
    }

    /// The same of every answer of a batch, the tokens of the first.
    pub(in super::super) async fn check_batch(
        &self,
        answers: &str,
        viewers: usize,
    ) -> anyhow::Result<()> {
        let batch: BatchResponse = serde_json::from_str(answers).context("this is no batch")?;
        ensure!(batch.answers.len() == viewers, "there are {} answers", batch.answers.len());
        for at in 0..viewers {
            let Some(Ok(EnterResponse { addresses, .. })) = batch.answer(at) else {
                bail!("the batch holds {:?}", batch.answers[at]);
            };
            ensure!(addresses.len() == ADDRESSES, "viewer {at} has {} addresses", addresses.len());
            if at == 0 {
                self.check_offers(&addresses, ADDRESSES).await?;
            }
        }
        Ok(())
    }

    async fn check_offers(&self, offers: &[Offer], addresses: usize) -> anyhow::Result<()> {
        let mut hosts: Vec<&str> = offers.iter().map(|it| &*it.address.host).collect();
        hosts.sort_unstable();
        hosts.dedup();
        ensure!(hosts.len() == addresses, "there are addresses of {hosts:?}");
        for offer in offers {
            self.check_token(offer).await?;
        }
        Ok(())
    }

    async fn check_token(&self, offer: &Offer) -> anyhow::Result<()> {
        let authority = offer.address.authority();
        let request =
            LinkKeysRequest { node: LINK, unit: UNIT, addresses: vec![authority.clone()] };
        let asking = self.client.post(format!("{}/v1/keys/link", self.auth_url)).json(&request);
        let asking = asking.header("x-barrage-node", LINK.to_string()).bearer_auth(SECRET);
        let keys: LinkKeys = asking.send().await?.error_for_status()?.json().await?;
        let keys = LinkKeyring::new(&keys)?;
        let scope = Scope {
            keys: &keys,
            links: &[link_id(&authority)],
            policies: &Policies::default(),
            revocations: &Revocations::new(1),
        };
        token::verify(&offer.token, &scope, &mut Replays::new(1), self.clock.wall())
            .with_context(|| format!("the token for {authority} does not count"))?;
        Ok(())
    }
}
