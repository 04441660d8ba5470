// holdfast check: would it work tonight? The same list before and after an installation; each line is one claim, and each that
// does not hold says why and where to read on. It only reads, and only what the API server knows.
import { forceEvictionKey } from '../core/acknowledge.ts'
import { isOurs, outOfServiceKey, quarantineKey } from '../core/clear.ts'
import { tolerateGate } from '../core/gate.ts'
import { isKubeletsWord, sameBoot, type NodeRecord } from '../core/model.ts'
import { isPauseOver, policyOf, type Policy } from '../core/policy.ts'
import { machineKey } from '../core/machine-id.ts'
import { distrusted } from '../core/watchdog.ts'
import type { KeptNode } from '../coordinator/kubernetes.ts'
import type { Cluster, DaemonSet } from './cluster.ts'
import { agoOf, auditAge } from './audit-age.ts'
import { claim, few, valueOf, type Checked } from './claim.ts'
import { dumpsOf, fenceFaults, onOneDevice, saidBy } from './fence-maps.ts'
import { guardNames } from './guards.ts'
import type { Paint } from './paint.ts'
import { doubtsOf } from './path-doubts.ts'

export interface Category {
  readonly name: string
  readonly checks: readonly Checked[]
}

const ourKinds = ['holdfastpolicies', 'nodefences', 'noderecords', 'noderemedies']
const oldest = 34
/** Where turns begin each hour, as they do unless it is set. */
const firstTurnWithin = 3 * 3_600_000

/** `moves`: whether the coordinator's Lease was seen to move. */
export function check(cluster: Cluster, moves: boolean, wall: number): readonly Category[] {
  return [
    { name: 'kubernetes', checks: [apiAnswers(cluster), versionKnown(cluster), kindsInstalled(cluster), guardsStand(cluster)] },
    { name: 'coordinator', checks: [leads(cluster, moves), notPaused(cluster, wall)] },
    { name: 'policies', checks: [policiesValid(cluster), nodesSelected(cluster), policiesAct(cluster), remediesValid(cluster)] },
    { name: 'agents', checks: [agentsRun(cluster), agentsHeard(cluster), placesFound(cluster), gatesAsked(cluster), gatePassed(cluster), secondLine(cluster), watchdogsArmed(cluster), noneGaveUp(cluster)] },
    { name: 'fence paths', checks: [pathsValid(cluster), pathsConfigured(cluster), pathsVerified(cluster), pathsApart(cluster), auditsCurrent(cluster, wall), identityProven(cluster), drillsMade(cluster, wall), portsHeard(cluster), dumpsAwaited(cluster)] },
    { name: 'taints', checks: [taintsOwned(cluster)] },
    { name: 'incidents', checks: [fencesReadable(cluster)] },
    { name: 'storage', checks: [pluginsTolerate(cluster), freedByNobodyElse(cluster)] },
  ]
}

export function succeeded(categories: readonly Category[]): boolean {
  return categories.every(({ checks }) => checks.every(({ result }) => result !== 'error'))
}

export function checkLines(categories: readonly Category[], paint: Paint): string[] {
  const { glyphs } = paint
  const mark = { success: paint.good(glyphs.well), warning: paint.warn(glyphs.warn), error: paint.bad(glyphs.bad) }
  return [
    ...categories.flatMap(({ name, checks }) => [
      paint.bold(name), '-'.repeat(name.length),
      ...checks.flatMap(({ description, result, error, hint }) => [
        `${mark[result]} ${description}`,
        ...(error === undefined ? [] : [`    ${error}`]),
        ...(hint === undefined ? [] : [paint.dim(`    see ${hint}`)]),
      ]),
      '',
    ]),
    `Status check results are ${succeeded(categories) ? mark.success : mark.error}`,
  ]
}

function apiAnswers({ version }: Cluster): Checked {
  return claim('api-answers', 'the API server answers', [version], () => undefined)
}

function versionKnown({ version }: Cluster): Checked {
  return claim('version-known', 'its version is one that Holdfast knows', [version], () => {
    const text = valueOf(version, '')
    const [, major, minor] = /^v(\d+)\.(\d+)/.exec(text) ?? []
    if (major === undefined || minor === undefined) return `${JSON.stringify(text)} is no version`
    return Number(major) === 1 && Number(minor) >= oldest ? undefined : `${text} is older than v1.${oldest}`
  })
}

