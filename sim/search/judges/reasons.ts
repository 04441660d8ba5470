// What must be so in the world for each reason of a hold to be true. The product's word is held against machines, network,
// devices and the API server's store; where a reason speaks of what the product knows, against what it must know by now.
import type { Ms } from '../../../core/model.ts'
import { crashKernels } from '../crash-kernels.ts'
import { toldLate } from '../remedies.ts'
import { bootAt, bootId, cutOtherwise, deceived, inBoot, isOff, leftovers, machineOf, provenOff, refusesTooSoon, runsFor, saidGoodbye, sameBoot, seconds, switchedOffByUs } from './facts.ts'
import type { Fence, Sight } from './sight.ts'

export interface Held {
  readonly node: string
  readonly because: string
  readonly detail: string
  /** The incident whose hold it is. */
  readonly fence?: Fence
}

/** Why it is false. Undefined: it is true, or nobody can say that it is not. */
export type Lie = string | undefined

export function lie(held: Held, sight: Sight): Lie {
  const truth = truths[held.because]
  if (truth === undefined) return `no judge knows a reason ${held.because}`
  // What a remedy would have done, and what keeps it from that.
  const detail = held.because === 'ailing' ? held.detail : held.detail.replace(/^.* would have it fenced; /s, '')
  return truth({ ...held, detail }, sight)
}

type Truth = (held: Held, sight: Sight) => Lie

/** The window of a storm and what a leader hears of its end. */
const stormFor: Ms = 60_000
const stormShare = 0.4
/** A silent machine is dead to everybody after so long: the loss of Ready, and a whole interval of its Lease after that. */
const deadToAll: Ms = 90_000
/** What a leader who never heard a node waits before it judges it, and then as long as everybody. */
const strangerFor: Ms = 120_000 + deadToAll
const cachesOutlive: Ms = 30_000
/** A device that was asked within this span and answered, answers. */
const askedWithin: Ms = 30_000

