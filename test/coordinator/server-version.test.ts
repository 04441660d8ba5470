import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Api } from '../../coordinator/api.ts'
import { knowsMaintenance, watchServerVersion } from '../../coordinator/server-version.ts'
import { virtualClock } from '../../sim/clock.ts'

const test = suite('server version')

for (const [major, minor, knows] of [['1', '36', false], ['1', '37', true], ['1', '37+', true], ['1', '40', true], ['2', '0', true], ['', '', false], ['1', 'x', false]] as const) {
  test(`${major}.${minor} ${knows ? 'has' : 'has not'} the condition`, () => assert.is(knowsMaintenance({ major, minor }), knows))
}

test('it is asked for again until it is known, then each hour, and by nobody who leads no more', async () => {
  const clock = virtualClock()
  const leads = new AbortController()
  const [asked, told]: [number[], unknown[]] = [[], []]
  const get = async () => (asked.push(clock.now()) === 1 ? { ok: false, error: { kind: 'unreachable', message: 'no' } } : { ok: true, value: { major: '1', minor: '37' } })
  void watchServerVersion({ get } as unknown as Api, clock, leads.signal, (version) => told.push(version)) // one call of it
  await clock.runFor(2 * 3_600_000)
  leads.abort()
  await clock.runFor(3_600_000)
  assert.equal([asked, told.length], [[0, 30_000, 3_630_000], 2])
})

test.run()
