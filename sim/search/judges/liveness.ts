// What has not ended once nothing goes wrong any more: incidents, taints, machines that are not back, a workload that does not
// run. And who is left in the dark: a machine that an order of ours switched off, a dead one that nobody has a word about.
import type { KubeObject } from '../../../coordinator/api.ts'
import type { Stage } from '../../stage.ts'
import type { Violation } from '../judgement.ts'
import { refusesTooSoon, switchedOffByUs } from './facts.ts'
import { heldIn } from './holds.ts'
import { namesForgottenCut } from './reasons.ts'
import { look, type Fence, type History } from './sight.ts'

interface Tainted extends KubeObject { readonly spec?: { readonly taints?: readonly { readonly key: string }[] } }
interface Bound extends KubeObject { readonly status?: { readonly phase?: string } }

/** What a world runs whatever else it is given. */
const usualPods = 3

/** Empty: everything has ended. */
export function unfinished({ world }: Stage): readonly string[] {
  const peek = <T extends KubeObject>(collection: string) => (world.server?.peek(collection) ?? []) as readonly T[] // each collection holds its kind
  const pods = peek<Bound>('pods').filter((pod) => pod.metadata.namespace === 'work')
  const wanted = usualPods + world.settings.objects.filter(({ kind }) => kind === 'Deployment' || kind === 'StatefulSet').length
  const idle = pods.filter((pod) => pod.status?.phase !== 'Running' || pod.metadata.deletionTimestamp !== undefined)
  return [
    ...peek<Fence>('nodefences.holdfast.dev').filter((fence) => fence.status?.phase !== 'Final').map(openSentence),
    ...peek<Tainted>('nodes').flatMap((node) => (node.spec?.taints ?? []).filter(({ key }) => key.startsWith('holdfast.dev/') || key.endsWith('out-of-service')).map(({ key }) => `${node.metadata.name} bears ${key}`)),
    ...[...world.nodes.keys()].filter((name) => world.nodes.get(name)?.machine.state() !== 'running').map((name) => `${name} is ${world.nodes.get(name)?.machine.state()}`),
    ...(pods.length < wanted || idle.length > 0 ? [`the workload does not run: ${pods.length} pods, ${idle.map((pod) => `${pod.metadata.name} ${pod.status?.phase}`).join(', ')}`] : []),
  ]
}

function openSentence({ metadata: { name }, status }: Fence): string {
  return `${name} is ${status?.phase} (${status?.holds?.map((hold) => `${hold.because}: ${hold.detail}`).join('; ')})`
}

/** Asked when nothing has gone wrong for minutes, before a person comes and switches on what is off. */
export function leftInTheDark(history: History): readonly Violation[] {
  const sight = look(history)
  const holds = heldIn(sight)
  const held = new Set(holds.map(({ node }) => node))
  // Another configuration of a method may be another outlet: nothing is switched on by it, and a person is told so.
  const named = new Set(holds.filter((one) => namesForgottenCut(one, sight)).map(({ node }) => node))
  return [...sight.world.nodes].flatMap(([node, { machine }]): readonly Violation[] => {
    // After a person's word nobody switches the machine on, whoever has cut it off: there may be hands in it (`hands.ts` forbids it).
    const vouched = sight.openOf(node).some(({ status }) => status?.proof?.kind === 'vouched')
    if (machine.state() === 'off' && switchedOffByUs(node, sight)) return named.has(node) || vouched ? [] : [{ judge: 'liveness', what: `${node} ${darkByUs}`, node, from: sight.now }]
    const dead = machine.state() === 'off' || machine.frozen()
    if (!dead || sight.attachments(node).length === 0 || sight.openOf(node).length > 0 || held.has(node) || refusesTooSoon(node, sight)) return []
    return [{ judge: 'liveness', what: `${node} is ${machine.frozen() ? 'frozen' : 'off'} with volumes attached, and nobody has a word about it`, node, from: sight.now }]
  })
}

/** Asked at the end: machines that run on one supply, where an order of ours switched the other off, or that an order of ours cut off from
 *  their storage. Nobody else would switch it on. */
export function halfFed(history: History): readonly Violation[] {
  const sight = look(history)
  return [...sight.world.nodes].flatMap(([node, { machine }]) => sight.switches(node).flat().flatMap(({ kind, device, address, plug }): readonly Violation[] => {
    const there = sight.world.devices.get(device)?.plugs.get(plug)
    if (kind === 'chassis' || machine.state() !== 'running' || there?.machine !== machine || there.switched === 'on') return []
    return sight.ears.lastOrder(address, plug, 'off') === undefined ? [] : [{ judge: 'liveness', what: `${node} runs, and ${device}/${plug} ${kind === 'port' ? portCutByUs : feedCutByUs}`, node, from: sight.now }]
  }))
}

export const portCutByUs = 'that it reaches its storage by was switched off by us and is off still'
export const feedCutByUs = 'that feeds it was switched off by us and is off still'
export const darkByUs = 'was switched off by us and is off still'
