// The probe and the listener of a coordinator in a network of machines, for one that runs outside of it: our own code, in a process there.
import { execPath } from 'node:process'
import { fileURLToPath } from 'node:url'
import { join } from 'node:path'
import type { Ms, ProbeWord } from '../../core/model.ts'
import { serveLines } from './lines.ts'
import type { Namespace } from './namespace.ts'
import { until, type Rack } from './rack.ts'

export interface Outpost {
  serves(address: string): boolean
  probe(address: string, port: number, span: Ms): Promise<ProbeWord>
  /** Whoever wants to know of words of crash kernels, and from where. */
  kdump(heard: (from: string) => void): Promise<{ close(): Promise<void> }>
  /** What the port of each address said last, each time that it was another word: since when. */
  readonly words: readonly { readonly address: string; readonly word: ProbeWord; readonly at: number }[]
  readonly heard: readonly { readonly from: string; readonly at: number }[]
}

export const kdumpPort = 7_410

const program = fileURLToPath(new URL('outpost-program.ts', import.meta.url))

export async function startOutpost(rack: Rack, network: Namespace, addresses: readonly string[]): Promise<Outpost> {
  const ears = new Set<(from: string) => void>()
  const waiting = new Map<string, (word: ProbeWord) => void>()
  const words: { address: string; word: ProbeWord; at: number }[] = []
  const heard: { from: string; at: number }[] = []
  let ready = false
  let count = 0
  const line = rack.keep(await serveLines(join(rack.folder, 'outpost'), async (lines) => {
    for await (const said of lines) {
      const [what, one = '', other = ''] = said.split(' ')
      if (what === 'ready') ready = true
      if (what === 'heard') {
        heard.push({ from: one, at: performance.now() })
        for (const ear of ears) ear(one)
      }
      if (what === 'answered') waiting.get(one)?.(other as ProbeWord) // as our own program says it
    }
  }))
  await rack.start('outpost', network.command(execPath, program, line.path, String(kdumpPort)))
  await until('the outpost to listen', () => ready)
  return {
    words, heard, serves: (address) => addresses.includes(address),
    async probe(address, port, span) {
      count += 1
      const id = String(count)
      const word = await new Promise<ProbeWord>((resolve) => {
        waiting.set(id, resolve)
        line.say(`${id} ${address} ${port} ${span}\n`)
      })
      waiting.delete(id)
      if (words.findLast((one) => one.address === address)?.word !== word) words.push({ address, word, at: performance.now() })
      return word
    },
    async kdump(ear) {
      ears.add(ear)
      return { close: async () => void ears.delete(ear) }
    },
  }
}
