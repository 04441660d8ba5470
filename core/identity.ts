// What a fence proves of the path that it used, where no device tells whose it is. An *off* proves nothing of it: the machine was
// dead, and would have been silent whatever was switched. What follows the *on* does: of all that could have been struck, this node alone came
// up, in a boot that is younger than the order. Whatever may have started it otherwise, or may have been started with it, takes that away, and
// is told by name. A timer in a kernel that panicked nobody sees: docs/decisions/0050-fences-that-prove.md.
import { mayStrike } from './device.ts'
import { orderedBeside } from './drill.ts'
import { given, isOf, shownFalse, type Attempt, type IdentitySeen } from './incident.ts'
import { isPowerOrder } from './isolation.ts'
import { onItsWay } from './judge.ts'
import { sameBoot, type Method, type Ms, type NodeSeen } from './model.ts'
import { isIdentified } from './path.ts'
import { latestBoot, type Situation } from './situation.ts'

/** A hello that took longer was refused at the door: what its uptime says is no older. */
const helloWithin: Ms = 5_000
/** A node counts as heard before an order if it beat so shortly before it. */
const heardBefore: Ms = 2_500

/** Asked at the end of an incident. Undefined: nothing was switched, or each device tells its machine by itself. */
export function identityOfFence(at: Situation): IdentitySeen | undefined {
  const { node, status } = at
  const orders = given(status).filter((attempt) => isPowerOrder(attempt, node))
  const level = orders.findLast(({ action }) => action === 'off')?.level ?? -1
  const methods = node.path.levels[level] ?? []
  if (methods.every((method) => isIdentified(node, method, latestBoot(node)))) return undefined
  const lacks = notOurs(at, orders, level, methods) ?? notByIt(at, orders) ?? notAlone(at, orders, methods)
  const names = methods.map(({ name }) => name).join(', ')
  return {
    proven: lacks === undefined, digests: methods.map(({ digest }) => digest),
    detail: lacks ?? `${names} ordered on, ${node.name} came up in a boot that is younger, and no other node did`,
  }
}

/** What of its level was not switched in this incident, by this leader, as it is configured now. */
function notOurs({ status }: Situation, orders: readonly Attempt[], level: number, methods: readonly Method[]): string | undefined {
  if (shownFalse(status).length > 0) return 'a proof made by it was shown false'
  if (orders.some(({ term }) => term !== status.term)) return 'another replica led when it was ordered, and this one cannot tell when that was'
  if (orders.some((order) => order.level !== level)) return 'more than one level was switched, and each may have been what brought it back'
  const missed = methods.find((method) => {
    const own = orders.filter((order) => isOf(order, method))
    return own.at(-1)?.result !== 'on' || !own.some(({ result }) => result === 'off')
  })
  return missed && `${missed.name} was not switched off and on again`
}

/** What else may have started the machine. */
function notByIt({ incident, node, status }: Situation, orders: readonly Attempt[]): string | undefined {
  const { beat } = node
  if (beat?.bootedAt === undefined || sameBoot(beat.boot, incident.boot)) return `nothing tells when the boot of ${node.name} began`
  if (beat.before === 'shut down') return 'the boot before was shut down in good order, and not by it'
  if (status.dump !== undefined) return 'its crash kernel was heard, and boots the machine when its dump is over'
  const armed = [status.revoked?.watchdog, node.record?.watchdog, beat.watchdog].find((watchdog) => watchdog?.state === 'armed')
  if (armed !== undefined) return `its watchdog (${armed.identity}) was armed, and may have started it`
  const onAt = Math.min(...orders.filter(({ action }) => action === 'on').map(({ id }) => node.firstSeen.get(`began ${id}`) ?? Infinity))
  return beat.bootedAt - helloWithin >= onAt ? undefined : `the boot of ${node.name} is not surely younger than the order on`
}

/** Who else may have been struck, or may have been what struck it. */
function notAlone(at: Situation, orders: readonly Attempt[], methods: readonly Method[]): string | undefined {
  const { on, node } = at
  const offs = orders.filter(({ action }) => action === 'off')
  const began = Math.min(...offs.map(({ id }) => node.firstSeen.get(`began ${id}`) ?? -Infinity))
  const settled = Math.max(...offs.map(({ id }) => node.firstSeen.get(`ended ${id}`) ?? Infinity))
  for (const other of on.seen.nodes.values()) {
    if (other.name === node.name || other.gone === true || livedThrough(other, began, settled)) continue
    const struck = methods.some((method) => mayStrike(other, node, method))
    // Anywhere else a cable may lead, too; but who was silent long before, or has only joined since, is none of this.
    const fell = other.seenAt < began && (other.beat?.at ?? -Infinity) >= began - heardBefore
    if (struck || fell) return `nothing shows that ${other.name} ran on in its boot while it was off`
  }
  return orderedBeside(at, began, ['off', 'on'])
}

/** It was heard after the off, in a boot that was there before. */
function livedThrough({ beat }: NodeSeen, began: Ms, settled: Ms): boolean {
  return beat !== undefined && beat.at > settled + onItsWay && Math.min(beat.since, beat.bootedAt ?? Infinity) < began
}
