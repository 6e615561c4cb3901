// What sm-crypto says of the cases on standard input: see primitives.rs.
'use strict'

const { sm2, sm3, sm4 } = require('sm-crypto')

const bytes = (hex) => [...Buffer.from(hex, 'hex')]
const cases = JSON.parse(require('fs').readFileSync(0, 'utf8'))
const answers = cases.map(({ secret, message, signature, key, iv }) => {
  const publicKey = sm2.getPublicKeyFromPrivateKey(secret)
  const verifies = (what) => sm2.doVerifySignature(what, signature, publicKey, { der: true })
  return {
    sm3: sm3(bytes(message)),
    hmac: sm3(bytes(message), { key: bytes(key) }),
    public: publicKey,
    verifies: verifies(bytes(message)),
    verifies_another: verifies(bytes(message + '00')),
    signature: sm2.doSignature(bytes(message), secret, { der: true }),
    ecb: sm4.encrypt(bytes(message), key),
    cbc: sm4.encrypt(bytes(message), key, { mode: 'cbc', iv }),
  }
})
process.stdout.write(JSON.stringify(answers))
