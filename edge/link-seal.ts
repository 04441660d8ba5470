// A seal proves that who answers holds the key that one replica gave to one link of one node, and answered after the nonce
// was made. The boot is sealed with it: which boot is alive is the whole question.
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Boot } from '../core/model.ts'

/** Key, nonce and seal travel as base64url text. */
export function sealOf(key: string, nonce: string, boot: Boot): string {
  return digest(key, nonce, boot).toString('base64url')
}

export function sealHolds(key: string, nonce: string, boot: Boot, seal: string): boolean {
  const given = Buffer.from(seal, 'base64url')
  const right = digest(key, nonce, boot)
  return given.length === right.length && timingSafeEqual(given, right)
}

function digest(key: string, nonce: string, boot: Boot): Buffer {
  // JSON keeps nonce and boot apart: no two pairs look the same. The first word keeps this use of the key from any other.
  return createHmac('sha256', Buffer.from(key, 'base64url')).update(JSON.stringify(['holdfast seal', nonce, boot])).digest()
}