export const truths: Readonly<Record<string, Truth>> = {
  storm({ detail, node }, sight) {
    if (detail.includes('ail alike')) return ailsOrDid([...sight.world.nodes.keys()], sight) >= 2 ? undefined : 'no two nodes ail'
    const zone = / in zone (\S+) fell/.exec(detail)?.[1]
    const among = [...sight.world.nodes.values()].map(({ machine }) => machine).filter(({ settings }) => zone === undefined || settings.zone === zone)
    const silent = among.filter(({ name }) => sight.wellness.silentAgo(name) <= stormFor && !provenOff(name, sight))
    return silent.length >= 2 && silent.length > stormShare * among.length ? undefined : `of ${among.length} nodes, ${node} among them, ${silent.length} have been silent in the last minute`
  },
  storage: ({ detail }, sight) => (sight.nodes().some(({ status }) => status?.conditions?.some(({ type, status: word }) => word === 'True' && detail.includes(` ${type}`)) === true) ? undefined : 'no node bears that condition'),
  concurrency({ detail, node, fence }, sight) {
    if (detail.includes('of the same node is open')) return sight.openOf(node).length > 1 ? undefined : `no other incident of ${node} is open`
    const struck = / was ordered off by /.test(detail) ? detail.split(' was ordered off by ')[0] : undefined
    if (struck !== undefined) return sight.now - Math.max(lastOrder(struck, 'off', sight), lastOrder(struck, 'on', sight)) <= spanOf(fence?.spec.policy.bootWithin ?? '600s') + longestOrder(fence) ? undefined : `nothing was ordered of ${struck} for long`
    const [, remedied] = /^(\S+) is fenced by a remedy/.exec(detail) ?? []
    if (remedied !== undefined) return sight.openOf(remedied).length > 0 || ailsOrDid([remedied], sight) > 0 ? undefined : `no incident of ${remedied} is open, and nothing ails it`
    const named = (detail.split(/ (?:is|are) being fenced/)[0] ?? '').split(', ')
    const idle = named.find((name) => !sight.openOf(name).some(({ metadata, status }) => metadata.name !== fence?.metadata.name && status?.phase !== 'Done' && status?.step !== 'recovery'))
    return idle === undefined ? undefined : `nothing is being done about ${idle}`
  },
  'control-plane'({ node, detail }, sight) {
    if (detail.includes('where the members of etcd are')) return sight.nodes().some(({ metadata }) => metadata.labels?.['node-role.kubernetes.io/etcd'] !== undefined) || !sight.nodes().some(({ metadata }) => metadata.name === node && metadata.labels?.['node-role.kubernetes.io/control-plane'] !== undefined) ? 'a label tells it, or it is no control-plane node' : undefined
    const members = sight.nodes().filter(({ metadata }) => metadata.labels?.['node-role.kubernetes.io/control-plane'] !== undefined)
    if (!members.some(({ metadata }) => metadata.name === node)) return `${node} is no control-plane node`
    const others = members.map(({ metadata }) => metadata.name).filter((name) => name !== node)
    const standing = others.filter((name) => sight.wellness.wellFor(name) > 0)
    return others.some((name) => sight.openOf(name).length > 0) || standing.length * 2 <= members.length ? undefined : `${standing.length} of ${members.length} stand`
  },
  'path-unverified': (held, sight) => eachPart(held, sight),
  'out-of-levels': (held, sight) => eachPart(held, sight),
  'identity-unproven'({ node, detail }, sight) {
    const method = /that (\S+) (?:is wired|leads)/.exec(detail)?.[1] ?? ''
    // Then it is what the device tells now that counts.
    const words = sight.configEdited() ? [] : sight.words(node, method, isForgotten(node, sight) ? askedWithin : Infinity)
    const told = words.findLast(({ at, says, machine }) => says === 'on' && machine === machineOf(node, sight) && at >= bootAt(node, sight))
    return told === undefined ? undefined : `${told.device} told the machine's own UUID in this boot`
  },
  'no-path': ({ node }, sight) => (sight.configs().some(({ metadata: { name }, data }) => [`fence-config-${node}`, 'fence-config-default'].includes(name) && data?.['config.properties']?.includes('power_management=') === true)
    ? `a fence configuration for ${node} stands` : undefined),
  'config-invalid': (_held, sight) => (sight.configEdited() ? undefined : 'nobody ever touched the fence configuration'),
  'not-dead'({ node, detail }, sight) {
    const { speaksFor, deadFor } = sight.wellness
    if (speaksFor(node) > 0) return `${node} has been well and speaking for ${seconds(speaksFor(node))}`
    const stranger = sight.now - sight.leaderSince() < strangerFor
    if (deadFor(node) < deadToAll || stranger || saidGoodbye(node, sight) || refusesTooSoon(node, sight)) return undefined
    // That its port was silent before a crash kernel refused there is worth something only where it is known to have answered.
    if (sight.world.nodes.get(node)?.machine.host.kernel === 'crash' && isForgotten(node, sight)) return undefined
    return `${node} has been dead for ${seconds(deadFor(node))}: ${detail}`
  },
  blind({ node, detail }, sight) {
    if (detail.includes('nothing is known of its node')) return sight.node(node) === undefined ? undefined : 'the Node stands in the store'
    return sight.leads() ? 'the leader runs, reaches the API server, and is served' : undefined
  },
  pause({ fence }, sight) {
    const standing = sight.configs().some(({ metadata }) => metadata.name === 'holdfast-pause') || sight.policies().some(({ spec }) => spec?.pause !== undefined)
    return standing || fence?.spec.policy.pause !== undefined ? undefined : 'nobody pauses'
  },
  'dry-run': ({ fence }, sight) => (fence?.spec.policy.mode === 'dryRun' || sight.policies().some(({ spec }) => spec?.mode === 'dryRun') ? undefined : 'no policy is a dry run'),
  unselected: (_held, sight) => (sight.policies().length === 0 ? undefined : 'a policy for all nodes stands'),
  'policy-conflict': (_held, sight) => (sight.policies().length > 1 ? undefined : 'there are no two policies'),
  'do-nothing': ({ fence }) => (fence?.spec.policy.nodeDownPodDeletionPolicy === 'DeleteAllPods' ? 'its policy says DeleteAllPods' : undefined),
  'not-due': ({ fence }) => (fence?.spec.policy.onlyTerminating === true || (fence?.spec.policy.volumeAttachmentRecovery ?? 'never') !== 'never' ? undefined : 'its policy waits for no eviction'),
  'power-after'({ node, fence }, sight) {
    const span = spanOf(fence?.spec.policy.powerAfter ?? '0s')
    const begun = Math.max(lastOrder(node, 'off', sight), sight.leaderSince())
    return sight.now - begun <= span + longestOrder(fence) ? undefined : `the last order was begun ${seconds(sight.now - begun)} ago, and powerAfter is ${seconds(span)}`
  },
  exhausted({ fence }) {
    const { restarts } = fence?.spec.policy ?? {}
    return restarts === undefined || (fence?.status?.round ?? 1) <= restarts ? 'its policy allows another restart' : undefined
  },
  partial: ({ fence }) => (['isolated', 'safe-detach'].includes(fence?.status?.proof?.kind ?? '') ? undefined : 'its proof is of the whole machine, or it has none'),
  permit: ({ fence }) => (fence?.spec.policy.waitForPermit === true && fence.status?.proof?.kind === 'off' ? undefined : 'its policy waits for no permit, or nothing is proven'),
  evicting: evicts, 'disruption-budget': evicts,
  'self-fencing'({ node, detail, fence }, sight) {
    if (fence?.spec.policy.selfFenced !== 'accept') return 'its policy does not accept what a watchdog proves'
    const { watchdog } = sight.world.nodes.get(node)?.machine.settings ?? {}
    return detail.includes('it is a virtual machine') && watchdog?.virtual !== true ? `the machine of ${node} is a real one` : undefined
  },
  exclude: annotated, maintenance: annotated, 'kept-off': annotated,
  remediator: ({ node, detail }, sight) => (sight.node(node)?.spec?.taints?.some(({ key }) => detail.includes(key)) === true ? undefined : `no other remediator's mark is on ${node}`),
  'repeat-limit': ({ node, detail }, sight) => {
    if (detail.startsWith('a remedy began on it')) return sight.fences().some(({ spec }) => spec.nodeName === node && spec.cause === 'remedy') ? undefined : `no remedy ever began on ${node}`
    const times = Number(/fenced (\d+) times/.exec(detail)?.[1])
    return sight.fences().filter(({ spec }) => spec.nodeName === node).length >= times ? undefined : `${node} has not had ${times} incidents`
  },
  ailing({ node, detail }, sight) {
    if (ailsOrDid([node], sight) > 0) return undefined
    const condition = /^(\S+) is True/.exec(detail)?.[1]
    if (condition !== undefined) return sight.node(node)?.status?.conditions?.some(({ type, status }) => type === condition && status === 'True') === true ? undefined : `${node} does not say ${condition}`
    const [, vital = '', above = ''] = /^(\S+) .*, above ([\d.]+)/.exec(detail) ?? []
    const { vitals } = sight.world.nodes.get(node)?.faults ?? {}
    const value = vitals === undefined || vitals === 'untold' ? undefined : vitals[vital as keyof typeof vitals] // a word of the product, which may be none of them
    return value !== undefined && value > Number(above) ? undefined : `the ${vital} of ${node} is not above ${above}`
  },
  dumping({ node, detail }, sight) {
    const { speaksFor, deadFor } = sight.wellness
    if (speaksFor(node) > 0) return `${node} has been well and speaking for ${seconds(speaksFor(node))}`
    const { dumpsWithin, announcesWithin } = crashKernels
    const silent = Math.min(deadFor(node), sight.now - sight.leaderSince())
    if (detail.includes('to announce itself')) return silent <= announcesWithin ? undefined : `${node} has been dead for ${seconds(deadFor(node))}`
    const heard = sight.world.truth.entries.find(({ at, what, facts }) => what === 'crash kernel heard' && facts['node'] === node && at >= bootAt(node, sight))
    if (heard === undefined) return `no crash kernel of ${node} was heard in its boot`
    const since = Math.max(heard.at, sight.leaderSince())
    return sight.now - since <= dumpsWithin ? undefined : `its crash kernel was heard ${seconds(sight.now - since)} ago`
  },
  'order-may-land': mayLand,
  resting({ node, fence }, sight) {
    const rest = spanOf(fence?.spec.policy.restAfter ?? '1m')
    const begun = Math.max(lastOrder(node, 'off', sight), sight.leaderSince())
    return sight.now - begun <= rest + longestOrder(fence) ? undefined : `the last order was begun ${seconds(sight.now - begun)} ago, and a rest is ${seconds(rest)}`
  },
  'waiting-for-boot'({ node, detail, fence }, sight) {
    if (detail === 'it shuts down by itself') return saidGoodbye(node, sight) ? undefined : `${node} never said that it would`
    if (sight.wellness.speaksFor(node) > 0) return `${node} runs and speaks, for ${seconds(sight.wellness.speaksFor(node))}`
    if (detail.includes('nobody here switched it off')) return switchedOffByUs(node, sight) ? 'an order of ours switched it off' : undefined
    const ordered = fence === undefined || !detail.startsWith('ordered on') ? undefined : lastOrder(node, 'on', sight)
    return ordered === -Infinity ? 'nobody ordered it on' : undefined
  },
  'still-cut'({ node, detail }, sight) {
    const [, named] = lostMethods.exec(detail) ?? []
    if (named !== undefined) {
      const there = named.split(', ').find((method) => !cutOtherwise(node, method, sight))
      return there === undefined ? undefined : `the fence configuration stands as it did whenever ${there} was ordered off`
    }
    const methods = (detail.split(' was ordered off')[0] ?? '').split(', ')
    const says = methods.flatMap((method) => sight.words(node, method, askedWithin).slice(-2))
    return runsFor(node, sight) > 0 && says.length >= 2 && says.every((word) => word.says === 'on') ? `${node} runs, and ${methods.join(', ')} says on` : undefined
  },
  'waiting-for-clean': unclean, 'out-of-patience': unclean,
  'waiting-for-volumes': ({ node }, sight) => (sight.attachments(node).length > 0 ? undefined : `no VolumeAttachment names ${node}`),
  'waiting-for-controllers'({ node, detail }, sight) {
    if (detail.startsWith('out-of-service is')) {
      const gone = Math.max(sight.outOfServiceAt(node) ?? -Infinity, sight.leaderSince())
      return sight.now - gone <= cachesOutlive ? undefined : `out-of-service has been gone for ${seconds(sight.now - gone)}`
    }
    const [, own] = /own (\S+) is still on/.exec(detail) ?? []
    return sight.node(node)?.spec?.taints?.some(({ key }) => key === own) === true ? undefined : `${node} does not bear ${own}`
  },
  'waiting-for-kubelet'({ node }, sight) {
    const there = sight.node(node)
    const ready = there?.status?.conditions?.find(({ type }) => type === 'Ready')?.status === 'True'
    const posted = ready && there?.status?.nodeInfo?.bootID === sight.world.nodes.get(node)?.machine.boot()?.id
    return posted && sight.world.nodes.get(node)?.kubelet()?.healthy() === true ? `kubelet on ${node} runs, and Ready stands in the store for this boot` : undefined
  },
  'proof-void': ({ fence }) => ((fence?.status?.voided ?? []).length > 0 ? undefined : 'no proof was shown false'),
  'proof-doubted'({ node, detail, fence }, sight) {
    if (detail.startsWith('the proof on record')) return [undefined, fence?.spec.boot].includes(fence?.status?.proof?.boot) ? 'no proof on record is of another boot' : undefined
    if (detail.startsWith('the fenced boot beats')) return runsFor(node, sight) > 0 && sameBoot(fence, node, sight) ? undefined : 'that boot does not run'
    const [, beside] = /^nothing more is freed: \S+ of (\S+) was ordered on since/.exec(detail) ?? []
    if (beside !== undefined) return lastOrder(beside, 'on', sight) === -Infinity ? `nothing of ${beside} was ordered on` : undefined
    const words = (fence?.status?.proof?.methods ?? []).map((method) => sight.words(node, method, askedWithin).filter(({ machine }) => machine === undefined || machine === machineOf(node, sight)).slice(-3))
    const off = words.length > 0 && words.every((said) => said.length === 3 && said.every(({ says }) => says === 'off'))
    return off && isOff(node, sight) ? `${node} is off, and each device of the proof has said so three times` : undefined
  },
  aborted({ node, fence }, sight) {
    if (fence?.spec.abort !== true) return 'nobody aborted it'
    return sight.wellness.speaksFor(node) > 0 ? `${node} runs and speaks, for ${seconds(sight.wellness.speaksFor(node))}` : undefined
  },
  'abort-refused': ({ fence }) => (fence?.spec.abort === true && fence.status?.proof !== undefined ? undefined : 'nobody aborted it, or nothing is proven'),
  unvouched: ({ fence }) => (fence?.spec.acknowledge === undefined ? 'nobody acknowledged anything' : undefined),
  finalizer: ({ node }, sight) => (sight.pods(node).some(({ metadata }) => metadata.deletionTimestamp !== undefined && (metadata.finalizers ?? []).length > 0) ? undefined : `no finalizer keeps a pod of ${node}`),
  'sent-back': ({ node }, sight) => (sight.pods(node).some(({ spec }) => (spec.tolerations ?? []).length > 0) ? undefined : `no pod on ${node} tolerates anything`),
  rate: ({ node }, sight) => (sight.pods(node).length > 0 ? undefined : `no pod is on ${node}`),
  'foreign-taint': ({ node }, sight) => (sight.node(node)?.spec?.taints?.some(({ key, value }) => key.endsWith('/out-of-service') && value !== 'holdfast') === true ? undefined : `nobody else's out-of-service is on ${node}`),
  unreadable: ({ node }, sight) => (sight.fences().some(({ spec, status }) => spec.nodeName === node && (spec.boot === undefined || !phases.includes(status?.phase ?? 'New'))) ? undefined : `each NodeFence of ${node} has all that makes one`),
}

