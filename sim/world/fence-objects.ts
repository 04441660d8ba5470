// The fence configuration that an operator would write for a world's racks: templates, methods, steps, as ConfigMaps.
import type { KubeObject } from '../../coordinator/api.ts'
import { usualWorld } from './settings.ts'
import { switchesOf, type Placed, type Power, type Switch } from './power.ts'

/** What is the same for all nodes but the outlet's name stands once, for `{node}`; else each node has its own ConfigMap. `beside`: lines that every
 *  node's configuration has as well. */
export function fenceObjects(namespace: string, power: Power, placed: readonly Placed[], beside = ''): readonly KubeObject[] {
  const ports = placed.some((place) => switchesOf(power, place).flat().some(({ kind }) => kind === 'port'))
  const templates = [template(namespace, 'bmc', 'redfish'), template(namespace, 'pdu', 'fence_apc_snmp'), ...(ports ? [template(namespace, 'fabric', 'fc-switch')] : [])]
  const anyNode = dataOf(switchesOf(power, { node: '{node}', index: 0, zone: 0 }), beside)
  const shared = placed.every((place) => same(dataOf(switchesOf(power, place), beside), anyNode, place.node))
  if (shared) return [...templates, configMap(namespace, 'fence-config-default', anyNode)]
  return [...templates, ...placed.map((place) => {
    const { 'config.properties': steps = '', ...methods } = dataOf(switchesOf(power, place), beside)
    return configMap(namespace, `fence-config-${place.node}`, { 'config.properties': `node_name=${place.node}\n${steps}`, ...methods })
  })]
}

type Data = Readonly<Record<string, string>>

function dataOf(levels: readonly (readonly Switch[])[], beside: string): Data {
  const isolating = levels.filter((level) => level.some(({ kind }) => kind === 'port'))
  const power = levels.filter((level) => !isolating.includes(level))
  const isolation = isolating.length === 0 ? '' : `isolation=${isolating.map((level) => named(level, 'off')).join(' | ')}\n`
  return {
    'config.properties': `${isolation}power_management=${power.map((level) => named(level, 'off')).join(' | ')}\nrecovery=${[...power, ...isolating].map((level) => named(level, 'on')).join(' ')}\n${beside}`,
    ...Object.fromEntries(levels.flat().flatMap((one) => [method(one, 'off'), method(one, 'on')])),
  }
}

function named(level: readonly Switch[], to: 'off' | 'on'): string {
  return level.map(({ name }) => `${name}-${to}`).join(' ')
}

const templateOf = { chassis: 'bmc', outlet: 'pdu', port: 'fabric' } as const

function method({ name, address, plug, kind }: Switch, to: 'off' | 'on'): readonly [string, string] {
  const drivers = kind === 'port' && to === 'off' ? `drivers=${usualWorld.driver}\n` : ''
  return [`fence-method-${name}-${to}`, `template=fence-method-template-${templateOf[kind]}\nip=${address}\nplug=${plug}\naction=${to}\n${drivers}`]
}

function same(own: Data, anyNode: Data, node: string): boolean {
  return Object.entries(own).every(([key, text]) => text === anyNode[key]?.replaceAll('{node}', node))
}

function template(namespace: string, name: string, agent: string): KubeObject {
  return configMap(namespace, `fence-method-template-${name}`, { 'template.properties': `agent_name=${agent}\nusername=admin\npassword=secret\n` })
}

function configMap(namespace: string, name: string, data: Data): KubeObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace }, data } as KubeObject // a kind whose data KubeObject does not name
}
