// What may be wrong with a fence path though its ConfigMaps are without faults: it hangs on what it is to cut, or many hang on it. Only
// so far as the configuration and the Nodes tell; what feeds a strip, and which switch a controller hangs on, nobody can read there.
import type { Policy } from '../core/policy.ts'
import { cloudPrograms } from '../coordinator/cloud-programs.ts'
import { readFenceConfigs, type ConfiguredMethod, type FenceConfigMap } from '../coordinator/fence-config.ts'
import { wordsOf, type KeptNode } from '../coordinator/kubernetes.ts'
import { claimsOf } from './fence-maps.ts'

/** More nodes than these on one device are many: all of them are without a fence at once. */
const mostOnOne = 3

/** Programs of controllers that stand in the machine itself, and live from its supplies unless somebody gave them their own. */
const inside = /^(ipmi|redfish|fence_(ipmilan\w*|redfish|idrac|drac5?|ilo\w*|imm|rsa|rsb|amt\w*))$/
/** These do nothing unless the machine that they are to cut off has run them before. */
const onTarget: ReadonlySet<string> = new Set(['fence_scsi', 'fence_mpath', 'fence_sbd', 'fence_sanlock'])

export function doubtsOf(maps: readonly FenceConfigMap[], nodes: readonly KeptNode[], policies: readonly Policy[]): readonly string[] {
  const read = readFenceConfigs(maps, () => '', '')
  const claims = claimsOf(nodes, policies)
  const paths = nodes.map((node) => {
    const { name } = node.metadata
    const { path, methods } = read.forNode(name, undefined, claims(name), wordsOf(node))
    const levels = path.levels.map((level) => level.flatMap((method) => methods[method.name] ?? []))
    return { node, all: levels.flat(), power: levels.filter((level) => level.every(({ isolates }) => isolates === undefined)) }
  })
  return [...paths.flatMap(({ node, all, power }) => [...targets(node, all), ...withItsPower(node, power)]), ...alone(paths)]
}

function targets({ metadata: { name }, address, addresses = [] }: KeptNode, methods: readonly ConfiguredMethod[]): readonly string[] {
  const own = [name, address, ...addresses].filter((one) => one !== '')
  return methods.flatMap((method) => {
    if (onTarget.has(method.agent)) return [`${name} ${method.name} needs the machine itself: ${method.agent} must have run there before`]
    return own.some((one) => isAt(method.device, one)) ? [`${name} ${method.name} needs the machine itself: its device is at the node's own address`] : []
  })
}

/** A device goes by its host, with a port or without, or by a URL. */
function isAt(device: string, host: string): boolean {
  const place = device.replace(/^[a-z][a-z0-9+.-]*:\/\//, '')
  return place === host || [`${host}:`, `${host}/`, `[${host}]`].some((beginning) => place.startsWith(beginning))
}

function withItsPower({ metadata: { name } }: KeptNode, power: readonly (readonly ConfiguredMethod[])[]): readonly string[] {
  if (power.length === 0 || !power.every((level) => level.some(({ agent }) => inside.test(agent)))) return []
  return [`${name} has no level without the controller in the machine: unless that has a feed of its own, nobody answers when the power fails`]
}

interface Path {
  readonly node: KeptNode
  readonly power: readonly (readonly ConfiguredMethod[])[]
}

/** A cloud is one device by its nature. */
function alone(paths: readonly Path[]): readonly string[] {
  const hanging = Map.groupBy(paths.flatMap(({ node, power }) => {
    const devices = new Set(power.flat().filter(({ agent }) => !cloudPrograms.has(agent)).map(({ device }) => device))
    const [device] = devices
    return device === undefined || devices.size > 1 ? [] : [{ name: node.metadata.name, device }]
  }), ({ device }) => device)
  return [...hanging].filter(([, nodes]) => nodes.length > mostOnOne).map(([device, nodes]) => `${nodes.length} nodes hang on ${device} alone: where it fails, none of them can be fenced`)
}