const lostMethods = /(?:^|; )([^;]+) was ordered off, and is not configured any more/

/** Whether it says of the machine that what is configured now did not switch it off, and that is so. */
export function namesForgottenCut(held: Held, sight: Sight): boolean {
  return held.because === 'still-cut' && lostMethods.test(held.detail) && lie(held, sight) === undefined
}

/** Who deleted its record took away what was told of this boot before. */
function isForgotten(node: string, sight: Sight): boolean {
  return sight.world.truth.entries.some(({ at, what, facts }) => what === 'trouble' && facts['does'] === 'every NodeRecord is deleted' && at >= bootAt(node, sight))
}

function unclean({ node, detail }: Held, sight: Sight): Lie {
  if (detail === 'it is under quarantine as it is') return sight.ours(node).length > 0 ? undefined : `no taint of ours is on ${node}`
  if (detail.includes('cannot tell yet')) return sight.wellness.speaksFor(node) > 0 ? `${node} has been well and speaking for ${seconds(sight.wellness.speaksFor(node))}` : undefined
  return leftovers(node, sight).length > 0 ? undefined : `nothing is left over on ${node}`
}

function evicts({ fence }: Held): Lie {
  if (spanOf(fence?.spec.policy.evictWithin ?? '0s') === 0) return 'its policy gives no pod time to go'
  return fence?.status?.eviction?.over === undefined ? undefined : 'their time is over on the record'
}