function kindsInstalled({ kinds }: Cluster): Checked {
  const missing = kinds.ok || kinds.kind !== 'notFound' ? ourKinds.filter((kind) => !valueOf(kinds, []).includes(kind)) : ourKinds
  return claim('kinds-installed', 'the kinds of Holdfast are installed', kinds.ok || kinds.kind === 'notFound' ? [] : [kinds], () => (missing.length === 0 ? undefined : `not served: ${missing.join(', ')}`))
}

function guardsStand({ guards, denying }: Cluster): Checked {
  return claim('guards-stand', 'its admission policies stand', [guards, denying], () => {
    const missing = guardNames.filter((name) => !valueOf(guards, []).includes(name) || !valueOf(denying, []).includes(name))
    return missing.length === 0 ? undefined : `not there, or without a binding that denies: ${few(missing)}`
  }, 'warning')
}

function leads({ lease }: Cluster, moves: boolean): Checked {
  return claim('replica-leads', 'a coordinator replica leads', lease.ok || lease.kind === 'notFound' ? [] : [lease], () => {
    if (!lease.ok) return 'there is no Lease holdfast-coordinator: no replica has ever led'
    if (lease.value.holder === '') return 'nobody holds the Lease'
    return moves ? undefined : `${lease.value.holder} holds the Lease and does not renew it`
  })
}

function notPaused({ pause, policies }: Cluster, wall: number): Checked {
  return claim('not-paused', 'nobody has paused it', [pause], () => {
    const cluster = valueOf(pause, undefined)
    if (cluster !== undefined && !isPauseOver(cluster, wall)) return `paused by ${cluster.by}: ${cluster.reason}`
    const paused = valueOf(policies, []).flatMap(({ name, policy }) => (policy?.pause === undefined || isPauseOver(policy.pause, wall) ? [] : [`policy ${name} by ${policy.pause.by}: ${policy.pause.reason}`]))
    return paused.length === 0 ? undefined : `paused: ${few(paused)}`
  }, 'warning')
}

function policiesValid({ policies }: Cluster): Checked {
  return claim('policies-valid', 'every policy is without faults', [policies], () => {
    const faulty = valueOf(policies, []).filter(({ faults }) => faults !== '')
    return faulty.length === 0 ? undefined : faulty.map(({ name, faults }) => `${name}: ${faults}`).join('; ')
  })
}

function inForce({ policies }: Cluster): readonly Policy[] {
  return valueOf(policies, []).flatMap(({ policy }) => (policy === undefined ? [] : [policy]))
}

function chosenOf(node: KeptNode, policies: readonly Policy[]): ReturnType<typeof policyOf> {
  return policyOf({ labels: node.metadata.labels ?? {} }, policies)
}

function nodesSelected(cluster: Cluster): Checked {
  return claim('nodes-selected', 'every node is selected by one policy', [cluster.nodes, cluster.policies], () => {
    const policies = inForce(cluster)
    if (policies.length === 0) return 'there is no policy: every node is only watched'
    const chosen = valueOf(cluster.nodes, []).map((node) => ({ name: node.metadata.name, chosen: chosenOf(node, policies) }))
    const conflict = chosen.find(({ chosen: one }) => 'none' in one && one.none === 'policy-conflict')
    if (conflict !== undefined && 'none' in conflict.chosen && conflict.chosen.none === 'policy-conflict') {
      return `${conflict.name} is selected by ${conflict.chosen.names.join(' and ')} with one priority: neither acts`
    }
    const unselected = chosen.filter(({ chosen: one }) => 'none' in one).map(({ name }) => name)
    return unselected.length === 0 ? undefined : `only watched: ${few(unselected)}`
  }, 'warning')
}

function policiesAct(cluster: Cluster): Checked {
  return claim('policies-act', 'every policy would act', [cluster.policies], () => {
    const idle = inForce(cluster).flatMap(({ name, mode, nodeDownPodDeletionPolicy }) => {
      if (mode === 'dryRun') return [`${name} is a dry run`]
      return nodeDownPodDeletionPolicy === 'DoNothing' ? [`${name} says DoNothing: no order, no deletion`] : []
    })
    return idle.length === 0 ? undefined : idle.join('; ')
  }, 'warning')
}

function agentsRun({ nodes, agents }: Cluster): Checked {
  return claim('agents-run', 'an agent runs on every node', [nodes, agents], () => {
    const ready = new Set(valueOf(agents, []).filter((agent) => agent.ready).map(({ node }) => node))
    const without = valueOf(nodes, []).map(({ metadata }) => metadata.name).filter((name) => !ready.has(name))
    return without.length === 0 ? undefined : `no ready agent on ${few(without)}`
  })
}

