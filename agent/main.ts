// The agent as a process.
import process, { env, exit } from 'node:process'
import { machineClock, withDeadline } from '../edge/clock.ts'
import { machineLog } from '../edge/machine-log.ts'
import { startAgent } from './agent.ts'
import { removeBootGate } from './boot-gate-install.ts'
import { machineHost } from './machine-host.ts'
import { readEnvironment } from './settings.ts'
import { whyItEnds } from './shutdown.ts'

/** Its goodbye is on the wire long before; whoever does not end by then is ended. */
const stopWithin = 5_000
/** A process that ends at once resets its streams, and a goodbye that nobody has read yet is lost with them. */
const lastWords = 200
/** A disk that hangs delays it by no more. */
const diskWithin = 2_000

const read = readEnvironment(env)
if (!read.ok) {
  for (const fault of read.faults) console.error(`holdfast agent: ${fault}`)
  exit(2)
}
const { settings } = read
// A gate that nobody opens any more must not go on holding pods at each boot.
if (!settings.gateFromBoot) {
  await withDeadline(machineClock, diskWithin, undefined, () => removeBootGate(settings.state)).catch((error: unknown) => console.error(`holdfast agent: the gate of the boot stays: ${String(error)}`))
}
const log = machineLog(settings.logLevel, {})
const host = machineHost(settings, log)
const agent = startAgent(host, { version: '0.1.0', kubeletRoot: settings.kubeletRoot, whisperPort: settings.whisperPort, exemptNamespaces: settings.exemptNamespaces, storage: settings.storage, ...(settings.gate === undefined ? {} : { gate: settings.gate }) })

const stop = (): void => {
  host.clock.after(stopWithin, () => exit(1))
  void whyItEnds(settings).then(agent.stop).then(() => host.clock.after(lastWords, () => exit(0)))
}
process.on('SIGTERM', stop)
process.on('SIGINT', stop)
