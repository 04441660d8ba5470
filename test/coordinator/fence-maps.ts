// ConfigMaps of fencing, and what is read of them for a node.
import { readFenceConfigs, sentenceOf, type FenceConfigMap, type NodeFenceConfig } from '../../coordinator/fence-config.ts'
import type { SecretLookup } from '../../coordinator/fence-config-secret.ts'

export const secrets: SecretLookup = ({ secret, key }) => (secret === 'fc' && key === 'password' ? 'hush' : undefined)

export function configOf(maps: readonly FenceConfigMap[], node = 'node-1', before?: NodeFenceConfig, lookup: SecretLookup = secrets): NodeFenceConfig {
  return readFenceConfigs(maps, lookup, 'salt').forNode(node, before)
}

export function one(properties: string, methods: Readonly<Record<string, string>>, templates: Readonly<Record<string, string>> = {}): FenceConfigMap[] {
  return [
    { name: 'fence-config-node-1', data: { 'config.properties': properties, ...Object.fromEntries(Object.entries(methods).map(([name, text]) => [`fence-method-${name}`, text])) } },
    ...Object.entries(templates).map(([name, text]) => ({ name, data: { 'template.properties': text } })),
  ]
}

export const bmc = 'agent_name=redfish\nip=10.0.0.1\nplug=1\naction=off'
export const names = (config: NodeFenceConfig) => config.path.levels.map((level) => level.map((method) => method.name))
export const told = (config: NodeFenceConfig) => config.faults.map(sentenceOf)