interface Recorded { readonly name: string; readonly node: KeptNode; readonly record: NodeRecord | undefined }

/** A record of an earlier boot tells nothing of this one. */
function recorded({ nodes, records }: Cluster): readonly Recorded[] {
  const known = valueOf(records, new Map<string, NodeRecord>())
  return valueOf(nodes, []).map((node) => {
    const record = known.get(node.metadata.name)
    const present = record !== undefined && record.nodeUid === node.metadata.uid && sameBoot(record.boot, node.bootId)
    return { name: node.metadata.name, node, record: present ? record : undefined }
  })
}

function remediesValid({ remedies }: Cluster): Checked {
  return claim('remedies-valid', 'every NodeRemedy is without faults', [remedies], () => {
    const faulty = valueOf(remedies, []).filter(({ faults }) => faults !== '').map(({ name, faults }) => `${name} (${faults})`)
    return faulty.length === 0 ? undefined : `${few(faulty)}: not in force`
  }, 'warning')
}

function agentsHeard(cluster: Cluster): Checked {
  return claim('agents-heard', 'every agent was heard in the present boot of its node', [cluster.nodes, cluster.records], () => {
    const unheard = recorded(cluster).filter(({ record }) => record === undefined || isKubeletsWord(record.boot)).map(({ name }) => name)
    return unheard.length === 0 ? undefined : `no record of the present boot of ${few(unheard)}`
  })
}

function gatesAsked(cluster: Cluster): Checked {
  return claim('gates-asked', 'every container runtime asks the gate of its node, where one is wanted', [cluster.nodes, cluster.records], () => {
    const absent = recorded(cluster).filter(({ record }) => record?.gate === 'absent').map(({ name }) => name)
    return absent.length === 0 ? undefined : `not on ${few(absent)}: taints alone hold pods there`
  }, 'warning')
}

/** Whose socket it is, by where it is. */
const runtimes: Readonly<Record<string, string>> = {
  '/run/containerd/containerd.sock': 'containerd', '/run/k3s/containerd/containerd.sock': 'containerd of k3s or RKE2', '/run/crio/crio.sock': 'CRI-O',
}

function placesFound(cluster: Cluster): Checked {
  const { nodes, records } = cluster
  const told = recorded(cluster).flatMap(({ name, record }) => (record?.places === undefined ? [] : [{ name, gate: record.gate, places: record.places }]))
  const found = [
    shared(told.map(({ places }) => runtimes[places.runtime] ?? places.runtime)), shared(told.map(({ places }) => places.kubelet), 'kubelet in '), shared(told.map(({ places }) => places.gate), 'NRI at '),
  ].filter((says) => says !== '')
  return claim('places-found', `every agent finds kubelet and the container runtime of its node${found.length === 0 ? '' : `: ${found.join('; ')}`}`, [nodes, records], () => {
    const lacking = told.flatMap(({ name, gate, places }) => {
      const without = [...(places.kubelet === '' ? ['kubelet\'s folder'] : []), ...(places.runtime === '' ? ['the socket of kubelet\'s runtime'] : []), ...(places.gate === '' && gate !== 'off' ? ['the socket of NRI'] : [])]
      return without.length === 0 ? [] : [`${name} (${without.join(', ')})`]
    })
    return lacking.length === 0 ? undefined : `not there: ${few(lacking)}`
  }, 'warning')
}

/** Each place, and on how many nodes it is. */
function shared(places: readonly string[], what = ''): string {
  return [...Map.groupBy(places.filter((place) => place !== ''), (place) => place)].map(([place, of]) => `${what}${place} on ${of.length}`).join(', ')
}

/** What must start before anybody can accept a boot. A runtime that requires a plugin asks the annotation alone, of static pods too. */
function gatePassed({ daemonSets, staticPods }: Cluster): Checked {
  const sets = valueOf(daemonSets, [])
  const { on = false, fromBoot = false, exemptNamespaces = [] } = sets.find(({ gate }) => gate !== undefined)?.gate ?? {}
  return claim('gate-passed', 'what a node cannot do without starts while its gate is shut', [daemonSets, staticPods], () => {
    if (!on) return undefined
    const first = sets.filter(({ csi, critical }) => csi || critical).filter(({ name, passes }) => !passes && (fromBoot || !exemptNamespaces.includes(name.split('/')[0] ?? '')))
    const held = [...first, ...(fromBoot ? valueOf(staticPods, []).filter(({ passes }) => !passes) : [])].map(({ name }) => name)
    return held.length === 0 ? undefined : `${few(held)}: without the annotation ${tolerateGate}=true${fromBoot ? '' : ', and in no namespace that passes'}`
  }, fromBoot ? 'error' : 'warning')
}

