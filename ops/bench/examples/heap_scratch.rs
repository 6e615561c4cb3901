//! Scratch.
#[tokio::main]
async fn main() {
    let name = std::env::args().nth(2).unwrap();
    for line in bench::run(&name).await.unwrap() {
        eprintln!("{line:?}");
    }
}
