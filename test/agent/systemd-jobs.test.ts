import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import fc from 'fast-check'
import type { ByteStream } from '../../agent/host.ts'
import { queuedJobs, readJobs, type Job } from '../../agent/systemd-jobs.ts'
import { virtualClock } from '../../sim/clock.ts'
import { jobsBody, message, recorded } from './systemd-bytes.ts'

const test = suite('systemd-jobs')

const greeting = Buffer.from('OK 0123456789abcdef0123456789abcdef\r\n')
const ours = { call: Buffer.from('ListJobs'), auth: Buffer.from('\0AUTH EXTERNAL 30\r\nBEGIN\r\n') }

/** Asks, and hears these pieces one after the other; after them nothing. */
async function asked(pieces: readonly Uint8Array[], then: 'silent' | 'hangs up' = 'silent'): Promise<{ readonly jobs: readonly Job[] | undefined; readonly sent: Buffer; readonly waited: number; readonly closed: boolean }> {
  const clock = virtualClock()
  const sent: Uint8Array[] = []
  let closed = false
  const stream: ByteStream = {
    send: (bytes) => void sent.push(bytes),
    listen(ears) {
      pieces.forEach((piece, index) => clock.after(index + 1, () => ears.bytes(piece)))
      if (then === 'hangs up') clock.after(pieces.length + 1, () => ears.closed('it has gone'))
    },
    close: () => { closed = true },
  }
  const answer = queuedJobs(async () => stream, clock, 1_000).then((jobs) => ({ jobs, sent: Buffer.concat(sent), waited: clock.now(), closed }))
  await clock.runFor(2_000)
  return answer
}

const two = [{ unit: 'slow.service', type: 'start' }, { unit: 'reboot.target', type: 'start' }]

test('what a real systemd has said is read: jobs, none, and that it knows no such question', async () => {
  assert.equal((await asked([greeting, recorded.two])).jobs, two)
  assert.equal((await asked([greeting, message(2, jobsBody([]))])).jobs, [])
  const refused = await asked([greeting, recorded.refused])
  assert.equal([refused.jobs, refused.waited < 1_000], [undefined, true])
})

test('it is asked once it has let us in, and not before', async () => {
  const { sent, closed } = await asked([greeting, recorded.two])
  assert.is(sent.indexOf(ours.auth), 0)
  assert.ok(sent.includes(ours.call) && closed)
  assert.not.ok((await asked([])).sent.includes(ours.call))
})

test('in whatever pieces it comes, and among whatever it tells beside it', async () => {
  const whole = Buffer.concat([greeting, message(4, Buffer.alloc(8)), message(4, Buffer.from('what becomes of a unit')), recorded.two])
  assert.equal((await asked([whole])).jobs, two)
  assert.equal((await asked(Array.from(whole, (byte) => Uint8Array.of(byte)))).jobs, two)
})

test('whoever does not let us in, hangs up, or says nothing, tells nothing, and costs no more than the span', async () => {
  assert.is((await asked([Buffer.from('REJECTED\r\n')])).jobs, undefined)
  const gone = await asked([greeting], 'hangs up')
  assert.equal([gone.jobs, gone.waited < 1_000], [undefined, true])
  for (const pieces of [[], [greeting], [greeting, recorded.two.subarray(0, 200)]]) {
    const { jobs, waited } = await asked(pieces)
    assert.equal([jobs, waited], [undefined, 1_000])
  }
  assert.is(await queuedJobs(async () => Promise.reject(new Error('ECONNREFUSED')), virtualClock(), 1_000), undefined)
})

test('an answer beyond all measure is none, whether it says so or goes on', async () => {
  const huge = message(2, Buffer.alloc(16))
  huge.writeUInt32LE(0xfffffff0, 4)
  assert.equal((await asked([greeting, huge])).waited, 2)
  const more = await asked([greeting, ...Array.from({ length: 9 }, () => message(4, Buffer.alloc(512 * 1_024)))])
  assert.equal([more.jobs, more.waited < 1_000], [undefined, true])
})

test('a list that is cut short or spoilt is no list', () => {
  const body = jobsBody([['slow.service', 'start'], ['reboot.target', 'start']])
  assert.equal(readJobs(body), two)
  for (let length = 0; length < body.length; length += 1) assert.is(readJobs(body.subarray(0, length)), undefined, `${length} of ${body.length} bytes`)
  const lastText = '/org/freedesktop/systemd1/unit/any'
  for (const at of [12, body.length - lastText.length - 5]) {
    const long = Buffer.from(body)
    long.writeUInt32LE(long.readUInt32LE(at) + 50, at)
    assert.is(readJobs(long), undefined, `a text that is too long, at ${at}`)
  }
})

test('garbage throws nothing, and nobody waits longer for it', async () => {
  const piece = fc.uint8Array({ maxLength: 64 })
  await fc.assert(fc.asyncProperty(fc.array(piece, { maxLength: 6 }), fc.boolean(), async (pieces, greeted) => {
    const { waited } = await asked(greeted ? [greeting, ...pieces] : pieces)
    assert.ok(waited <= 1_000)
  }), { numRuns: 100 })
  fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), (body) => void readJobs(body)))
})

test.run()
