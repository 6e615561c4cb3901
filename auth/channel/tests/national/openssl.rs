//! OpenSSL as the outside judge of certificates, requests and keys.
//!
//! OpenSSL 3 knows SM2 certificates but not the TLS suites, so handshakes with it are not here.

use std::path::PathBuf;
use std::process::Command;

use channel::national::certs::{Key, Life, Names, Request};
use channel::national::{SCHEME, provider};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use tempfile::TempDir;

use crate::pki::{Pki, year};

const IDENTITY: &str = "distid:1234567812345678";
const HANDSHAKE_IDENTITY: &str = "distid:TLSv1.3+GM+Cipher+Suite";

#[test]
fn openssl_verifies_our_chain_for_every_name() {
    let files = Files::new();
    let pki = Pki::with_names(&["a.example", "*.b.example", "127.0.0.1", "::1"]);
    let (ca, leaf) = files.write_chain(&pki);

    for name in [["-verify_hostname", "a.example"], ["-verify_hostname", "x.b.example"]]
        .iter()
        .chain(&[["-verify_ip", "127.0.0.1"], ["-verify_ip", "::1"]])
    {
        let verify = ["verify", "-x509_strict", "-vfyopt", IDENTITY, "-purpose", "sslserver"];
        let said = openssl(&[&verify[..], name, &["-CAfile", &ca, &leaf]].concat()).unwrap();
        assert!(said.ends_with("OK\n"), "{said}");
    }
}

#[test]
fn openssl_refuses_a_chain_of_another_authority() {
    let files = Files::new();
    let (_, leaf) = files.write_chain(&Pki::new());
    let (other_ca, _) = files.write_chain(&Pki::new());
    files.write("leaf.pem", &Pki::new().server_pem);

    let refused = openssl(&["verify", "-vfyopt", IDENTITY, "-CAfile", &other_ca, &leaf]);

    assert!(refused.is_err());
}

#[test]
fn openssl_reads_in_our_certificates_what_we_wrote() {
    let files = Files::new();
    let (ca, leaf) = files.write_chain(&Pki::with_names(&["a.example", "127.0.0.1"]));

    let ca = openssl(&["x509", "-noout", "-text", "-in", &ca]).unwrap();
    let leaf = openssl(&["x509", "-noout", "-text", "-in", &leaf]).unwrap();

    for part in ["CA:TRUE, pathlen:0", "Certificate Sign, CRL Sign", "CN = Test authority"] {
        assert!(ca.contains(part), "{part} in {ca}");
    }
    let parts = [
        "Signature Algorithm: SM2-with-SM3",
        "ASN1 OID: SM2",
        "Issuer: CN = Test authority",
        "Subject: CN = a.example",
        "CA:FALSE",
        "Digital Signature",
        "TLS Web Server Authentication",
        "DNS:a.example, IP Address:127.0.0.1",
    ];
    for part in parts {
        assert!(leaf.contains(part), "{part} in {leaf}");
    }
}

#[test]
fn openssl_accepts_our_request_and_our_key() {
    let files = Files::new();
    let pki = Pki::new();
    let names = Names::new(["a.example", "127.0.0.1"]).unwrap();
    let request = files.write("request.pem", &Request::create(&pki.server_key, &names).unwrap());
    let key = files.write("key.pem", &pki.server_key.to_pem().unwrap());

    let verify = ["req", "-noout", "-verify", "-vfyopt", IDENTITY, "-in", &request];
    assert!(openssl(&verify).is_ok());
    let key = openssl(&["pkey", "-noout", "-check", "-text", "-in", &key]).unwrap();

    assert!(key.contains("Key is valid") && key.contains("ASN1 OID: SM2"), "{key}");
}

