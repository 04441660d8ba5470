// Whispers of the embedded world: the product's own UDP datagrams on loopback, each of which the world's network lets pass or
// loses first.
import type { Ms } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'
import type { Whispers } from '../edge/link.ts'
import { machineWhispers } from '../edge/whisper.ts'
import type { Host, Network } from './network.ts'
import type { Process } from './process.ts'

export interface EmbeddedWhispers {
  of(host: Host, process: Process): Whispers
  close(): void
}

const loopback = '127.0.0.1'

export function embeddedWhispers(network: Network, clock: Clock): EmbeddedWhispers {
  // Who is behind a port: every machine has the one address of the loopback.
  const behind = new Map<number, Host>()
  const ears = new Set<{ close(): void }>()
  const real = machineWhispers(clock, loopback)

  return {
    of: (host, process) => ({
      ask: (address, question, span, isAnswer) => process.hold(ask(host, address, Uint8Array.from(question), span, isAnswer)),
      answer: (port, reply) => process.hold(answer(host, process, port, reply)),
    }),
    close() {
      for (const ear of ears) ear.close()
    },
  }

  async function ask(from: Host, address: string, question: Uint8Array, span: Ms, isAnswer: (answer: Uint8Array) => boolean): Promise<Uint8Array | undefined> {
    const to = behind.get(Number(address.slice(address.lastIndexOf(':') + 1)))
    if (to === undefined || !passes(from, to)) {
      await network.clock.wait(span)
      return undefined
    }
    const answered = await real.ask(address, question, span, isAnswer)
    return answered !== undefined && passes(to, from) ? Uint8Array.from(answered) : undefined
  }

  async function answer(host: Host, process: Process, port: number, reply: (question: Uint8Array, from: string) => Uint8Array | undefined): Promise<{ port: number; close(): void }> {
    const { boot } = host
    // A machine that stands still, or booted meanwhile, reads nothing; a late answer would be none.
    const ear = await real.answer(port, (question, from) => (host.boot === boot && host.kernel === 'up' && process.running() ? reply(question, from) : undefined))
    let open = true
    const close = () => {
      if (!open) return
      open = false
      ears.delete(kept)
      behind.delete(ear.port)
      ear.close()
    }
    const kept = { close }
    ears.add(kept)
    behind.set(ear.port, host)
    process.onEnd(close)
    return { port: ear.port, close }
  }

  function passes(from: Host, to: Host): boolean {
    return from.kernel === 'up' && to.kernel === 'up' && network.reach(from, to, 'whisper') === 'open' && !network.chance.yes(network.weather.loss)
  }
}
