//! Vectors of the cipher itself, apart from TLS.

use aes_gcm::aead::AeadInOut;
use ccm::Ccm;
use ccm::consts::{U12, U16};
use sm4::Sm4;
use sm4::cipher::{BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};

const KEY: &str = "0123456789ABCDEFFEDCBA9876543210";

/// GB/T 32907, appendix A.1.
#[test]
fn sm4_gives_the_block_of_the_standard() {
    let cipher = Sm4::new_from_slice(&hex(KEY)).unwrap();
    let mut block = <[u8; 16]>::try_from(hex(KEY)).unwrap().into();

    cipher.encrypt_block(&mut block);
    assert_eq!(block[..], hex("681EDF34D206965E86B3E94F536E4246"));

    cipher.decrypt_block(&mut block);
    assert_eq!(block[..], hex(KEY));
}

/// GB/T 32907, appendix A.2: the same block a million times over.
#[test]
fn sm4_gives_the_millionth_block_of_the_standard() {
    let cipher = Sm4::new_from_slice(&hex(KEY)).unwrap();
    let mut block = <[u8; 16]>::try_from(hex(KEY)).unwrap().into();

    for _ in 0..1_000_000 {
        cipher.encrypt_block(&mut block);
    }

    assert_eq!(block[..], hex("595298C7C6FD271F0402F804C33D3F66"));
}

/// RFC 8998, appendix A.2. TLS_SM4_CCM_SM3 is not offered, since no peer needs it that has
/// TLS_SM4_GCM_SM3; its vector still checks the cipher, in a mode that has nothing in common with
/// the one in use. The vector of the mode in use stands beside the records.
#[test]
fn sm4_ccm_gives_the_ciphertext_and_tag_of_the_rfc() {
    let cipher = Ccm::<Sm4, U16, U12>::new_from_slice(&hex(KEY)).unwrap();
    let nonce = <[u8; 12]>::try_from(hex("00001234567800000000ABCD")).unwrap();
    let aad = hex("FEEDFACEDEADBEEFFEEDFACEDEADBEEFABADDAD2");
    let mut bytes = hex("AAAAAAAAAAAAAAAABBBBBBBBBBBBBBBBCCCCCCCCCCCCCCCCDDDDDDDDDDDDDDDD\
         EEEEEEEEEEEEEEEEFFFFFFFFFFFFFFFFEEEEEEEEEEEEEEEEAAAAAAAAAAAAAAAA");

    let buffer = bytes.as_mut_slice().into();
    let tag = cipher.encrypt_inout_detached(&nonce.into(), &aad, buffer).unwrap();

    assert_eq!(
        bytes,
        hex("48AF93501FA62ADBCD414CCE6034D895DDA1BF8F132F042098661572E7483094\
             FD12E518CE062C98ACEE28D95DF4416BED31A2F04476C18BB40C84A74B97DC5B")
    );
    assert_eq!(tag[..], hex("16842D4FA186F56AB33256971FA110F4"));
}

fn hex(text: &str) -> Vec<u8> {
    hex::decode(text).unwrap()
}
