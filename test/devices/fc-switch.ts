// A Fibre Channel switch of Brocade's kind with two doors to one shell: SSH, as our program wants it, and telnet, so that Debian's
// fence_brocade can say whether the shell is one.
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fabricLogin, startFabricOs, type FabricOs } from '../fence-agents/fabric-os.ts'
import type { Parameters, Rack } from './rack.ts'

export interface FcSwitch {
  readonly fabric: FabricOs
  /** Parameters of `fc-switch`, and of fence_brocade. */
  readonly ours: Parameters
  readonly theirs: Parameters
  /** Of both: what agent-test must know of its ports. */
  readonly about: Parameters
}

export async function startFcSwitch(rack: Rack): Promise<FcSwitch> {
  const fabric = await startFabricOs('fixed', rack.folder)
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket)).on('error', () => undefined) // a client that has read enough
    const lines = createInterface({ input: socket.setEncoding('latin1') }).on('error', () => undefined)
    void converse(lines, (text) => socket.write(text.replaceAll('\n', '\r\n')), fabric).finally(() => socket.end())
  })
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', () => resolve()) })
  rack.keep({
    async vanish() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await fabric.close()
    },
  })
  const login = { ip: '127.0.0.1', ...fabricLogin }
  return {
    fabric,
    ours: { ...login, ipport: String(fabric.port), hostkey_sha256: fabric.fingerprint },
    theirs: { ...login, ipport: String((server.address() as AddressInfo).port) }, // it listens on a port
    about: {
      plug: '1', other: '2', unknown: '99', 'wrong.password': 'wrong', truth: `cat ${join(rack.folder, 'port-$PLUG')}`,
      gone: `touch ${join(rack.folder, 'gone')}`, back: `rm ${join(rack.folder, 'gone')}`,
    },
  }
}

/** What the protocol itself says (RFC 854: 255, a verb, an option), which this switch leaves unanswered. */
const negotiation = /\xff[\xfb-\xfe]./gs
const prompt = 'fabric-1:admin> '

async function converse(lines: AsyncIterable<string>, say: (text: string) => void, fabric: FabricOs): Promise<void> {
  const heard: string[] = []
  say('\nfabric-1 login: ')
  for await (const line of lines) {
    // Two line ends in a row say one thing.
    const word = line.replace(negotiation, '').replace(/[\r\0]/g, '').trim()
    if (word === '') continue
    if (word === 'exit') return
    heard.push(word)
    if (heard.length === 1) say('Password: ')
    else if (heard.length > 2) say(`${word}\n${fabric.says(word)}${prompt}`)
    else if (heard[0] === fabricLogin.username && word === fabricLogin.password) say(`\n${prompt}`)
    else return say('\nLogin incorrect\n')
  }
}
