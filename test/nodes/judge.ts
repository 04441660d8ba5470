// The judge of every story is the file that the workload writes. Its lines stand in the order in which the storage took them,
// from whichever machine they came: a boot that writes after another boot has begun to write is a second writer.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { logFile } from './workload.ts'

/** Lines of one boot of one machine, with none of another between them. */
export interface Turn {
  readonly node: string
  readonly boot: string
  /** Seconds of the kernel that all machines share. */
  readonly first: number
  readonly last: number
  readonly lines: number
}

export function turnsOf(storage: string, volume: string): readonly Turn[] {
  const file = join(storage, volume, logFile)
  return existsSync(file) ? turns(readFileSync(file, 'utf8')) : []
}

export function turns(text: string): readonly Turn[] {
  const found: Turn[] = []
  for (const line of text.split('\n')) {
    const [up = '', node = '', boot = ''] = line.split(' ')
    if (boot === '') continue
    const at = Number(up)
    const latest = found.at(-1)
    if (latest?.node === node && latest.boot === boot) found[found.length - 1] = { ...latest, last: at, lines: latest.lines + 1 }
    else found.push({ node, boot, first: at, last: at, lines: 1 })
  }
  return found
}

/** Each time that a boot wrote again after another one had begun. Empty: there were never two writers. */
export function secondWriters(found: readonly Turn[]): readonly string[] {
  return found.flatMap(({ node, boot, first }, index) => {
    const earlier = found.slice(0, index).findLastIndex((turn) => turn.boot === boot)
    const between = found[earlier + 1]
    return earlier === -1 || between === undefined ? [] : [`${node} (boot ${boot}) wrote at ${first} after ${between.node} (boot ${between.boot}) had begun at ${between.first}`]
  })
}