#[test]
fn we_sign_what_openssl_requests() {
    let files = Files::new();
    let mut pki = Pki::new();
    let key = files.path("key.pem");
    let request = files.path("request.pem");
    let curve = ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:SM2"];
    openssl(&[&["genpkey"], &curve[..], &["-out", &key]].concat()).unwrap();
    let names = ["-subj", "/O=Somebody/CN=a.example", "-addext", "subjectAltName=DNS:a.example"];
    // What only an authority grants: asked for in vain.
    let more = ["-addext", "basicConstraints=critical,CA:TRUE", "-sm3", "-sigopt", IDENTITY];
    let files_of = ["req", "-new", "-key", &key, "-out", &request];
    openssl(&[&files_of[..], &names, &more].concat()).unwrap();

    let request = Request::from_pem(&files.read("request.pem")).unwrap();
    pki.server_pem = pki.authority.sign(&request, Life { days: 30, ..year() }).unwrap();
    pki.server_key = Key::from_pem(&files.read("key.pem")).unwrap();

    assert_eq!(request.names().as_slice(), ["a.example"]);
    let (ca, leaf) = files.write_chain(&pki);
    let said = openssl(&["verify", "-vfyopt", IDENTITY, "-CAfile", &ca, &leaf]).unwrap();
    assert!(said.ends_with("OK\n"), "{said}");
    let text = openssl(&["x509", "-noout", "-text", "-in", &leaf]).unwrap();
    assert!(text.contains("CA:FALSE") && !text.contains("Somebody"), "{text}");
    assert!(pki.connect("a.example").is_ok());
}

#[test]
fn keys_of_openssl_are_read_in_both_of_its_forms() {
    let files = Files::new();
    let (sec1, pkcs8) = (files.path("sec1.pem"), files.path("pkcs8.pem"));
    openssl(&["ecparam", "-name", "SM2", "-genkey", "-noout", "-out", &sec1]).unwrap();
    openssl(&["pkcs8", "-topk8", "-nocrypt", "-in", &sec1, "-out", &pkcs8]).unwrap();

    let one = Key::from_pem(&files.read("sec1.pem")).unwrap();
    let other = Key::from_pem(&files.read("pkcs8.pem")).unwrap();

    assert_eq!(*one.to_pem().unwrap(), *other.to_pem().unwrap());
}

/// The identity is what keeps handshakes and certificates apart, and two ends of ours would not
/// notice a wrong one.
#[test]
fn openssl_and_we_verify_each_other_with_the_identity_of_handshakes() {
    let files = Files::new();
    let key_pem = Pki::new().server_key.to_pem().unwrap();
    let key = files.write("key.pem", &key_pem);
    let message = files.write("message", "what CertificateVerify covers");
    let public = files.path("public.pem");
    openssl(&["pkey", "-in", &key, "-pubout", "-out", &public]).unwrap();
    let bytes = std::fs::read(&message).unwrap();

    let der = PrivateKeyDer::from_pem_slice(key_pem.as_bytes()).unwrap();
    let signer = provider().key_provider.load_private_key(der).unwrap();
    let ours = signer.choose_scheme(&[SCHEME]).unwrap().sign(&bytes).unwrap();
    std::fs::write(files.path("ours"), ours).unwrap();
    let theirs = files.path("theirs");
    let dgst = ["dgst", "-sm3", "-sigopt"];
    openssl(&[&dgst[..], &[HANDSHAKE_IDENTITY, "-sign", &key, "-out", &theirs, &message]].concat())
        .unwrap();

    let verified = |identity: &str, signature: &str| {
        let verify = [identity, "-verify", &public, "-signature", signature, &message];
        openssl(&[&dgst[..], &verify].concat()).is_ok()
    };
    assert!(verified(HANDSHAKE_IDENTITY, &files.path("ours")));
    assert!(!verified(IDENTITY, &files.path("ours")));
    let info = signer.public_key().unwrap();
    let point = &info[info.len() - 65..];
    let algorithms = provider().signature_verification_algorithms;
    let theirs = std::fs::read(theirs).unwrap();
    let [handshake] = algorithms.mapping[0].1 else { panic!("one algorithm") };
    assert!(handshake.verify_signature(point, &bytes, &theirs).is_ok());
    assert!(algorithms.all[0].verify_signature(point, &bytes, &theirs).is_err());
}

struct Files {
    dir: TempDir,
}

impl Files {
    fn new() -> Self {
        Self { dir: TempDir::new().unwrap() }
    }

    fn path(&self, name: &str) -> String {
        let path: PathBuf = self.dir.path().join(name);
        path.to_str().unwrap().to_owned()
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    fn write(&self, name: &str, text: &str) -> String {
        std::fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    /// The paths of the authority's and the server's certificate.
    fn write_chain(&self, pki: &Pki) -> (String, String) {
        let ca = self.write("ca.pem", &pki.authority.to_pem().unwrap());
        (ca, self.write("leaf.pem", &pki.server_pem))
    }
}

/// What it prints, or what it complains of. OpenSSL 3 is part of every system this is built on;
/// without it the test fails.
fn openssl(arguments: &[&str]) -> Result<String, String> {
    let output =
        Command::new("openssl").args(arguments).output().expect("the openssl command is installed");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}
