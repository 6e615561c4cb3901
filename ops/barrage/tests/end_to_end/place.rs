//! `barrage gslb place`: where addresses are, and who says so.

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::process::{barrage, complained, run, said};

#[tokio::test]
async fn an_operator_sees_which_file_says_where_an_address_is() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "asn.csv", "1.2.0.0,1.2.255.255,4134,x\n");
    write(folder.path(), "city.csv", "1.2.3.0,1.2.3.255,CN,Shanghai,,,,,,\n");

    let output = place(folder.path(), &["1.2.3.4", "64:ff9b::1.2.9.9", "10.0.0.1"]).await;

    assert!(output.status.success(), "{output:?}");
    let text = said(&output).replace(&folder.path().display().to_string(), "FOLDER");
    let expected = "\
1.2.3.4: carrier telecom, region east
  AS4134: 1.2.0.0 to 1.2.255.255 in FOLDER/asn.csv
  CN-SH: 1.2.3.0 to 1.2.3.255 in FOLDER/city.csv
64:ff9b::102:909 carries 1.2.9.9: carrier telecom, region local by default
  AS4134: 1.2.0.0 to 1.2.255.255 in FOLDER/asn.csv
  no file knows its country
10.0.0.1: carrier bgp, region local by default
  it is no address of the public internet";
    assert_eq!(text, expected);
}

#[tokio::test]
async fn a_file_that_cannot_be_used_is_named_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "asn.csv", "1.2.0.0,1.2.255.255,4134,x\n1.4.0.0,1.3.0.0,1,x\n");
    write(folder.path(), "city.csv", "1.2.3.0,1.2.3.255,CN,Shanghai,,,,,,\n");

    let output = place(folder.path(), &["1.2.3.4"]).await;

    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(said(&output).starts_with("1.2.3.4: carrier bgp, region east"), "{output:?}");
    let complaint = "asn.csv, line 2: the range ends before it starts";
    assert!(complained(&output).contains(complaint), "{}", complained(&output));
}

#[tokio::test]
async fn without_files_it_says_what_to_set_and_help_says_how() {
    let without = run(&mut barrage(["gslb", "place", "1.2.3.4"])).await;
    let help = run(&mut barrage(["gslb", "place", "--help"])).await;

    assert_eq!(without.status.code(), Some(2), "{without:?}");
    assert!(complained(&without).contains("set [gslb.place] files"), "{without:?}");
    assert!(said(&help).contains("Usage: barrage gslb place"), "{}", said(&help));
    assert!(said(&help).contains("--config <FILE>"), "{}", said(&help));
}

/// Asks with a configuration that has both files, and Shanghai in region `east`.
async fn place(folder: &Path, addresses: &[&str]) -> Output {
    let [asn, city] = ["asn.csv", "city.csv"].map(|it| folder.join(it));
    let config = format!(
        "[gslb.place]\nfiles = [{asn:?}, {city:?}]\n\
         [[gslb.place.regions]]\nname = \"east\"\nplaces = [\"CN-31\"]\n"
    );
    write(folder, "barrage.toml", &config);
    let file = folder.join("barrage.toml");
    run(barrage(["gslb", "place", "--config"]).arg(file).args(addresses)).await
}

fn write(folder: &Path, name: &str, text: &str) {
    fs::write(folder.join(name), text).unwrap();
}
