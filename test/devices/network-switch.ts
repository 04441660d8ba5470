// A real switch: a bridge of Linux in a network namespace of its own, whose ports snmpd switches, with two machines' network
// ends on it. The namespaces are gone with the processes that hold them.
import { spawnSync } from 'node:child_process'
import { execPath } from 'node:process'
import { fileURLToPath } from 'node:url'
import { startNamespace, type Namespace } from './namespace.ts'
import { until, type Rack } from './rack.ts'
import { startSnmpd, type Snmpd } from './snmpd.ts'

export interface NetworkSwitch extends Snmpd {
  /** Of what is sent between the machines of these ports: whether anything arrives. */
  carries(from: Port, to: Port): boolean
  /** A line of shell that prints whether the port in $PLUG is on, as the kernel has it. */
  readonly stateCommand: string
}

export type Port = 'p1' | 'p2' | 'p3'
const ports: readonly Port[] = ['p1', 'p2', 'p3']

export async function startNetworkSwitch(rack: Rack): Promise<NetworkSwitch> {
  const bridge = await startNamespace(rack, 'switch')
  bridge.run('ip', 'link', 'set', 'lo', 'up')
  bridge.run('ip', 'link', 'add', 'br0', 'type', 'bridge')
  bridge.run('ip', 'link', 'set', 'br0', 'up')
  const machines = new Map<Port, Namespace>()
  for (const [index, port] of ports.entries()) {
    const machine = await startNamespace(rack, `machine-${port}`)
    bridge.run('ip', 'link', 'add', port, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', machine.holder)
    bridge.run('ip', 'link', 'set', port, 'master', 'br0', 'up')
    machine.run('ip', 'addr', 'add', `${address(index)}/24`, 'dev', 'eth0')
    machine.run('ip', 'link', 'set', 'eth0', 'up')
    machines.set(port, machine)
  }
  // The agents' way to the switch leads through its own namespace; for the rest they are run as ever.
  bridge.wrap('switch-snmp', [execPath, fileURLToPath(new URL('../../fence-agents/switch-snmp/switch-snmp.ts', import.meta.url))])
  bridge.wrap('fence_ifmib', ['/usr/sbin/fence_ifmib'])
  const snmpd = await startSnmpd(rack, 'snmpd', [], bridge.command())
  await until('the switch to answer', async () => (await rack.ask('switch-snmp', 'status', { ...snmpd.v2c, plug: 'p1' })).state !== 'unknown')
  return {
    ...snmpd,
    stateCommand: `${bridge.command('ip', '-o', 'link', 'show').join(' ')} "$PLUG" | grep -q 'state UP' && echo on || echo off`,
    carries(from, to) {
      const pinged = spawnSync('nsenter', ['-t', machines.get(from)?.holder ?? '', '-n', 'ping', '-q', '-c', '5', '-i', '0.2', '-W', '1', address(ports.indexOf(to))], { encoding: 'utf8' })
      const heard = /, (\d+) received/.exec(pinged.stdout)?.[1]
      if (heard === undefined) throw new Error(`ping: ${pinged.stdout}${pinged.stderr}`)
      return heard !== '0'
    },
  }
}

function address(index: number): string {
  return `10.77.0.${index + 1}`
}
