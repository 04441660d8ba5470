// The name of an incident, for whatever name a node may legally have.
import type { Boot, NodeSeen, Observed } from './model.ts'

/** The API server takes 253 characters. Beside the node's name there must be room for the digest, for the number, and for that
 *  of each attempt, whose name is made from this one; what is cut off the digest stands for. */
const longestPart = 220

/** The node, a digest of the boot, and a number one above the highest this boot had: a second open of the same one is a 409,
 *  and a name is not met again after earlier incidents were pruned. */
export function incidentName(seen: Observed, node: NodeSeen, boot: Boot): string {
  const stem = `${node.name.slice(0, longestPart).replace(/[^a-z0-9]+$/, '')}-${digest(`${node.uid} ${boot}`)}-`
  const numbers = [...seen.incidents.keys()].filter((name) => name.startsWith(stem)).map((name) => Number(name.slice(stem.length)))
  return `${stem}${Math.max(0, ...numbers.filter(Number.isInteger)) + 1}`
}

/** FNV-1a, twice with different starts: a name needs distinct, not unguessable. */
function digest(text: string): string {
  const half = (start: number): string => {
    let hash = start
    for (const char of text) hash = Math.imul(hash ^ (char.codePointAt(0) ?? 0), 0x01000193)
    return (hash >>> 0).toString(16).padStart(8, '0')
  }
  return half(0x811c9dc5).slice(0, 6) + half(0x01234567).slice(0, 4)
}
