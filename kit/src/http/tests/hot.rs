//! Hot requests, by the way of the server.

use super::*;

#[tokio::test]
async fn what_is_hot_is_answered_before_the_router_and_the_rest_by_it() {
    let server = start_hot(Limits::default()).await;

    let hot = exchange(&server, "POST /hot", "0123456789").await;
    let exceeds = exchange(&server, "POST /hot", "0123456789a").await;
    let cold = exchange(&server, "POST /echo", "0123456789a").await;

    assert!(hot.ends_with("\r\n\r\nhot: 0123456789"), "{hot}");
    assert!(exceeds.ends_with("\r\n\r\nhot: TooLarge"), "{exceeds}");
    assert!(cold.ends_with("\r\n\r\n11"), "{cold}");
}

#[tokio::test]
async fn a_hot_body_may_come_in_pieces_but_not_grow_or_tarry() {
    let server = start_hot(Limits { answer_ms_max: SHORT_MS, ..Limits::default() }).await;
    let chunked = async |pieces: &[&str], end: &str| {
        let mut client = server.connect().await;
        let head = "POST /hot HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\
                    transfer-encoding: chunked\r\n\r\n";
        client.write_all(head.as_bytes()).await.unwrap();
        for piece in pieces {
            client.write_all(format!("{}\r\n{piece}\r\n", piece.len()).as_bytes()).await.unwrap();
        }
        client.write_all(end.as_bytes()).await.unwrap();
        rest(&mut client).await
    };

    let plain = async |pieces: &[&str]| {
        let mut client = server.connect().await;
        client.write_all(b"POST /hot HTTP/1.1\r\ncontent-length: 4\r\n\r\n").await.unwrap();
        for piece in pieces {
            client.write_all(piece.as_bytes()).await.unwrap();
        }
        // Without an end: whoever waits for more hears of it.
        let mut answer = [0; 1024];
        let bytes = client.read(&mut answer).await.unwrap();
        String::from_utf8_lossy(&answer[..bytes]).into_owned()
    };

    assert!(plain(&["01", "23"]).await.ends_with("hot: 0123"));
    let late = plain(&["01"]).await;
    assert!(late.contains("connection: close") && late.ends_with("hot: Late"), "{late}");
    let whole = chunked(&["012", "3", "456"], "0\r\n\r\n").await;
    let grown = chunked(&["01234", "56789", "a"], "0\r\n\r\n").await;
    let late = chunked(&["012"], "").await;

    assert!(whole.ends_with("hot: 0123456"), "{whole}");
    assert!(grown.ends_with("hot: TooLarge"), "{grown}");
    assert!(late.ends_with("hot: Late"), "{late}");
}

#[tokio::test]
async fn a_hot_connection_may_not_stay_idle_either() {
    for next in ["", "POST /hot HTTP/1.1\r\nhost: "] {
        let server = start_hot(Limits { header_ms_max: SHORT_MS, ..Limits::default() }).await;
        let mut client = server.connect().await;
        ask(&mut client, "POST /hot").await;

        client.write_all(next.as_bytes()).await.unwrap();

        assert_ended(&mut client).await;
        assert_eq!(server.ended("silent"), 1);
    }
}

#[tokio::test]
async fn whoever_asks_what_is_hot_and_takes_no_answer_is_closed() {
    let limits = Limits { silence_ms_max: SHORT_MS, header_ms_max: SHORT_MS, ..Limits::default() };
    let server = start_hot(limits).await;
    let (_answers, mut questions) = server.connect().await.into_split();
    let request = b"POST /hot HTTP/1.1\r\nhost: a\r\n\r\n".repeat(1000);

    while questions.write_all(&request).await.is_ok() {}

    server.until_ended("silent").await;
}

#[tokio::test]
async fn a_hot_answer_that_panics_ends_its_connection_only() {
    let server = start_hot(Limits::default()).await;
    let mut client = server.connect().await;

    client.write_all(b"POST /hot HTTP/1.1\r\ncontent-length: 5\r\n\r\npanic").await.unwrap();

    assert_ended(&mut client).await;
    let answer = exchange(&server, "POST /hot", "a").await;
    assert!(answer.ends_with("hot: a"), "{answer}");
}

#[tokio::test]
async fn requests_that_have_come_are_the_last_to_be_answered() {
    for (request, says) in [("POST /hot", "hot: "), ("GET /peer", "127.0.0.1:")] {
        let server = start_hot(Limits::default()).await;
        let mut client = server.connect().await;
        ask(&mut client, request).await;
        let request = format!("{request} HTTP/1.1\r\nhost: a\r\n\r\n");

        client.write_all(request.repeat(2).as_bytes()).await.unwrap();
        server.shutdown.cancel();

        let answers = rest(&mut client).await;
        assert!(answers.contains(says), "{answers}");
        if says == "hot: " {
            let (first, last) = answers.split_once(says).unwrap();
            assert!(!first.contains("connection: close"), "{answers}");
            assert!(last.contains("connection: close") && last.ends_with(says), "{answers}");
        }
        assert!(server.tasks.join().await.is_ok());
    }
}

#[tokio::test]
async fn hot_connections_drain() {
    let server = start_hot(Limits::default()).await;
    let mut idle = server.connect().await;
    ask(&mut idle, "POST /hot").await;
    let mut asking = server.connect().await;
    let answered = "POST /hot HTTP/1.1\r\n\r\n";
    let begun = "POST /hot HTTP/1.1\r\ncontent-length: 2\r\n\r\n0";
    asking.write_all(format!("{answered}{begun}").as_bytes()).await.unwrap();
    // Both came together: whoever has answered the first has read the second.
    assert!(asking.read(&mut [0; 1024]).await.unwrap() > 0);

    server.shutdown.cancel();
    assert_ended(&mut idle).await;
    asking.write_all(b"1").await.unwrap();

    assert!(rest(&mut asking).await.ends_with("hot: 01"));
    assert!(server.tasks.join().await.is_ok());
}
