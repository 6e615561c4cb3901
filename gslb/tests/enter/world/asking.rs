//! Questions to the running services, and what is in the answers.

use auth_core::keyring::LinkKeyring;
use auth_core::link_id;
use auth_core::policy::Policies;
use auth_core::replay::Replays;
use auth_core::revocation::Revocations;
use auth_core::token::{self, Claims, Scope, TokenRefusal};
use proto::enter::{EnterRequest, EnterResponse, Offer, Problem};
use proto::id::UnitId;
use proto::keys::{LinkKeys, LinkKeysRequest};
use proto::time::Wall;

use super::{OPERATOR_KEY, World, node_of, secret};

impl World {
    /// Asks, and is answered.
    pub(crate) async fn enter(&self, ticket: &str) -> EnterResponse {
        let request = EnterRequest { ticket: ticket.to_owned(), ..EnterRequest::default() };
        let response = self.ask(&request).await;
        let (status, body) = (response.status(), response.text().await.unwrap());
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap()
    }

    pub(crate) async fn ask(&self, request: &EnterRequest) -> reqwest::Response {
        self.post(serde_json::to_vec(request).unwrap()).send().await.unwrap()
    }

    pub(crate) fn post(&self, body: Vec<u8>) -> reqwest::RequestBuilder {
        self.client.post(self.url("/v1/enter")).body(body)
    }

    pub(crate) fn url(&self, path: &str) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        format!("{scheme}://{}{path}", self.gslb)
    }

    /// What the link at an offered address makes of a token.
    pub(crate) async fn verify_at(
        &self,
        offer: &Offer,
        text: &str,
    ) -> Result<Claims, TokenRefusal> {
        self.verify_after(&Revocations::new(1), offer, text).await
    }

    /// The same of a link that has heard of these kicks.
    pub(crate) async fn verify_after(
        &self,
        revocations: &Revocations,
        offer: &Offer,
        text: &str,
    ) -> Result<Claims, TokenRefusal> {
        let node = node_of(&offer.address);
        let authority = offer.address.authority();
        let request = LinkKeysRequest { node, unit: UnitId(1), addresses: vec![authority.clone()] };
        let url = format!("https://{}/v1/keys/link", self.auth);
        let request = self.client.post(url).json(&request).header("x-barrage-node", node.0);
        let response = request.bearer_auth(secret(node).expose()).send().await.unwrap();
        let keys: LinkKeys = response.json().await.unwrap();
        let keys = LinkKeyring::new(&keys).unwrap();
        let links = [link_id(&authority)];
        let policies = Policies::default();
        let scope = Scope { keys: &keys, links: &links, policies: &policies, revocations };
        token::verify(text, &scope, &mut Replays::new(10), self.clock.wall())
    }

    /// What the token for the first address says.
    pub(crate) async fn claims(&self, answer: &EnterResponse) -> Claims {
        let offer = &answer.addresses[0];
        self.verify_at(offer, &offer.token).await.unwrap()
    }

    /// An operator's call to the auth service.
    pub(crate) async fn operate(&self, path: &str) {
        let call = self.client.post(format!("https://{}{path}", self.auth));
        let response = call.bearer_auth(OPERATOR_KEY).send().await.unwrap();
        assert_eq!(response.status(), 200, "{}", response.text().await.unwrap());
    }

    /// The value of a metric, as rendered.
    pub(crate) fn count(&self, metric: &str) -> u64 {
        let page = self.meter.render();
        let line = page.lines().find_map(|it| it.strip_prefix(metric)?.strip_prefix(' '));
        line.map_or(0, |it| it.parse().unwrap())
    }

    /// How many answers have this label, as rendered.
    pub(crate) fn answers(&self, label: &str) -> u64 {
        let page = self.meter.render();
        let lines = page.lines().filter(|it| it.starts_with("gslb_answers_total{"));
        let counts = lines.filter_map(|it| it.split_once("} ").filter(|it| it.0.contains(label)));
        counts.map(|(_, count)| count.parse::<u64>().unwrap()).sum()
    }
}

/// A refusal with this status and code, as browsers may read it.
pub(crate) async fn check(response: reqwest::Response, status: u16, code: &str) -> Problem {
    assert_eq!(response.headers()["access-control-allow-origin"], "*");
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    assert_eq!(response.status(), status, "{code}");
    let problem: Problem = response.json().await.unwrap();
    assert_eq!((problem.status, problem.code.as_str()), (status, code));
    assert!(problem.server_ms > Wall(0));
    problem
}
