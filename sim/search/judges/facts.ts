// Plain facts about a node, as the world has them: what a reason, or an excuse, is measured by.
import type { KubeObject } from '../../../coordinator/api.ts'
import type { Ms } from '../../../core/model.ts'
import type { World } from '../../world.ts'
import type { Fence, Sight } from './sight.ts'

/** A reboot or shutdown that was announced is left alone so long. */
const goodbyeHolds: Ms = 660_000

/** Its latest loss of power was a switch that followed an order. */
export function switchedOffByUs(node: string, { world }: Sight): boolean {
  const last = world.truth.entries.findLast(({ what, facts }) => what === 'machine lost its power' && facts['node'] === node)
  return world.truth.entries.some(({ at, what, facts }) => at === last?.at && what === 'device switched' && facts['machine'] === node && facts['to'] === 'off')
}

/** Mounts and folders of pods that the store does not have on the node, and what is staged for nobody, as its agent would find
 *  them. */
export function leftovers(node: string, sight: Sight): readonly string[] {
  const machine = sight.world.nodes.get(node)?.machine
  const belong = new Set(sight.pods(node).map(({ metadata }) => metadata.uid))
  const mounts = [...machine?.mounts.values() ?? []]
  const wanted = new Set(mounts.filter(({ path }) => belong.has(uidOf(path))).map(({ volume }) => volume))
  const strange = mounts.filter(({ path, volume }) => (uidOf(path) === undefined ? !wanted.has(volume) : !belong.has(uidOf(path))))
  return [...strange.map(({ path }) => path), ...[...machine?.podFolders ?? []].filter((uid) => !belong.has(uid))]
}

export function provenOff(node: string, sight: Sight): boolean {
  return sight.openOf(node).some((fence) => fence.status?.proof !== undefined && !['isolated', 'safe-detach'].includes(fence.status.proof.kind ?? '') && (isOff(node, sight) || sameBoot(fence, node, sight)))
}

export function deceived(node: string, { ears, world, switches }: Sight): boolean {
  const own = switches(node).flat()
  return ears.words.some(({ lie: told, device, plug }) => told && own.some((one) => one.device === device && one.plug === plug))
    || world.truth.entries.some(({ what, facts }) => (what === 'machine hibernated' && facts['node'] === node) || (what === 'trouble' && String(facts['does']).includes('swapped')))
}

export function saidGoodbye(node: string, { world, now }: Sight): boolean {
  const last = world.truth.entries.findLast(({ what, facts }) => what === 'shutdown ordered' && facts['node'] === node)
  return last !== undefined && now - last.at < goodbyeHolds
}

export function isOff(node: string, { world }: Sight): boolean {
  return world.nodes.get(node)?.machine.state() === 'off'
}

export function runsFor(node: string, { world, now }: Sight): Ms {
  const machine = world.nodes.get(node)?.machine
  return machine?.state() === 'running' && !machine.frozen() ? now - (machine.boot()?.at ?? now) : 0
}

export function bootAt(node: string, { world }: Sight): Ms {
  return world.nodes.get(node)?.machine.boot()?.at ?? Infinity
}

/** Whether it was so at an instant at which that boot of the node had power. */
export function inBoot(boot: string | undefined, node: string, { world: { truth: { entries } } }: Sight): (at: Ms) => boolean {
  const begins = entries.findIndex(({ what, facts }) => what === 'machine booted' && facts['node'] === node && facts['boot'] === bootId(boot))
  const end = entries.find(({ what, facts }, index) => index > begins && what === 'machine lost its power' && facts['node'] === node)
  return (at) => begins !== -1 && at >= (entries[begins]?.at ?? Infinity) && at < (end?.at ?? Infinity)
}

/** All of the fence configuration, as it stands. */
export function fenceConfig({ server }: World): string {
  const maps = (server?.peek('configmaps') ?? []) as readonly (KubeObject & { readonly data?: object })[] // that collection's kind
  return JSON.stringify(maps.filter(({ metadata: { name } }) => name.startsWith('fence-')).map(({ metadata: { name }, data }) => [name, data]))
}

/** Whether an order switched it off, or may have, while the fence configuration stood otherwise than now. */
export function cutOtherwise(node: string, method: string, { ears, switches, world }: Sight): boolean {
  return switches(node).flat().some(({ name, address, plug }) => method === `${name}-off` && ears.offsUnder(address, plug).some((config) => config !== fenceConfig(world)))
}

export const bootId = (boot: string | undefined): string | undefined => boot?.split('/')[0]

export function sameBoot(fence: Fence | undefined, node: string, { world }: Sight): boolean {
  return world.nodes.get(node)?.machine.boot()?.id === bootId(fence?.spec.boot)
}

export function machineOf(node: string, sight: Sight): string | undefined {
  return sight.node(node)?.status?.nodeInfo?.systemUUID
}

const uidOf = (path: string): string | undefined => /\/pods\/([^/]+)\//.exec(path)?.[1]

export function seconds(span: Ms): string {
  return `${(span / 1_000).toFixed(1)} s`
}

/** From the last beat to the second question that meets silence, by profile. */
const silenceSeenAfter: Readonly<Record<string, Ms>> = { fast: 5_000, balanced: 7_000, conservative: 14_000 }

/** Its crash kernel was up, and refused, before anybody who leads could have seen a silence: so does a kernel whose agent and kubelet have
 *  died, and nothing tells the two apart. One that hangs is for a person. What an earlier leader saw counts where it stands on record. */
export function refusesTooSoon(node: string, sight: Sight): boolean {
  const { world: { nodes, truth: { entries } } } = sight
  if (nodes.get(node)?.machine.host.kernel !== 'crash' || sight.openOf(node).some(({ status }) => status?.dump?.afterSilence === true)) return false
  const last = (happened: string): Ms => entries.findLast(({ what, facts }) => what === happened && facts['node'] === node)?.at ?? -Infinity
  const slowest = Math.max(...sight.policies().map(({ spec }) => silenceSeenAfter[spec?.profile ?? ''] ?? 0))
  return last('crash kernel has an address') - Math.max(last('kernel panics'), sight.ledSince()) < slowest
}
