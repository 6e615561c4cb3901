//! Printing, checking and refusing a configuration; and roles that cannot run alone.

use std::process::Output;

use crate::process::{barrage, complained, run, said, workspace};

const ROLES: [&str; 5] = ["auth", "gslb", "link", "chatserver", "broadcaster"];

#[tokio::test]
async fn the_printed_configuration_is_the_committed_reference() {
    let file = workspace("ops/deploy/barrage.reference.toml");
    let reference = std::fs::read_to_string(&file).unwrap();

    let printed = run(&mut barrage(["up", "--print-config"])).await;

    assert!(printed.status.success(), "{printed:?}");
    assert_eq!(
        said(&printed),
        reference.trim_end(),
        "write `barrage up --print-config` to ops/deploy/barrage.reference.toml"
    );
    for role in ROLES {
        let same = run(&mut barrage([role, "--print-config"])).await;
        assert_eq!(said(&same), said(&printed), "{role}");
    }
    let read_again = run(barrage(["up", "--print-config", "--config"]).arg(&file)).await;
    assert_eq!(said(&read_again), said(&printed));
}

#[tokio::test]
async fn a_good_configuration_passes_the_check() {
    let reference = workspace("ops/deploy/barrage.reference.toml");

    for command in ["up", "link"] {
        let output = run(barrage([command, "--check", "--config"]).arg(&reference)).await;
        assert!(output.status.success(), "{output:?}");
        assert_eq!(said(&output), "the configuration is good");
    }
}

#[tokio::test]
async fn a_wrong_configuration_is_refused_with_what_to_change() {
    for (text, complaint) in [
        ("[link]\nsession_max = 5\n", "unknown key `link.session_max`"),
        ("[link]\nsession_max = 5\n", "did you mean `sessions_max`?"),
        ("[link]\nsessions_max = 'many'\n", "`link.sessions_max`"),
        ("[liink]\n", "did you mean `link`?"),
        ("[link\n", "is no TOML"),
        ("[broadcaster]\nflush_ms = 19\n", "flush_ms is not between 20 and 1000"),
    ] {
        for command in ["up", "broadcaster"] {
            let output = check(command, text).await;
            assert_eq!(output.status.code(), Some(2), "{text}: {output:?}");
            assert!(complained(&output).contains(complaint), "{}", complained(&output));
        }
    }
}

#[tokio::test]
async fn the_environment_wins_and_is_checked_too() {
    let mut command = barrage(["up", "--print-config"]);
    let output = run(command.env("BARRAGE_LINK__SESSIONS_MAX", "5")).await;
    assert!(said(&output).lines().any(|it| it == "sessions_max = 5"), "{}", said(&output));

    let mut command = barrage(["up", "--check"]);
    let output = run(command.env("BARRAGE_LINK__SESSION_MAX", "5")).await;
    assert_eq!(output.status.code(), Some(2));
    let complaint = "in BARRAGE_LINK__SESSION_MAX: did you mean `sessions_max`?";
    assert!(complained(&output).contains(complaint), "{}", complained(&output));
}

#[tokio::test]
async fn a_role_does_not_run_alone_on_the_embedded_adapters() {
    for role in ROLES {
        let output = run(&mut barrage([role])).await;
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(complained(&output).contains("use `barrage up`"), "{}", complained(&output));
    }
}

#[tokio::test]
async fn nonsense_on_the_command_line_is_refused_with_what_to_say() {
    for (args, complaint) in [
        (&["up", "--fault", "burn=1/3"][..], "say lose=1/1000"),
        (&["up", "--room", "a/b"], "may not hold the character"),
        (&["up", "--speed", "0", "--for", "1"], "--speed must be more than 0"),
        (&["up", "--replay", "absent.xml"], "cannot read absent.xml"),
        (&["bench", "nothing"], "nothing"),
        (&["fly"], "unrecognized subcommand"),
    ] {
        let output = run(barrage(args.iter()).current_dir(std::env::temp_dir())).await;
        assert_eq!(output.status.code(), Some(2), "{args:?} {output:?}");
        assert!(complained(&output).contains(complaint), "{}", complained(&output));
    }
    let version = run(&mut barrage(["version"])).await;
    assert_eq!(said(&version), format!("barrage {}", env!("CARGO_PKG_VERSION")));
}

async fn check(command: &str, text: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("barrage.toml");
    std::fs::write(&file, text).unwrap();
    run(barrage([command, "--check", "--config"]).arg(&file)).await
}