/** A device that calls a machine off that is only cut off makes two writers of it, unless the machine ends its work by itself. */
function secondLine(cluster: Cluster): Checked {
  const { nodes, policies, fenceMaps } = cluster
  return claim('second-line', 'where one device alone stands between two writers, its node gives up by itself as well', [nodes, policies, fenceMaps], () => {
    const alone = onOneDevice(valueOf(fenceMaps, []), valueOf(nodes, []), inForce(cluster))
    const lacking = valueOf(nodes, []).filter((node) => {
      const chosen = chosenOf(node, inForce(cluster))
      return alone.has(node.metadata.name) && 'policy' in chosen && chosen.policy.giveUp === 'never' && chosen.policy.mode === 'enforce' && chosen.policy.nodeDownPodDeletionPolicy !== 'DoNothing'
    })
    return lacking.length === 0 ? undefined : `not ${few(lacking.map(({ metadata: { name } }) => name))}: giveUp: stop is recommended there`
  }, 'warning')
}

function watchdogsArmed(cluster: Cluster): Checked {
  const { nodes, records, policies } = cluster
  return claim('watchdogs-armed', 'every watchdog that a policy asks for is armed, and proves what the policy accepts', [nodes, records, policies], () => {
    const lacking = recorded(cluster).flatMap(({ name, node, record }) => {
      const chosen = chosenOf(node, inForce(cluster))
      if (!('policy' in chosen) || chosen.policy.giveUp !== 'watchdog' || record === undefined) return []
      if (record.watchdog?.state !== 'armed') return [`${name} (it is not armed)`]
      const why = chosen.policy.selfFenced === 'accept' ? distrusted(record.watchdog) : undefined
      return why === undefined ? [] : [`${name} (${why})`]
    })
    return lacking.length === 0 ? undefined : `not of ${few(lacking)}`
  }, 'warning')
}

function noneGaveUp({ gaveUp }: Cluster): Checked {
  return claim('none-gave-up', 'no node has stopped its workloads by itself of late', [gaveUp], () => {
    const nodes = [...new Set(valueOf(gaveUp, []))].toSorted()
    return nodes.length === 0 ? undefined : `nobody permitted ${few(nodes)} to run them`
  }, 'warning')
}

function dumpsAwaited(cluster: Cluster): Checked {
  const { nodes, records, policies, fenceMaps } = cluster
  return claim('dumps-awaited', 'every crash kernel that counts for something can be heard before its machine is cut', [nodes, records, policies, fenceMaps], () => {
    const dumps = dumpsOf(valueOf(fenceMaps, []), valueOf(nodes, []), inForce(cluster))
    const lacking = recorded(cluster).flatMap(({ name, node, record }) => {
      const chosen = chosenOf(node, inForce(cluster))
      const accepts = 'policy' in chosen && chosen.policy.kdump === 'accept'
      const { dumpsWithin, announcesWithin } = dumps.get(name) ?? {}
      if (dumpsWithin === undefined) return accepts ? [`${name} (its policy says kdump: accept, and its fence configuration no kdump=)`] : []
      if (announcesWithin === undefined) return [`${name} (without kdump_within= it may be ordered off before it is heard)`]
      return accepts && record !== undefined && record.probe?.answered !== true ? [`${name} (its kubelet port did not answer at its last audit in this boot, so that its silence proves nothing)`] : []
    })
    return lacking.length === 0 ? undefined : `not of ${few(lacking)}`
  }, 'warning')
}

function pathsValid(cluster: Cluster): Checked {
  const { nodes, fenceMaps } = cluster
  return claim('paths-valid', 'every fence ConfigMap is without faults', [nodes, fenceMaps], () => {
    const { sentences, outdated, without } = fenceFaults(valueOf(fenceMaps, []), valueOf(nodes, []), inForce(cluster))
    if (sentences.length === 0) return undefined
    return [
      few(sentences),
      ...(outdated.length === 0 ? [] : [`the last good one stays in force for ${few(outdated)}`]),
      ...(without.length === 0 ? [] : [`none is kept for ${few(without)}`]),
    ].join('; ')
  }, 'warning')
}

