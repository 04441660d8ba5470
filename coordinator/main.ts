// One replica as a process: settings, log, API server, certificates, the coordinator, and what it shows over HTTP.
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import process, { env, exit } from 'node:process'
import pino from 'pino'
import { machineClock } from '../edge/clock.ts'
import { createApi } from './api.ts'
import { keepAuthority } from './authority.ts'
import { startCoordinator } from './coordinator.ts'
import { serveHealth } from './health.ts'
import { clusterTransport } from './kubeconfig.ts'
import { machineHost } from './machine-host.ts'
import { measures } from './measures.ts'
import { createPage } from './page.ts'
import { readSettings, type ReplicaSettings } from './settings.ts'

/** Who is asked to end and does not within this span is ended. */
const stopWithin = 20_000

const read = readSettings(env)
if (!read.ok) {
  for (const fault of read.faults) console.error(`holdfast coordinator: ${fault}`)
  exit(2)
}
await run(read.settings).catch((error: unknown) => {
  console.error(`holdfast coordinator: ${error instanceof Error ? error.message : String(error)}`)
  exit(1)
})

async function run(settings: ReplicaSettings): Promise<void> {
  const log = pino({ level: settings.logLevel, base: { replica: settings.name } }, pino.destination({ sync: true }))
  const clock = machineClock
  const transport = await clusterTransport()
  // A pod that returns under its name is another replica: its old self may still be on its way out.
  const identity = `${settings.name}-${randomBytes(4).toString('hex')}`
  const { namespace, agentNamespace, address } = settings
  const measured = measures('0.1.0')
  let host: ReturnType<typeof machineHost> | undefined
  const authority = await keepAuthority({
    api: createApi({ transport, clock, userAgent: 'holdfast-coordinator' }), clock, log, namespace, agentNamespace, identity, address,
    renewed: (serving) => host?.renew(serving),
  })
  host = machineHost({
    log, transport, address, port: settings.beatsPort, bind: settings.bind, serving: authority.serving(), fenceAgents: settings.fenceAgents,
    authorities: async () => authority.authorities(),
  })
  const coordinator = await startCoordinator(host, {
    namespace, agentNamespace, identity, salt: authority.salt, token: () => readToken(settings.tokenFile), replicas: authority.replicas,
    decided: (span) => measured.decision.observe({}, span / 1000),
    requested: (verb, answer, span) => measured.request.observe({ verb, answer }, span / 1000),
  })
  measured.watch(coordinator, clock)
  const page = createPage({ source: coordinator, clock })
  const health = await serveHealth({
    address: `${settings.bind === '::' ? '' : settings.bind}:${settings.httpPort}`, log, metrics: measured.metrics.render,
    live: {}, ready: { watches: () => (coordinator.ready() ? undefined : 'not every watch has been read yet') },
  })
  health.route('/', page.handle)
  log.info({ beats: coordinator.address, http: health.address, server: transport.server }, 'replica runs')

  let stopping = false
  const stop = async (): Promise<void> => {
    if (stopping) return
    stopping = true
    log.info({}, 'replica stops')
    clock.after(stopWithin, () => exit(1))
    page.close()
    await coordinator.stop()
    authority.stop()
    await host.close()
    await health.close()
    await transport.close()
    exit(0)
  }
  process.on('SIGTERM', () => void stop())
  process.on('SIGINT', () => void stop())
}

/** The kubelet renews it in place. No token is no reason to stop: only the links to other replicas need it. */
async function readToken(file: string): Promise<string | undefined> {
  return readFile(file, 'utf8').then((text) => text.trim(), () => undefined)
}
