//! HTTP/2: a few connections, with many questions under way on each.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;

use anyhow::{Context, ensure};
use futures_util::stream::{FuturesUnordered, TryStreamExt};
use hyper::body::{Body, Bytes, Incoming};
use hyper::client::conn::http2::{self, SendRequest};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE};
use hyper::{Request, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kit::task::Tasks;
use tokio::net::TcpStream;

use super::{Order, Orders, part};

/// Everybody who asks, by server.
pub(super) struct Callers {
    servers: Vec<Vec<Caller>>,
    _connections: Tasks,
}

/// Its share of a connection, and its question.
struct Caller {
    connection: SendRequest<String>,
    request: Request<String>,
}

impl Callers {
    pub(super) async fn connect(orders: &Orders, connections: usize) -> anyhow::Result<Self> {
        let (mut servers, mut tasks) = (Vec::new(), Tasks::default());
        for &server in &orders.servers {
            let mut shared = Vec::new();
            for _ in 0..connections {
                shared.push(connect(server, &mut tasks).await?);
            }
            let callers = orders.questions.iter().zip(shared.iter().cycle());
            let callers = callers.map(|(body, connection)| {
                let request = request(orders, server, body)?;
                Ok(Caller { connection: connection.clone(), request })
            });
            servers.push(callers.collect::<anyhow::Result<_>>()?);
        }
        Ok(Self { servers, _connections: tasks })
    }

    /// Asks, and gives back somebody's last answer.
    pub(super) async fn ask(&self, order: Order) -> anyhow::Result<String> {
        let callers = self.servers.get(order.server).context("there is no such server")?;
        let asking = callers.iter().enumerate();
        let asking = asking.map(|(at, it)| it.ask(part(order.questions, at, callers.len())));
        let answers: Vec<Bytes> = asking.collect::<FuturesUnordered<_>>().try_collect().await?;
        let last = answers.into_iter().find(|it| !it.is_empty()).context("nobody asked")?;
        Ok(String::from_utf8(last.into())?)
    }
}

impl Caller {
    async fn ask(&self, times: u32) -> anyhow::Result<Bytes> {
        let mut connection = self.connection.clone();
        let mut answer = Bytes::new();
        for _ in 0..times {
            connection.ready().await?;
            let response = connection.send_request(self.request.clone()).await?;
            let status = response.status();
            answer = body(response.into_body()).await?;
            ensure!(status == StatusCode::OK, "no answer: {}", String::from_utf8_lossy(&answer));
        }
        Ok(answer)
    }
}

async fn connect(server: SocketAddr, tasks: &mut Tasks) -> anyhow::Result<SendRequest<String>> {
    let stream = TcpStream::connect(server).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
    tasks.spawn("connection", async move { Ok(connection.await?) });
    Ok(sender)
}

fn request(orders: &Orders, server: SocketAddr, body: &str) -> anyhow::Result<Request<String>> {
    let request = Request::post(format!("http://{server}{}", orders.path));
    let request = request.header(CONTENT_TYPE, "application/json");
    let request = match &orders.api_key {
        Some(key) => request.header(AUTHORIZATION, format!("Bearer {key}")),
        None => request,
    };
    Ok(request.body(body.to_owned())?)
}

/// All of a body.
async fn body(mut incoming: Incoming) -> anyhow::Result<Bytes> {
    let mut whole = Vec::new();
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut incoming).poll_frame(cx)).await {
        if let Ok(data) = frame?.into_data() {
            whole.extend_from_slice(&data);
        }
    }
    Ok(whole.into())
}
