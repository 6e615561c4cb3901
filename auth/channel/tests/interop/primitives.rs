//! SM2, SM3 and SM4 as the channel has them, against sm-crypto for Node.js and gmssl for Python.

use std::path::{Path, PathBuf};

use hmac::{Hmac, KeyInit, Mac};
use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};
use serde::{Deserialize, Serialize};
use sm2::dsa::signature::{Signer, Verifier};
use sm2::dsa::{Signature, SigningKey};
use sm3::{Digest, Sm3};
use sm4::Sm4;
use sm4::cipher::BlockCipherEncrypt;
use tokio::process::Command;

use crate::peer::{run, tool};

/// The identity of GB/T 35276 that certificates are signed under.
const IDENTITY: &str = "1234567812345678";
const CASES: usize = 40;
/// Several blocks of each primitive, and their borders.
const MESSAGE_BYTES_MAX: usize = 200;
/// Cases are the same in every run.
const SEED: u64 = 0x8998;

/// What the others are asked; bytes in hex.
#[derive(Debug, Serialize)]
struct Case {
    secret: String,
    message: String,
    /// Ours, in DER.
    signature: String,
    key: String,
    iv: String,
}

/// What they say.
#[derive(Debug, Deserialize)]
struct Answer {
    sm3: String,
    /// HMAC-SM3 under `key`, if they have it.
    hmac: Option<String>,
    /// Uncompressed.
    public: String,
    /// Whether our signature is good.
    verifies: bool,
    /// Whether it is good for the message with a zero byte behind it.
    verifies_another: bool,
    /// Theirs, in DER.
    signature: String,
    /// SM4 of the padded message.
    ecb: String,
    cbc: String,
}

#[tokio::test]
async fn sm_crypto_for_node_agrees() {
    let mut command = Command::new("node");
    command.arg(script("sm.js")).env("NODE_PATH", tool("node/node_modules"));

    agrees(command).await;
}

#[tokio::test]
async fn gmssl_for_python_agrees() {
    let mut command = Command::new(tool("python/bin/python"));
    command.arg(script("sm.py"));

    agrees(command).await;
}

async fn agrees(command: Command) {
    let mut rng = StdRng::seed_from_u64(SEED);
    let cases: Vec<Case> = (0..CASES).map(|_| case(&mut rng)).collect();

    let output = run(command, &serde_json::to_vec(&cases).unwrap()).await;
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "run ops/tools/install: {complaint}");
    let answers: Vec<Answer> = serde_json::from_slice(&output.stdout).unwrap();

    assert_eq!(answers.len(), CASES);
    for (case, answer) in cases.iter().zip(answers) {
        check(case, &answer);
    }
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop").join(name)
}

fn case(rng: &mut StdRng) -> Case {
    let mut bytes = |length: usize| {
        let mut bytes = vec![0; length];
        rng.fill_bytes(&mut bytes);
        bytes
    };
    let (secret, key, iv) = (bytes(32), bytes(16), bytes(16));
    let mut message = bytes(MESSAGE_BYTES_MAX);
    message.truncate(rng.random_range(0..=MESSAGE_BYTES_MAX));
    let signing = SigningKey::from_slice(IDENTITY, &secret).unwrap();
    let signature: Signature = signing.sign(&message);
    Case {
        secret: hex::encode(secret),
        message: hex::encode(message),
        signature: hex::encode(signature.to_der().as_bytes()),
        key: hex::encode(key),
        iv: hex::encode(iv),
    }
}

fn check(case: &Case, answer: &Answer) {
    let message = hex::decode(&case.message).unwrap();
    let key = hex::decode(&case.key).unwrap();
    let iv: [u8; 16] = hex::decode(&case.iv).unwrap().try_into().unwrap();
    let signing = SigningKey::from_slice(IDENTITY, &hex::decode(&case.secret).unwrap()).unwrap();
    let public = signing.verifying_key();
    let signature = Signature::from_der(&hex::decode(&answer.signature).unwrap()).unwrap();

    assert_eq!(answer.sm3, hex::encode(Sm3::digest(&message)), "{case:?}");
    if let Some(hmac) = &answer.hmac {
        assert_eq!(*hmac, hmac_sm3(&key, &message), "{case:?}");
    }
    assert_eq!(answer.public, hex::encode(public.to_sec1_bytes()), "{case:?}");
    assert!(answer.verifies && !answer.verifies_another, "{case:?}");
    assert!(public.verify(&message, &signature).is_ok(), "{case:?} {answer:?}");
    assert!(public.verify(&[&message, &[0][..]].concat(), &signature).is_err(), "{case:?}");
    assert_eq!(answer.ecb, sm4(&key, &message, None), "{case:?}");
    assert_eq!(answer.cbc, sm4(&key, &message, Some(iv)), "{case:?}");
}

fn hmac_sm3(key: &[u8], message: &[u8]) -> String {
    let mut mac = Hmac::<Sm3>::new_from_slice(key).unwrap();
    mac.update(message);
    hex::encode(mac.finalize().into_bytes())
}

/// Block by block, padded as PKCS#7 says; each with the one before where there is an `iv`.
fn sm4(key: &[u8], message: &[u8], iv: Option<[u8; 16]>) -> String {
    let cipher = Sm4::new_from_slice(key).unwrap();
    let padding = 16 - message.len() % 16;
    let padded = [message, &vec![u8::try_from(padding).unwrap(); padding]].concat();
    let mut before = iv;
    let mut encrypted = Vec::new();
    for block in padded.chunks(16) {
        let mut block: [u8; 16] = block.try_into().unwrap();
        if let Some(before) = before {
            block.iter_mut().zip(before).for_each(|(byte, it)| *byte ^= it);
        }
        cipher.encrypt_block((&mut block).into());
        before = before.map(|_| block);
        encrypted.extend(block);
    }
    hex::encode(encrypted)
}