function pathsConfigured(cluster: Cluster): Checked {
  const by = cluster.fenceMaps.ok && cluster.nodes.ok && cluster.nodes.value.length > 0 ? `: ${few(saidBy(cluster.fenceMaps.value, cluster.nodes.value))}` : ''
  return claim('paths-configured', `every node has a fence path${by}`, [cluster.nodes, cluster.records], () => {
    const without = recorded(cluster).filter(({ record }) => record !== undefined && record.paths.length === 0).map(({ name }) => name)
    return without.length === 0 ? undefined : `none for ${few(without)}: only a person could say that it is off`
  })
}

function pathsVerified(cluster: Cluster): Checked {
  return claim('paths-verified', 'every fence path answered on at its latest audit', [cluster.nodes, cluster.records], () => {
    const faulty = recorded(cluster).flatMap(({ name, record }) => (record?.paths ?? []).filter(({ state }) => state !== 'verified').map(({ method, state, evidence }) => `${name} ${method} ${state} (${evidence})`))
    return faulty.length === 0 ? undefined : few(faulty)
  })
}

function pathsApart(cluster: Cluster): Checked {
  const { nodes, fenceMaps } = cluster
  return claim('paths-apart', 'no fence path hangs on what it is to cut, and not many on one device', [nodes, fenceMaps], () => {
    const doubts = doubtsOf(valueOf(fenceMaps, []), valueOf(nodes, []), inForce(cluster))
    return doubts.length === 0 ? undefined : few(doubts)
  }, 'warning')
}

/** A node that is off is audited no more; that nothing is audited any more is a fault of ours. */
function auditsCurrent(cluster: Cluster, wall: number): Checked {
  const { lease, nodes, records } = cluster
  const turn = lease.ok ? lease.value.turn : undefined
  const halted = turn !== undefined && wall > Date.parse(turn.stale)
  const ago = turn === undefined ? 'no turn has come to its end yet' : `turn ${turn.turn} began ${agoOf({ at: Date.parse(turn.began) }, wall)}`
  const description = `every fence path was audited again lately${turn === undefined ? '' : `: ${ago}`}`
  return claim('audits-current', description, [lease, nodes, records].filter((part) => part.ok || part.kind !== 'notFound'), () => {
    const audits = recorded(cluster).flatMap(({ name, record }) => (record?.paths ?? []).map((path) => ({ name, method: path.method, ...auditAge(name, path, turn, wall) })))
    if (turn === undefined && audits.every(({ at = wall }) => wall - at < firstTurnWithin)) return undefined
    const stale = audits.filter((audit) => audit.stale || turn === undefined).map((audit) => `${audit.name} ${audit.method} (${agoOf(audit, wall)})`)
    if (stale.length === 0) return undefined
    return `${turn === undefined ? `${ago}, and the latest audits are old` : 'stale'}: ${few(stale)}`
  }, halted || turn === undefined ? 'error' : 'warning')
}

function identityProven(cluster: Cluster): Checked {
  return claim('identity-proven', 'every fence path is proven to end at its node', [cluster.nodes, cluster.records], () => {
    const all = recorded(cluster).flatMap(({ name, record }) => (record?.paths ?? []).map((path) => ({ name, ...path })))
    const wrong = all.filter(({ identity }) => identity === 'mismatch').map(({ name, method }) => `${name} ${method} is another machine's`)
    const twinOf = twins(valueOf(cluster.nodes, []))
    const unproven = all.filter(({ identity }) => identity === 'unproven').map(({ name, method }) => `${name} ${method}${twinOf(name)}`)
    if (wrong.length > 0) return few(wrong)
    return unproven.length === 0 ? undefined : `nothing proves ${few(unproven)}`
  }, 'warning')
}

/** Where nobody was chosen because everybody who could be is proven, all is well. */
function drillsMade(cluster: Cluster, wall: number): Checked {
  const { lease, policies } = cluster
  const asking = inForce(cluster).filter(({ drills }) => drills !== undefined).map(({ name }) => name)
  const turns = (lease.ok ? lease.value.drills ?? [] : []).filter(({ policy }) => asking.includes(policy))
  const told = turns.map(({ policy, at, chosen }) => `${policy}, ${chosen === undefined ? 'nobody' : chosen.node}, ${agoOf({ at: Date.parse(at) }, wall)}`)
  return claim('drills-made', `every policy that asks for drills finds a node for them${told.length === 0 ? '' : `: ${few(told)}`}`, asking.length === 0 || (!lease.ok && lease.kind === 'notFound') ? [policies] : [lease, policies], () => {
    const idle = turns.flatMap(({ policy, refused, nodes }) => {
      const reasons = nodes.filter(({ because }) => because !== 'proven').map(({ node, detail }) => `${node}: ${detail}`)
      if (refused === undefined || (nodes.length > 0 && reasons.length === 0)) return []
      return [`${policy}: ${refused.detail}${reasons.length === 0 ? '' : ` (${few(reasons)})`}`]
    })
    return idle.length === 0 ? undefined : idle.join('; ')
  }, 'warning')
}

