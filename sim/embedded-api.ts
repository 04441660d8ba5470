// The embedded world's API server on a real socket: replicas and a person's kubectl ask it over HTTPS, each by a token.
import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { stringify } from 'yaml'
import { httpsTransport } from '../coordinator/https.ts'
import type { Transport } from '../coordinator/transport.ts'
import type { Clock } from '../edge/clock.ts'
import { simulatedTransport } from './api-path.ts'
import { serve } from './api-server/https-server.ts'
import { admin } from './api-server/server.ts'
import { systemNamespace, workNamespace } from './embedded-objects.ts'
import type { Host } from './network.ts'
import type { Process } from './process.ts'
import type { World } from './world.ts'

export interface EmbeddedApi {
  /** A replica's: the world's network says what arrives, then it goes over the socket. */
  transport(host: Host, process: Process): Transport
  writeKubeconfig(file: string): void
  close(): Promise<void>
}

export async function openApi(world: World, clock: Clock): Promise<EmbeddedApi> {
  const { server, network } = world
  const api = network.find('api')
  if (server === undefined || api === undefined) throw new Error('the embedded world has an API server of its own')
  const [person, replica] = [token(), token()]
  const served = await serve(server, {
    wall: clock.wall(),
    tokens: {
      [person]: admin,
      [replica]: { name: `system:serviceaccount:${systemNamespace}:holdfast-coordinator`, groups: ['system:serviceaccounts', 'system:authenticated'] },
    },
  })
  return {
    transport(host, process) {
      const real = httpsTransport({ url: served.url, ca: served.ca, clock, credentials: async () => ({ token: replica }) })
      // Its kernel closes what a dead process leaves open.
      process.onEnd(() => real.close())
      return simulatedTransport(network, host, api, process, real)
    },
    writeKubeconfig(file) {
      writeFileSync(file, stringify({
        apiVersion: 'v1', kind: 'Config', 'current-context': 'holdfast',
        clusters: [{ name: 'embedded', cluster: { server: served.url, 'certificate-authority-data': Buffer.from(served.ca).toString('base64') } }],
        users: [{ name: 'admin', user: { token: person } }],
        contexts: [{ name: 'holdfast', context: { cluster: 'embedded', user: 'admin', namespace: workNamespace } }],
      }), { mode: 0o600 })
    },
    close: () => served.close(),
  }
}

function token(): string {
  return randomBytes(24).toString('base64url')
}
