// What removes from the nodes what agents have left on their disks: one folder, and the shim of a gate that was kept from boot on. It runs once on every node, after the agents are
// gone, and is deleted again (docs/install.md).
import { shimName } from '../agent/boot-gate-install.ts'
import { agentState, pluginsHere } from './agent.ts'
import type { Manifest } from './manifest.ts'
import type { Values } from './values.ts'

const name = 'holdfast-uninstall'
const labels = { 'app.kubernetes.io/name': name }
const mounted = '/host'

const node = (program: string): readonly string[] => ['/holdfast/node', '--eval', program]

export function uninstallManifests({ image, agentNamespace, gateFromBoot, nriPlugins }: Values): readonly Manifest[] {
  const [parent, folder] = [agentState.slice(0, agentState.lastIndexOf('/')), `${mounted}${agentState.slice(agentState.lastIndexOf('/'))}`]
  const shims = gateFromBoot === 'on' ? [{ name: 'plugins', path: nriPlugins, file: `${pluginsHere}/${shimName}` }] : []
  const left = [folder, ...shims.map(({ file }) => file)].map((path) => `'${path}'`).join(', ')
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
            volumeMounts: [{ name: 'parent', mountPath: mounted }, ...shims.map(({ name: volume }) => ({ name: volume, mountPath: pluginsHere }))],
          }],
          volumes: [{ name: 'parent', hostPath: { path: parent, type: 'Directory' } }, ...shims.map(({ name: volume, path }) => ({ name: volume, hostPath: { path, type: 'DirectoryOrCreate' } }))],
        },
      },
    },
  }]
}
