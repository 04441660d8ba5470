// A process whose cable is out is heard by nobody, and knows of nothing; and goes on once it is in again.
import { createSocket } from 'node:dgram'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { machineClock as clock } from '../../edge/clock.ts'
import { cableEnvironment } from './cable.ts'
import { startComponent } from './component.ts'
import { until } from './lab-play.ts'

const test = suite('cable')

/** Counts out loud to a server, by TCP and by UDP; tells its file what it hears; dials once more when told to. */
const program = `
  import { connect } from 'node:net'
  import { createSocket } from 'node:dgram'
  import { appendFileSync } from 'node:fs'
  const [file, tcp, own, udp] = process.argv.slice(1)
  const say = (text) => appendFileSync(file, text + '\\n')
  const far = connect(Number(tcp), '127.0.0.1')
  far.on('data', (piece) => { say('far ' + piece); if (String(piece) === 'end') far.destroy() })
  far.on('close', () => say('far closed'))
  const near = connect(Number(own), '127.0.3.1')
  near.on('data', (piece) => say('near ' + piece))
  const datagrams = createSocket('udp4')
  datagrams.bind(0, '127.0.3.1')
  let count = 0
  setInterval(() => { count += 1; far.write('n' + count + ' '); near.write('n' + count + ' '); datagrams.send('u' + count, Number(udp), '127.0.0.1', () => undefined) }, 50)
  setTimeout(() => connect(Number(tcp), '127.0.0.1').on('connect', () => say('dialled')), 1_500)
`

test('nothing passes while it is out, but to the process\'s own address; what waited goes on afterwards, and no end is seen before', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-cable-'))
  const [cut, told, log] = ['cut', 'told', 'log'].map((name) => join(folder, name)) as [string, string, string] // three in, three out
  writeFileSync(told, '')
  writeFileSync(log, '')
  const heard = { far: '', near: '', datagrams: 0, links: 0, ends: 0 }
  const links: Socket[] = []
  const far = createServer((socket) => {
    heard.links += 1
    socket.on('data', (piece) => { heard.far += String(piece) })
    socket.on('close', () => { heard.ends += 1 })
    socket.on('error', () => undefined) // the process is killed in the end
    links.push(socket)
  })
  const near = createServer((socket) => {
    socket.on('data', (piece) => { heard.near += String(piece) })
    socket.on('error', () => undefined) // likewise
  })
  const datagrams = createSocket('udp4')
  datagrams.on('message', () => { heard.datagrams += 1 })
  await Promise.all([
    new Promise<void>((resolve) => { far.listen(0, '127.0.0.1', resolve) }), new Promise<void>((resolve) => { near.listen(0, '127.0.3.1', resolve) }),
    new Promise<void>((resolve) => { datagrams.bind(0, '127.0.0.1', resolve) }),
  ])
  const ports = [(far.address() as AddressInfo).port, (near.address() as AddressInfo).port, datagrams.address().port] // servers on TCP
  const set = Object.entries(cableEnvironment(cut, '127.0.3.1')).map(([key, value]) => `${key}=${value}`)
  const child = await startComponent({
    name: 'a talker', logFile: log, file: '/usr/bin/env',
    args: [...set, execPath, '--import', new URL('cable.ts', import.meta.url).href, '--input-type=module', '--eval', program, told, ...ports.map(String)],
  })
  try {
    await until('both are heard', () => heard.far.includes('n3') && heard.near.includes('n3') && heard.datagrams > 2, 20_000)
    writeFileSync(cut, '')
    await clock.wait(200)
    const before = { ...heard }
    links[0]?.write('end')
    await clock.wait(2_500)
    assert.equal({ ...heard, near: '' }, { ...before, near: '' }, 'the far end hears nothing, and sees no end and no new link')
    assert.ok(heard.near.length > before.near.length, 'its own address is not behind the cable')
    assert.not.match(readFileSync(told, 'utf8'), /far|dialled/)
    rmSync(cut)
    await until('what waited has passed', () => readFileSync(told, 'utf8').includes('far closed'), 5_000)
    await until('its end is seen', () => heard.ends > 0, 5_000)
    const numbers = heard.far.trim().split(' ').map((word) => Number(word.slice(1)))
    assert.equal(numbers, numbers.map((_, index) => index + 1), 'in order, and none is missing')
    await until('datagrams are heard again', () => heard.datagrams > before.datagrams, 5_000)
  } finally {
    await child.crash()
    for (const server of [far, near]) server.close()
    datagrams.close()
    rmSync(folder, { recursive: true })
  }
})

test('a link that is ended while it is out is ended for the other end once it is in again, and not before', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-cable-'))
  const [cut, log] = [join(folder, 'cut'), join(folder, 'log')]
  writeFileSync(log, '')
  let [links, ends] = [0, 0]
  const far = createServer((socket) => {
    links += 1
    socket.resume()
    socket.on('close', () => { ends += 1 })
    socket.on('error', () => undefined) // the process is killed in the end
  })
  await new Promise<void>((resolve) => { far.listen(0, '127.0.0.1', resolve) })
  const { port } = far.address() as AddressInfo // a server on TCP
  const child = await startComponent({
    name: 'who hangs up', logFile: log, file: '/usr/bin/env',
    args: [...Object.entries(cableEnvironment(cut, '127.0.3.1')).map(([key, value]) => `${key}=${value}`), execPath, '--import', new URL('cable.ts', import.meta.url).href, '--input-type=module', '--eval',
      `import { connect } from 'node:net'; const link = connect(${port}, '127.0.0.1'); setTimeout(() => link.destroy(), 2_000); setInterval(() => undefined, 1_000)`],
  })
  try {
    await until('it is linked', () => links === 1, 20_000)
    writeFileSync(cut, '')
    await clock.wait(3_000)
    assert.is(ends, 0)
    rmSync(cut)
    await until('its end is seen', () => ends === 1, 5_000)
  } finally {
    await child.crash()
    far.close()
    rmSync(folder, { recursive: true })
  }
})

test.run()
