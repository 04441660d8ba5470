// One replica as a process: settings, log, API server, certificates, the coordinator, and what it shows over HTTP.
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import process, { env, exit } from 'node:process'
import { machineClock } from '../edge/clock.ts'
import type { Log } from '../edge/log.ts'
import { machineLog } from '../edge/machine-log.ts'
import { createApi } from './api.ts'
import { keepAuthority } from './authority.ts'
import { byCalendar } from './calendar.ts'
import { startCoordinator, type Coordinator } from './coordinator.ts'
import { refuseCoreDumps } from './core-dumps.ts'
import { drillSchedule } from './drill-schedule.ts'
import { serveHealth } from './health.ts'
import { clusterTransport } from './kubeconfig.ts'
import { machineHost, type MachineHost } from './machine-host.ts'
import { measures } from './measures.ts'
import { keepNaps } from './naps.ts'
import { createPage } from './page.ts'
import { readSettings, type ReplicaSettings } from './settings.ts'

/** Who is asked to end and does not within this span is ended. */
const stopWithin = 20_000
const shortestPeriod = 60_000
/** With fewer links to read, naps spare little, and every answer is to be as fast as it can. */
const napsFrom = 1_000
/** Programs that are ended at once. */
const endWithin = 2_000

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
  const log = machineLog(settings.logLevel, { replica: settings.name })
  for (const lacking of refuseCoreDumps()) log.warn({}, lacking)
  const clock = machineClock
  // A pod that returns under its name is another replica: its old self may still be on its way out.
  const identity = `${settings.name}-${randomBytes(4).toString('hex')}`
  const { namespace, agentNamespace, address } = settings
  const measured = measures('0.1.0')
  let host: MachineHost | undefined
  let coordinator: Coordinator | undefined
  const ends: (() => void | Promise<void>)[] = []
  endings(log, ends, () => host)
  const transport = await clusterTransport()
  ends.push(() => transport.close())
  // First of all, because a start waits as long as the API server is away, and must not be taken for dead meanwhile.
  const health = await serveHealth({
    address: `${settings.bind === '::' ? '' : settings.bind}:${settings.httpPort}`, log, metrics: measured.metrics.render, live: {},
    ready: {
      started: () => (coordinator === undefined ? 'it waits for the API server' : undefined),
      watches: () => (coordinator?.ready() === false ? 'not every watch has been read yet' : undefined),
    },
  })
  ends.push(() => health.close())
  log.info({ http: health.address, server: transport.server }, 'replica starts')
  const authority = await keepAuthority({
    api: createApi({ transport, clock, userAgent: 'holdfast-coordinator' }), clock, log, namespace, agentNamespace, identity, address,
    renewed: (serving) => host?.renew(serving),
  })
  ends.push(() => authority.stop())
  const machine = machineHost({
    log, transport, address, port: settings.beatsPort, kdumpPort: settings.kdumpPort, bind: settings.bind, serving: authority.serving(), fenceAgents: settings.fenceAgents,
    authorities: async () => authority.authorities(),
  })
  host = machine
  ends.push(() => machine.close())
  const drills = drillSchedule((policy) => void coordinator?.drillSpare(policy), log)
  const started = await startCoordinator(machine, {
    namespace, agentNamespace, identity, salt: authority.salt, token: () => readToken(settings.tokenFile), replicas: authority.replicas,
    decided(span) {
      measured.decision.observe({}, span / 1000)
      if (coordinator !== undefined) drills.keep(coordinator.policies())
    },
    wrote: measured.wrote,
    requested: (verb, answer, span) => measured.request.observe({ verb, answer }, span / 1000),
  })
  coordinator = started
  measured.watch(started, clock)
  const page = createPage({ source: started, clock })
  health.route('/', page.handle)
  // Only the replica that leads does anything.
  const pruning = byCalendar(settings.pruneAt, () => void started.prune(), log)
  const turns = byCalendar(settings.auditAt, () => void started.auditAll(period(turns.getNextRun(), clock.wall())), log)
  const awake = keepNaps({ now: clock.now, wanted: () => started.beats.linked() >= napsFrom && !started.hurries() })
  ends.push(() => started.stop(), () => awake(), () => page.close(), () => void pruning.destroy(), () => void turns.destroy(), () => drills.stop())
  log.info({ beats: started.address, http: health.address, server: transport.server }, 'replica runs')
}

/** From this turn of the audit to the next one. */
function period(next: Date | null, wall: number): number {
  return Math.max(shortestPeriod, (next?.getTime() ?? 0) - wall)
}

/** Asked to end, what was begun is ended, the latest first. By a fault of ours: at least the fence programs, which would outlive us. */
function endings(log: Log, ends: readonly (() => void | Promise<void>)[], host: () => MachineHost | undefined): void {
  let stopping = false
  const stop = async (): Promise<void> => {
    if (stopping) return
    stopping = true
    log.info({}, 'replica stops')
    machineClock.after(stopWithin, () => exit(1))
    for (const end of ends.toReversed()) await end()
    exit(0)
  }
  process.on('SIGTERM', () => void stop())
  process.on('SIGINT', () => void stop())
  process.on('uncaughtException', (error) => {
    log.error({ error: error.stack }, 'a fault of its own ends this replica')
    machineClock.after(endWithin, () => exit(1))
    void host()?.close().finally(() => exit(1))
    if (host() === undefined) exit(1)
  })
}

/** The kubelet renews it in place. No token is no reason to stop: only the links to other replicas need it. */
async function readToken(file: string): Promise<string | undefined> {
  return readFile(file, 'utf8').then((text) => text.trim(), () => undefined)
}
