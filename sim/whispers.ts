// Whispers between simulated hosts: single datagrams, lost, late, doubled or overtaken as the weather has it.
import type { Whispers } from '../edge/link.ts'
import type { Host, Network } from './network.ts'
import type { Process } from './process.ts'

type Reply = (question: Uint8Array, from: string) => Uint8Array | undefined

/** Who answers where. One registry a network: give every host of one network the same. */
export type WhisperPorts = Map<string, { readonly process: Process; readonly reply: Reply }>

export function simulatedWhispers(network: Network, ports: WhisperPorts, host: Host, process: Process): Whispers {
  return {
    ask(address, question, span, isAnswer) {
      const copy = new Uint8Array(question)
      return process.hold(new Promise((resolve) => {
        const stopWaiting = network.clock.after(span, () => resolve(undefined))
        const to = network.find(address.slice(0, address.lastIndexOf(':')))
        if (to === undefined) return
        throwPacket(network, host, to, () => {
          const answerer = ports.get(`${to.name}:${address.slice(address.lastIndexOf(':') + 1)}`)
          answerer?.process.deliver(() => {
            const answer = answerer.reply(copy, host.address)
            if (answer === undefined) return
            const back = new Uint8Array(answer)
            throwPacket(network, to, host, () => {
              if (!isAnswer(back)) return
              stopWaiting()
              resolve(back)
            })
          })
        })
      }))
    },
    async answer(port, reply) {
      const own = port === 0 ? host.nextPort++ : port
      const key = `${host.name}:${own}`
      if (ports.get(key)?.process.alive() === true) throw new Error(`whisper port ${own} of ${host.name} is taken`)
      const entry = { process, reply }
      ports.set(key, entry)
      const close = () => {
        if (ports.get(key) === entry) ports.delete(key)
      }
      process.onEnd(close)
      return { port: own, close }
    },
  }
}

function throwPacket(network: Network, from: Host, to: Host, arrived: () => void): void {
  const { chance, weather } = network
  const copies = chance.yes(weather.duplicate) ? 2 : 1
  const boot = to.boot
  for (let copy = 0; copy < copies; copy++) {
    const lost = chance.yes(weather.loss)
    network.clock.after(network.delay(), () => {
      // A stuck userspace reads no socket either; the datagram stays in the kernel's buffer and is stale when it is read.
      if (!lost && to.kernel === 'up' && to.boot === boot && network.reach(from, to, 'whisper') === 'open') arrived()
    })
  }
}
