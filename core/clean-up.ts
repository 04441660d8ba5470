// What is left over on a node is ended by its agent, where the policy asks for that, in the order in which one thing holds another: the
// containers of a pod, then its mounts, then the staging mount that they shared, then what kubelet kept of a block volume. Nothing is
// ended that could have begun after the list of pods was made: only what was left over by a list, and still is by one that was made
// ten seconds later. And nothing by force: a lazy unmount leaves the file system to whoever has it open, and the node only looks clean.
import type { Action } from './action.ts'
import type { Leftover } from './beat.ts'
import { handsOff } from './brake.ts'
import { hasTaint, quarantineKey } from './clear.ts'
import type { Ms } from './model.ts'
import { containerPath, isOfTheApi, loopPath, toldPath, type ContainerSeen, type LeftOn, type Place } from './mounts.ts'
import { policyOf } from './policy.ts'
import type { Survey } from './survey.ts'

export type CleanUpStep =
  | { readonly do: 'stop'; readonly container: ContainerSeen }
  | { readonly do: 'unmount'; readonly path: string }
  /** A folder that was meant for a staging mount: empty, and without the file by which kubelet would know whose. */
  | { readonly do: 'remove'; readonly path: string }
  | { readonly do: 'detach'; readonly device: string; readonly file: string }

/** A list of pods is seconds old when it comes, and a pod may be bound and mounted meanwhile. */
export const newsTakes: Ms = 10_000

export function stepKey(step: CleanUpStep): string {
  switch (step.do) {
    case 'stop': return `stop ${step.container.id}`
    case 'detach': return `detach ${step.device} ${step.file}`
    case 'unmount': case 'remove': return `${step.do} ${step.path}`
  }
}

/** Whether it is what would end that leftover: a report knows no step, and bears the name by which people know a thing. */
export function ends(step: CleanUpStep, { kind, path }: Leftover): boolean {
  switch (step.do) {
    case 'stop': return kind === 'container' && path === toldPath(containerPath(step.container))
    case 'detach': return kind === 'loop device' && path === toldPath(loopPath({ name: step.device, file: step.file }))
    case 'unmount': return (kind === 'mount' || kind === 'staging' || kind === 'block volume') && path === toldPath(step.path)
    case 'remove': return false
  }
}

/** All that could be ended now, because nothing that is left over holds it. `bare`: staging folders that nobody can name. */
export function cleanUpSteps(left: LeftOn, bare: readonly string[]): readonly CleanUpStep[] {
  const running = new Set(left.containers.map(({ pod }) => pod))
  const ofPods = left.all.filter(({ pod }) => pod !== undefined)
  return [
    // A sandbox after its containers: to stop it takes them down too, more slowly.
    ...left.containers.filter((one) => isOfTheApi(one.pod) && (one.sandbox !== true || !left.containers.some((other) => other.pod === one.pod && other.sandbox !== true)))
      .map((container): CleanUpStep => ({ do: 'stop', container })),
    ...left.places.filter(({ pod }) => pod !== undefined && isOfTheApi(pod) && !running.has(pod)).toSorted(deepestFirst).map(unmount),
    ...left.places.filter(({ pod, device }) => pod === undefined && !ofPods.some((other) => other.device === device)).toSorted(deepestFirst).map(unmount),
    ...bare.filter((folder) => !left.all.some(({ path }) => path === folder || path.startsWith(`${folder}/`))).map((path): CleanUpStep => ({ do: 'remove', path })),
    ...left.loops.filter(({ pod }) => isOfTheApi(pod) && !running.has(pod) && !left.places.some((place) => place.pod === pod))
      .map(({ device: { name, file } }): CleanUpStep => ({ do: 'detach', device: name, file })),
  ]
}

function deepestFirst(one: Place, other: Place): number {
  return other.path.split('/').length - one.path.split('/').length
}

function unmount({ path }: Place): CleanUpStep {
  return { do: 'unmount', path }
}

/** Since when each step has stood there to be done, as of one more look. What is gone, or belongs, begins anew. */
export function standingSteps(steps: readonly CleanUpStep[], since: ReadonlyMap<string, Ms>, now: Ms): Map<string, Ms> {
  return new Map(steps.map((step) => [stepKey(step), since.get(stepKey(step)) ?? now]))
}

/** `listedAt`: when the list came by which all of it is left over. */
export function due(steps: readonly CleanUpStep[], since: ReadonlyMap<string, Ms>, listedAt: Ms): readonly CleanUpStep[] {
  return steps.filter((step) => listedAt - (since.get(stepKey(step)) ?? listedAt) >= newsTakes)
}

/** Nodes under quarantine are asked for a clean report by whoever waits to lift it; where their policy wants it, with this wish. */
export function withCleanUp(on: Survey, actions: readonly Action[]): Action[] {
  return actions.map((action) => {
    const node = action.do === 'askClean' ? on.seen.nodes.get(action.node) : undefined
    if (action.do !== 'askClean' || node === undefined || !hasTaint(node, quarantineKey)) return action
    const chosen = policyOf(node, on.policies)
    const now = 'policy' in chosen ? chosen.policy : undefined
    const own = on.open.get(node.name)?.policy ?? now
    const acting = now ?? own
    return own?.cleanUp === 'agent' && acting !== undefined && handsOff(on.seen.self, acting) === undefined ? { ...action, cleanUp: true } : action
  })
}
