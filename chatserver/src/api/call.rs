//! One call of the API: what answers it, and what the OpenAPI document says of it. Both come from
//! one declaration, so that neither can know a call that the other does not.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::handler::Handler;
use axum::routing::{self, MethodRouter};

use super::Api;

/// What a call takes in its query.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Query {
    /// Nothing.
    None,
    /// Where a page begins.
    Page,
    /// In whose name something is done, and why.
    Signed,
    /// Which records of the evidence ledger.
    Evidence,
}

/// What a call takes in its headers, besides its key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Header {
    /// The version that must be there.
    IfMatch,
    /// What makes a request the same as another; needed.
    Key,
    /// The same for those who want it.
    MayKey,
}

/// What a call gives.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// The schema of the body, if it has one.
    pub(super) schema: Option<&'static str>,
}

/// A call.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) name: &'static str,
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    pub(super) summary: &'static str,
    pub(super) query: Query,
    pub(super) headers: Vec<Header>,
    /// The schema of the request's body.
    pub(super) body: Option<&'static str>,
    pub(super) answers: Vec<Answer>,
    /// Whether answers have an entity tag, the version of what they tell.
    pub(super) is_tagged: bool,
    /// Statuses of problems besides those that follow from everything else.
    pub(super) refusals: BTreeSet<u16>,
    pub(super) route: MethodRouter<Arc<Api>>,
}

impl Call {
    pub(super) fn get<H, T>(name: &'static str, path: &'static str, handler: H) -> Self
    where
        H: Handler<T, Arc<Api>>,
        T: 'static,
    {
        Self::new("get", name, path, routing::get(handler))
    }

    pub(super) fn post<H, T>(name: &'static str, path: &'static str, handler: H) -> Self
    where
        H: Handler<T, Arc<Api>>,
        T: 'static,
    {
        Self::new("post", name, path, routing::post(handler))
    }

    pub(super) fn put<H, T>(name: &'static str, path: &'static str, handler: H) -> Self
    where
        H: Handler<T, Arc<Api>>,
        T: 'static,
    {
        Self::new("put", name, path, routing::put(handler))
    }

    pub(super) fn patch<H, T>(name: &'static str, path: &'static str, handler: H) -> Self
    where
        H: Handler<T, Arc<Api>>,
        T: 'static,
    {
        Self::new("patch", name, path, routing::patch(handler))
    }

    pub(super) fn delete<H, T>(name: &'static str, path: &'static str, handler: H) -> Self
    where
        H: Handler<T, Arc<Api>>,
        T: 'static,
    {
        Self::new("delete", name, path, routing::delete(handler))
    }

    fn new(
        method: &'static str,
        name: &'static str,
        path: &'static str,
        route: MethodRouter<Arc<Api>>,
    ) -> Self {
        Self {
            name,
            method,
            path,
            summary: "",
            query: Query::None,
            headers: Vec::new(),
            body: None,
            answers: Vec::new(),
            is_tagged: false,
            refusals: BTreeSet::new(),
            route,
        }
    }

    pub(super) fn says(self, summary: &'static str) -> Self {
        Self { summary, ..self }
    }

    pub(super) fn asks(self, query: Query) -> Self {
        Self { query, ..self }
    }

    /// It may be done in somebody's name.
    pub(super) fn signed(self) -> Self {
        self.asks(Query::Signed)
    }

    /// It gives a page.
    pub(super) fn paged(self) -> Self {
        self.asks(Query::Page)
    }

    pub(super) fn header(mut self, header: Header) -> Self {
        self.headers.push(header);
        self
    }

    pub(super) fn body(self, schema: &'static str) -> Self {
        Self { body: Some(schema), ..self }
    }

    pub(super) fn gives(mut self, status: u16, schema: &'static str) -> Self {
        self.answers.push(Answer { status, schema: Some(schema) });
        self
    }

    /// It gives 204.
    pub(super) fn gives_nothing(mut self) -> Self {
        self.answers.push(Answer { status: 204, schema: None });
        self
    }

    pub(super) fn tagged(self) -> Self {
        Self { is_tagged: true, ..self }
    }

    pub(super) fn refuses(mut self, statuses: impl IntoIterator<Item = u16>) -> Self {
        self.refusals.extend(statuses);
        self
    }

    /// Its body may be as large as a list of words.
    pub(super) fn large(self) -> Self {
        Self { route: self.route.layer(super::large()), ..self }
    }
}
