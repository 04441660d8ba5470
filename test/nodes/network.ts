// The lab's network: one switch, to which every machine has a cable, with the control plane and the management controllers at
// its first address. All that goes from one machine to another passes there, and pods are routed by their machine's address,
// without translation: so whatever is to be cut is cut at one place. It exists in the room's network namespace and ends with it;
// nothing of it can be reached from outside.
import { writeFileSync } from 'node:fs'
import { command } from './command.ts'

/** The control plane, the management controllers and the way out of the machines. */
export const gateway = '10.99.0.1'
/** The first address of the control plane's service range: what pods take for the API server. */
export const serviceAddress = '10.0.0.1'

export const addressOf = (index: number): string => `10.99.0.${11 + index}`
export const podRangeOf = (index: number): string => `10.244.${1 + index}.0/24`

const bridge = 'switch'
const cableOf = (machine: string): string => `to-${machine}`

/** Once a room. */
export async function openNetwork(): Promise<void> {
  await ip('link', 'set', 'lo', 'up')
  // Left to itself a bridge takes the lowest address of its ports, and with the machine of that port everybody would lose it.
  await ip('link', 'add', bridge, 'address', '02:00:00:00:00:01', 'type', 'bridge')
  await ip('address', 'add', `${gateway}/24`, 'dev', bridge)
  await ip('address', 'add', `${serviceAddress}/32`, 'dev', bridge)
  await ip('link', 'set', bridge, 'up')
  writeFileSync('/proc/sys/net/ipv4/ip_forward', '1')
  // A machine that was told of a shorter way to its neighbour would go past what is cut here.
  for (const where of ['all', bridge]) writeFileSync(`/proc/sys/net/ipv4/conf/${where}/send_redirects`, '0')
  // What is for us is looked up second, so that it can be cut too.
  await ip('rule', 'add', 'pref', String(afterCuts), 'lookup', 'local')
  await ip('rule', 'delete', 'pref', '0')
}

const cuts = 10
const afterCuts = 100

/** Addresses or ranges. What is on its way from one to the other is lost without a word, until the answer is called. */
export async function cut(from: string, to: string): Promise<() => Promise<void>> {
  const rule = ['pref', String(cuts), 'from', from, 'to', to, 'blackhole']
  await ip('rule', 'add', ...rule)
  return async () => void await ip('rule', 'delete', ...rule)
}

/** What a story that failed has left cut would cut off the machines of the next one, whose addresses are the same. */
export async function mendCuts(): Promise<void> {
  while (await ip('rule', 'delete', 'pref', String(cuts)).then(() => true, () => false));
}

/** From the switch into the network namespace of the machine's process 1. */
export async function plugIn(machine: string, index: number, pid: number): Promise<void> {
  const cable = cableOf(machine)
  await unplug(machine)
  await ip('link', 'add', cable, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', String(pid))
  await ip('link', 'set', cable, 'master', bridge)
  await ip('link', 'set', cable, 'up')
  // On the link whatever the rules say: a machine may boot while it is cut off.
  await ip('route', 'replace', podRangeOf(index), 'via', addressOf(index), 'dev', bridge, 'onlink')
}

/** The kernel takes a network apart a while after its last process, a minute at times, and refuses in its name until then: by that a machine would seem to run. */
export async function unplug(machine: string): Promise<void> {
  await ip('link', 'delete', cableOf(machine)).catch(() => undefined) // it was gone with its network
}

/** As if the plug were pulled: both ends see that there is no carrier. */
export async function setCable(machine: string, state: 'up' | 'down'): Promise<void> {
  await ip('link', 'set', cableOf(machine), state)
}

function ip(...words: string[]): Promise<string> {
  return command('ip', words)
}