/** What tells the machine id of two nodes tells neither. */
function twins(nodes: readonly KeptNode[]): (name: string) => string {
  const bearers = Map.groupBy(nodes.filter(({ machine }) => machine !== ''), ({ machine }) => machineKey(machine))
  const machines = new Map(nodes.map(({ metadata, machine }) => [metadata.name, machineKey(machine)]))
  return (name) => {
    const twin = bearers.get(machines.get(name) ?? '')?.find(({ metadata }) => metadata.name !== name)
    return twin === undefined ? '' : ` (${twin.metadata.name} bears the same machine id)`
  }
}

function portsHeard(cluster: Cluster): Checked {
  return claim('ports-heard', 'every kubelet port was heard to answer', [cluster.nodes, cluster.records], () => {
    const deaf = recorded(cluster).filter(({ record }) => record !== undefined && record.probe?.answered !== true)
    const asked = deaf.filter(({ node }) => node.address !== '').map(({ name }) => name)
    const nowhere = deaf.filter(({ node }) => node.address === '').map(({ name }) => name)
    const reasons = [...(asked.length > 0 ? [`not of ${few(asked)}`] : []), ...(nowhere.length > 0 ? [`no IP address to ask ${few(nowhere)} at`] : [])]
    return reasons.length === 0 ? undefined : `${reasons.join(', ')}: their silence will prove nothing, and death is judged by the Lease alone`
  }, 'warning')
}

function fencesReadable({ incidents, unreadable }: Cluster): Checked {
  return claim('fences-readable', 'every NodeFence can be read', [incidents], () => (
    unreadable.length === 0 ? undefined : `${few(unreadable.map(({ name, node, faults }) => `${name} of ${node} (${faults})`))}: nothing is done there`
  ))
}

function taintsOwned({ nodes, incidents }: Cluster): Checked {
  const owners = new Set(valueOf(incidents, []).filter(({ status }) => status.phase !== 'Final').map(({ nodeName }) => nodeName))
  const orphans = valueOf(nodes, []).flatMap(({ metadata, taints }) => {
    if (owners.has(metadata.name)) return []
    return taints.filter((taint) => isOurs(taint) && taint.key !== forceEvictionKey).map(({ key }) => ({ key, says: `${metadata.name} bears ${key}` }))
  })
  // A quarantine comes off by itself once its node is clean.
  const weight = orphans.some(({ key }) => key === outOfServiceKey) ? 'error' : 'warning'
  return claim('taints-owned', 'every taint of ours has an open incident', [nodes, incidents], () => (orphans.length === 0 ? undefined : few(orphans.map(({ says }) => says))), weight)
}

function pluginsTolerate({ daemonSets }: Cluster): Checked {
  return claim('plugins-tolerate', 'CSI node plugins tolerate our taints', [daemonSets], () => {
    const refused = valueOf(daemonSets, []).filter((set) => set.csi && ![quarantineKey, outOfServiceKey].every((key) => tolerates(set, key))).map(({ name }) => name)
    return refused.length === 0 ? undefined : `${few(refused)}: a node without its plugin can never become clean`
  })
}

/** They leave no sign on a Node by which a coordinator could stand down for them. */
function freedByNobodyElse({ longhorn, storks }: Cluster): Checked {
  return claim('freed-by-nobody-else', 'nobody else frees pods of a node that is down', [longhorn, storks], () => {
    const policy = valueOf(longhorn, undefined)
    const others = [
      ...(policy === undefined || policy === 'do-nothing' ? [] : [`Longhorn: its node-down-pod-deletion-policy is ${policy}`]),
      ...valueOf(storks, []).map((name) => `Stork: the health monitor of ${name} is on`),
    ]
    return others.length === 0 ? undefined : `${others.join('; ')}, and needs no proof`
  })
}

function tolerates({ tolerations }: DaemonSet, key: string): boolean {
  return tolerations.some((one) => (one.effect === undefined || one.effect === 'NoSchedule') && (one.key === undefined || one.key === key) && (one.operator === 'Exists' || one.key === key))
}
