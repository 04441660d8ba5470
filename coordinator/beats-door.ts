// The door of the beats server: a link comes in, says hello, its token is reviewed, and it is handed on or refused with the
// reason. Until then nothing that it says is kept.
import type { Hello } from '../core/beat.ts'
import { frameOf, readFirstWord } from '../core/frame.ts'
import type { Ms } from '../core/model.ts'
import type { Link, LinkEars } from '../edge/link.ts'
import type { Caller, Review, Reviews } from './beats-review.ts'
import type { CoordinatorHost } from './host.ts'

export interface DoorOptions {
  readonly host: Pick<CoordinatorHost, 'clock' | 'chance' | 'log'>
  readonly reviews: Reviews
  /** Who the token names is who they are; what the hello says of itself is its own word. */
  agent(link: Link, hello: Hello, caller: Caller & { is: 'agent' }, saidAt: Ms): LinkEars
  replica(link: Link, name: string): LinkEars
}

export interface Door {
  accept(link: Link): void
  refuse(link: Link, reason: string): void
  close(reason: string): void
}

/** Five seconds for a frame that an honest agent sends with the handshake's end. */
const helloWithin: Ms = 5_000
/** While the API server cannot say whether a token is good, the link is kept: thousands of new handshakes would cost more. */
const reviewWithin: Ms = 60_000
const reviewAgainAfter: Ms = 2_000
/** Twice the largest cluster. */
const mostWaiting = 10_000

export function createDoor({ host, reviews, agent, replica }: DoorOptions): Door {
  const { clock, log } = host
  const waiting = new Set<Link>()

  return {
    accept,
    refuse,
    close(reason) {
      for (const link of waiting) link.close(reason)
    },
  }

  function accept(link: Link): void {
    if (waiting.size >= mostWaiting) return refuse(link, 'too many links wait for their welcome')
    waiting.add(link)
    let ears: LinkEars | 'none' | 'reviewing' = 'none'
    let over = false
    const late = clock.after(helloWithin, () => refuse(link, 'no hello within five seconds'))
    link.listen({
      frame(frame) {
        if (ears === 'reviewing') return // out of turn, and nothing is kept of it
        if (ears !== 'none') return ears.frame(frame)
        ears = 'reviewing'
        late()
        void enter(link, frame, () => !over).then((entered) => {
          waiting.delete(link)
          if (over) return
          if (typeof entered === 'string') return refuse(link, entered)
          ears = entered()
        })
      },
      closed(reason) {
        over = true
        late()
        waiting.delete(link)
        if (typeof ears === 'object') ears.closed(reason)
      },
    })
  }

  /** Who hears the link from now on, or the sentence with which it is refused. */
  async function enter(link: Link, frame: Uint8Array, wanted: () => boolean): Promise<(() => LinkEars) | string> {
    const read = readFirstWord(frame)
    if (!('word' in read)) return 'garbage' in read ? read.garbage : `a link cannot begin with ${read.unknown}`
    const { word } = read
    const saidAt = clock.now()
    if (word.say !== 'hello' && word.say !== 'hello-replica') return `a link cannot begin with ${word.say}`
    const review = await patientReview(word.token, wanted)
    if ('refused' in review) return review.refused
    if ('unsure' in review) return review.unsure
    const { caller } = review
    if (word.say === 'hello') return caller.is === 'agent' ? () => agent(link, word, caller, saidAt) : 'a replica is no agent'
    return caller.is === 'replica' ? () => replica(link, word.replica) : 'an agent is no replica'
  }

  async function patientReview(token: string, wanted: () => boolean): Promise<Review> {
    const until = clock.now() + reviewWithin
    for (;;) {
      const review = await reviews.review(token, wanted)
      if (!('unsure' in review) || !wanted() || clock.now() > until) return review
      await clock.wait(reviewAgainAfter * (1 + host.chance()))
    }
  }

  function refuse(link: Link, reason: string): void {
    log.warn({ remote: link.remote, reason }, 'link refused')
    link.send(frameOf({ say: 'refused', reason: reason.slice(0, 1_000) }))
    link.close(reason)
  }
}