function annotated({ node, because }: Held, sight: Sight): Lie {
  const key = `holdfast.dev/${because === 'kept-off' ? 'keep-off' : because}`
  return (sight.node(node)?.metadata.annotations ?? {})[key] === undefined ? `nobody put ${key} on ${node}` : undefined
}

/** How many of them ail, or did until lately: what an agent told stands until it looks again. */
function ailsOrDid(nodes: readonly string[], { wellness, now }: Sight): number {
  return nodes.filter((node) => wellness.ailments(node).some(({ until }) => now - until <= toldLate)).length
}

const phases = ['New', 'Running', 'Done', 'Final', 'Error']

/** `level 1: …; level 2: …`: each level says for itself why it cannot serve. */
function eachPart({ node, detail, fence }: Held, sight: Sight): Lie {
  for (const part of detail.split(/; (?=level \d+: )/)) {
    const [, method = '', says = ''] = /^(?:level \d+: )?(\S+) (.*)$/s.exec(part) ?? []
    const why = pathLie(node, method, says, fence, sight)
    if (why !== undefined) return why
  }
  return undefined
}

function pathLie(node: string, method: string, says: string, fence: Fence | undefined, sight: Sight): Lie {
  const words = sight.words(node, method, Infinity)
  const last = sight.words(node, method, askedWithin).slice(-2)
  if (says.startsWith('is marked')) return deceived(node, sight) ? undefined : `no device of ${node} ever said what was not so`
  if (says.startsWith('said off while this boot')) {
    const had = inBoot(fence?.spec.boot, node, sight)
    return words.some((word) => word.says === 'off' && had(word.at)) ? undefined : `${method} never said off while that boot had power`
  }
  if (says.startsWith('answers for another machine')) {
    return last.length === 2 && last.every(({ machine }) => machine === machineOf(node, sight)) ? `${method} answers for ${node}'s own machine` : undefined
  }
  if (says.startsWith('was never read on')) {
    const known = !sight.configEdited() && sight.paths(node).some((path) => path.method === method && path.state === 'verified' && bootId(path.boot) === bootId(fence?.spec.boot))
    return known ? `its own record of ${node} says that ${method} was read on in this boot` : undefined
  }
  if (says.startsWith('does not answer')) return last.length === 2 && last.every((word) => word.says === 'on' || word.says === 'off') ? `${method} answers` : undefined
  return undefined
}

