// What removes from the nodes what agents have left on their disks: one folder, and the shim of a gate that was kept from boot on, also where that gate was switched off since: its agent took
// away what the shim starts, and cannot reach the shim. It runs once on every node, after the agents are gone, and is deleted again (docs/install.md).
import { join } from 'node:path'
import { shimName } from '../agent/boot-gate-install.ts'
import { agentState } from './agent.ts'
import type { Manifest } from './manifest.ts'
import type { Values } from './values.ts'

const name = 'holdfast-uninstall'
const labels = { 'app.kubernetes.io/name': name }

const node = (program: string): readonly string[] => ['/holdfast/node', '--eval', program]
const onHost = (path: string): string => join('/host', path)
/** Hosts have it, be it that nobody may write there; the plugin folder itself need not be there, and is not made. */
const topOf = (path: string): string => `/${path.split('/')[1] ?? ''}`

export function uninstallManifests({ image, agentNamespace, nriPlugins }: Values): readonly Manifest[] {
  const volumes = [
    { name: 'state', hostPath: { path: join(agentState, '..'), type: 'Directory' } },
    { name: 'plugins', hostPath: { path: topOf(nriPlugins), type: 'DirectoryOrCreate' } },
  ]
  const left = [agentState, join(nriPlugins, shimName)].map((path) => `'${onHost(path)}'`).join(', ')
  return [{
    apiVersion: 'apps/v1', kind: 'DaemonSet', metadata: { name, namespace: agentNamespace, labels },
    spec: {
      selector: { matchLabels: labels },
      updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: '100%' } },
      template: {
        metadata: { labels },
        spec: {
          automountServiceAccountToken: false, tolerations: [{ operator: 'Exists' }], terminationGracePeriodSeconds: 1,
          securityContext: { seccompProfile: { type: 'RuntimeDefault' } },
          containers: [{
            name: 'uninstall', image,
            // It stays, because a DaemonSet starts again what ends.
            command: node(`for (const one of [${left}]) fs.rmSync(one, { recursive: true, force: true }); process.once('SIGTERM', () => process.exit(0)); setInterval(() => {}, 60_000)`),
            readinessProbe: { exec: { command: node(`process.exit([${left}].some((one) => fs.existsSync(one)) ? 1 : 0)`) }, periodSeconds: 2, timeoutSeconds: 5 },
            securityContext: { runAsUser: 0, allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } },
            // As the agent's: what hosts let go of must not stay busy by a copy of this pod's.
            volumeMounts: volumes.map(({ name: volume, hostPath: { path } }) => ({ name: volume, mountPath: onHost(path), mountPropagation: 'HostToContainer' })),
          }],
          volumes,
        },
      },
    },
  }]
}
