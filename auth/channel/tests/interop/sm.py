"""What gmssl says of the cases on standard input: see primitives.rs."""

import json
import secrets
import sys

from gmssl import sm2, sm3, sm4

N = int(sm2.default_ecc_table["n"], 16)


def public_of(secret):
    curve = sm2.CryptSM2(private_key=secret, public_key="")
    return curve._kg(int(secret, 16), sm2.default_ecc_table["g"])


def answer(case):
    message, key = bytes.fromhex(case["message"]), bytes.fromhex(case["key"])
    public = public_of(case["secret"])
    curve = sm2.CryptSM2(private_key=case["secret"], public_key="", asn1=True)
    # Set afterwards: the constructor would take digits off a key that begins with 04.
    curve.public_key = public
    nonce = "%064x" % (secrets.randbelow(N - 1) + 1)
    cipher = sm4.CryptSM4()
    cipher.set_key(key, sm4.SM4_ENCRYPT)
    return {
        "sm3": sm3.sm3_hash(list(message)),
        "public": "04" + public,
        "verifies": curve.verify_with_sm3(case["signature"], message),
        "verifies_another": curve.verify_with_sm3(case["signature"], message + b"\0"),
        "signature": curve.sign_with_sm3(message, nonce),
        "ecb": cipher.crypt_ecb(message).hex(),
        "cbc": cipher.crypt_cbc(bytes.fromhex(case["iv"]), message).hex(),
    }


json.dump([answer(case) for case in json.load(sys.stdin)], sys.stdout)