function mayLand({ node, detail, fence }: Held, sight: Sight): Lie {
  if (detail.includes('nothing has told since')) {
    const methods = (/an order off to (.+?) did not end/.exec(detail)?.[1] ?? '').split(', ')
    const told = methods.every((method) => sight.words(node, method, askedWithin).filter(({ says }) => says === 'on' || says === 'off').length >= 2)
    return told ? `${methods.join(', ')} answers` : undefined
  }
  if (!detail.includes('may land for another')) return sight.ears.orders() > 0 ? undefined : 'no program gives an order'
  const begun = Math.max(lastOrder(node, 'off', sight), lastOrder(node, 'on', sight), sight.leaderSince())
  return sight.now - begun <= longestOrder(fence) ? undefined : `the last order was begun ${seconds(sight.now - begun)} ago`
}

/** All that the longest of its orders may take, and may take to land. */
function longestOrder(fence: Fence | undefined): Ms {
  return Math.max(0, ...(fence?.status?.attempts ?? []).map(({ within, late }) => spanOf(within) + spanOf(late)))
}

function lastOrder(node: string, to: 'on' | 'off', { ears, switches }: Sight): Ms {
  return Math.max(-Infinity, ...switches(node).flat().map(({ address, plug }) => ears.lastOrder(address, plug, to) ?? -Infinity))
}

/** `90s`, `1m30s`. */
function spanOf(text: string): Ms {
  const units: Readonly<Record<string, Ms>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 }
  return [...text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/g)].reduce((sum, [, count, unit = '']) => sum + Number(count) * (units[unit] ?? 0), 0)
}
