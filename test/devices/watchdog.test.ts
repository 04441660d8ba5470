// A real watchdog, in a virtual machine, and our agent in it that feeds it. The machine's own boot id is the judge: a new one is a reset.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { startGuestAgent, timeoutMs, type GuestAgent } from './guest-agent.ts'
import { startGuestReplica, type GuestReplica } from './guest-replica.ts'
import { inRack, pause, until } from './rack.ts'

const test = suite('watchdog')
const patience = 400_000

/** Its agent begun, heard and permitted, and its watchdog armed. The boot. */
async function armed(guest: GuestAgent, replica: GuestReplica): Promise<string> {
  const boot = await guest.machine.beats(patience)
  replica.lead()
  guest.begin(replica.address, 'the token')
  await until('its watchdog to be armed', () => replica.heard()?.watchdog?.state === 'armed' && replica.heard()?.boot.startsWith(boot) === true, patience)
  return boot
}

async function isReset({ machine }: GuestAgent, boot: string): Promise<void> {
  await until('it to be reset', () => machine.boots.at(-1) !== boot, patience)
  assert.is(machine.state(patience), 'beating', 'by itself: nobody switched it')
}

async function runsOn({ machine }: GuestAgent, boot: string): Promise<void> {
  await pause(2.5 * timeoutMs)
  await machine.mustBeatOn(boot)
}

test('fed as long as the node is permitted, and once nobody permits it the machine is reset', () => inRack(async (rack) => {
  const [guest, replica] = [await startGuestAgent(rack), await startGuestReplica(rack)]
  const boot = await armed(guest, replica)
  const { identity, timeout, machine, panic } = replica.heard()?.watchdog ?? {}
  assert.equal([identity, timeout, machine, panic], ['i6300ESB timer', timeoutMs, 'virtual', 0])
  await runsOn(guest, boot)
  await replica.away()
  await isReset(guest, boot)
}))

test('an agent that ends lets go of it by the record, and the machine runs on; one that is killed has it reset', () => inRack(async (rack) => {
  const [guest, replica] = [await startGuestAgent(rack), await startGuestReplica(rack)]
  const boot = await armed(guest, replica)
  guest.signal('TERM')
  await until('it to be disarmed', () => replica.heard()?.watchdog?.state === 'unarmed' && replica.heard()?.goodbye?.why === 'restart', patience)
  await runsOn(guest, boot)
  await armed(guest, replica)
  guest.signal('KILL')
  await isReset(guest, boot)
}))

test.run()
