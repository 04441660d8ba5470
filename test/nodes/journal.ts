// What the storage was asked, call by call, by whom and how each ended, in its own words (csi/main.go).
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Call {
  /** Seconds of the kernel that all machines share. */
  readonly at: number
  /** A node, or the controller. */
  readonly who: string
  readonly method: string
  /** Undefined: well. */
  readonly refused?: string
}

export function callsOf(storage: string, volume: string): readonly Call[] {
  return readFileSync(join(storage, `${volume}.journal`), 'utf8').split('\n').flatMap((line) => {
    const [at = '', who = '', method = '', ...end] = line.split(' ')
    const said = end.join(' ')
    return method === '' ? [] : [{ at: Number(at), who, method, ...(said === '<nil>' ? {} : { refused: said }) }]
  })
}
