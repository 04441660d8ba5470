// Links between replicas. Each dials every other; a question may travel on either's link. They carry "do you hear this
// node?" and nothing that changes anything: what all must agree on is in the API server.
import { frameOf, mostReplicas, readPeerWord } from '../core/frame.ts'
import type { PeerWord } from '../core/beat.ts'
import type { Boot, Ms, NodeName } from '../core/model.ts'
import type { Link, LinkEars } from '../edge/link.ts'
import { questions } from './beats-questions.ts'
import type { CoordinatorHost } from './host.ts'

/** `boot`: the node's seal was checked just now by the replica that says so. */
export interface ReplicaWitness { readonly word: 'hears' | 'deaf'; readonly boot?: Boot }

export interface ReplicaLinks {
  /** A link that another replica dialled and whose hello was believed. The caller passes on what it hears. */
  accepted(link: Link, name: string): LinkEars
  setAddresses(addresses: readonly string[]): void
  names(): readonly string[]
  /** Undefined: no link to it, or no answer within the span. */
  ask(replica: string, node: NodeName, span: Ms): Promise<ReplicaWitness | undefined>
  close(): void
}

export interface ReplicaLinksOptions {
  readonly host: Pick<CoordinatorHost, 'clock' | 'chance' | 'log' | 'dialer'>
  readonly replica: string
  token(): Promise<string | undefined>
  /** Answers the others' questions. */
  answer(node: NodeName): Promise<ReplicaWitness>
}

const dialWithin: Ms = 3_000
/** As long as the other side tries to have the token reviewed. */
const welcomeWithin: Ms = 60_000
const firstRedial: Ms = 500
const lastRedial: Ms = 5_000
const mostQuestions = 1_000

interface Dialled {
  wanted: boolean
  link?: Link
  /** Ends the wait before the next dial. */
  readonly stop: AbortController
}

export function keepReplicaLinks({ host, replica, token, answer }: ReplicaLinksOptions): ReplicaLinks {
  const { clock, log } = host
  const open = new Map<Link, string>()
  const dialled = new Map<string, Dialled>()
  const asked = questions<string, ReplicaWitness>(clock, mostQuestions)
  let count = 0
  let closed = false

  return {
    accepted(link, name) {
      open.set(link, name)
      // Nothing is sealed between replicas, so there is no key to give.
      link.send(frameOf({ say: 'welcome', node: '', replica, key: '' }))
      log.info({ replica: name, remote: link.remote }, 'replica welcomed')
      return { frame: (frame) => hear(link, name, frame), closed: () => { open.delete(link) } }
    },
    setAddresses(addresses) {
      if (closed) return
      const wanted = new Set(addresses.slice(0, mostReplicas))
      for (const [address, entry] of dialled) if (!wanted.has(address)) leave(address, entry)
      for (const address of wanted) if (!dialled.has(address)) void keep(address)
    },
    names() {
      const names: string[] = []
      for (const name of open.values()) if (name !== replica && !names.includes(name)) names.push(name)
      return names
    },
    async ask(name, node, span) {
      const link = [...open].findLast(([, of]) => of === name)?.[0]
      if (link === undefined) return undefined
      count += 1
      const id = count
      return asked.ask(`${name} ${id}`, span, () => link.send(frameOf({ say: 'hears', id, node })))
    },
    close() {
      closed = true
      asked.close()
      for (const [address, entry] of dialled) leave(address, entry)
      for (const link of open.keys()) link.close('this replica stops')
    },
  }

  function leave(address: string, entry: Dialled): void {
    entry.wanted = false
    entry.stop.abort()
    entry.link?.close('this replica is not one of ours any more')
    dialled.delete(address)
  }

  /** Dials, and dials again, until the address is no longer wanted or turns out to be our own. */
  async function keep(address: string): Promise<void> {
    const entry: Dialled = { wanted: true, stop: new AbortController() }
    dialled.set(address, entry)
    for (let redial = firstRedial; entry.wanted; redial = Math.min(redial * 2, lastRedial)) {
      const began = clock.now()
      const end = await once(address, entry)
      if (end === 'ourselves') return
      if (clock.now() - began > welcomeWithin) redial = firstRedial
      await clock.wait(redial * (0.5 + host.chance()), entry.stop.signal)
    }
  }

  async function once(address: string, entry: Dialled): Promise<'ended' | 'ourselves'> {
    const mine = await token()
    if (mine === undefined || !entry.wanted) return 'ended'
    let link: Link
    try {
      link = await host.dialer.dial(address, dialWithin)
    } catch (error) {
      log.debug({ address, reason: String(error) }, 'replica not reached') // it is dialled again
      return 'ended'
    }
    if (!entry.wanted) {
      link.close('not wanted any more')
      return 'ended'
    }
    entry.link = link
    const end = await new Promise<'ended' | 'ourselves'>((resolve) => {
      let name: string | undefined
      const late = clock.after(welcomeWithin, () => link.close('no welcome'))
      link.listen({
        frame(frame) {
          if (name !== undefined) return hear(link, name, frame)
          const read = readPeerWord(frame)
          if ('word' in read && read.word.say === 'welcome') {
            late()
            name = read.word.replica
            if (name === replica) {
              resolve('ourselves')
              return link.close('this is ourselves')
            }
            open.set(link, name)
            return log.info({ replica: name, address }, 'linked to replica')
          }
          const reason = 'word' in read && read.word.say === 'refused' ? read.word.reason : 'it answered the hello with something else'
          log.warn({ address, reason }, 'replica refuses us')
          link.close(reason)
        },
        closed() {
          late()
          open.delete(link)
          resolve('ended')
        },
      })
      link.send(frameOf({ say: 'hello-replica', version: 1, token: mine, replica }))
    })
    delete entry.link
    return end
  }

  function hear(link: Link, name: string, frame: Uint8Array): void {
    const read = readPeerWord(frame)
    if ('garbage' in read) {
      log.warn({ replica: name, reason: read.garbage }, 'garbage from a replica')
      return link.close(read.garbage)
    }
    if ('word' in read) take(link, name, read.word)
  }

  function take(link: Link, name: string, word: PeerWord): void {
    switch (word.say) {
      case 'hears':
        void answer(word.node).then((said) => link.send(frameOf({ say: 'heard', id: word.id, ...said })))
        return
      case 'heard':
        asked.answer(`${name} ${word.id}`, word)
        return
      case 'hello-replica':
      case 'welcome':
      case 'refused':
        return // said once, at the beginning, or last, before the end
    }
  }
}
