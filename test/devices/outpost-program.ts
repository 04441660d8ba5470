// The edges of a coordinator that meet machines, run where the machines' network is: what it hears and what it is answered goes over a unix
// socket, a line each. outpost.ts starts it.
import { connect } from 'node:net'
import { argv } from 'node:process'
import { createInterface } from 'node:readline'
import { listenKdump } from '../../coordinator/kdump.ts'
import { probePort } from '../../coordinator/probe.ts'
import { machineClock } from '../../edge/clock.ts'

const [path = '', kdumpPort = ''] = argv.slice(2)
const socket = connect(path)
await listenKdump({ bind: '0.0.0.0', port: Number(kdumpPort) }, (from) => socket.write(`heard ${from}\n`))
socket.write('ready\n')
for await (const line of createInterface({ input: socket })) {
  const [id, address = '', port, span] = line.split(' ')
  void probePort(machineClock, address, Number(port), Number(span)).then((word) => socket.write(`answered ${id} ${word}\n`))
}
