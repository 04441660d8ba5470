// The suite on the in-memory server, on a clock of its own, so that no case waits for real; and the suite on servers that are
// wrong, where it must fail.
import * as assert from 'uvu/assert'
import { suite } from 'uvu'
import { admin, createApiServer, nodeUser } from '../../sim/api-server/server.ts'
import { virtualClock } from '../../sim/clock.ts'
import type { VirtualClock } from '../../sim/clock.ts'
import type { Transport } from '../../coordinator/transport.ts'
import { deviations } from './deviations.ts'
import { allCases, openGround } from './run.ts'
import type { Ground } from './run.ts'
import type { Driver } from './world.ts'

const test = suite('conformance of the in-memory API server')

test('there are at least 120 cases and no two share a name', () => {
  assert.ok(allCases.length >= 120, `${allCases.length} cases`)
  assert.is(new Set(allCases.map((one) => one.name)).size, allCases.length)
})

const right = openWorld((transport) => transport)

for (const one of allCases) {
  test(one.name, async () => {
    const result = await right.turn((ground) => ground.run(one))
    assert.is(result.fault, undefined, result.fault)
  })
}

for (const deviation of deviations) {
  test(`a server that ${deviation.name} is found out`, async () => {
    const world = openWorld(deviation.plant)
    for (const name of deviation.reds) {
      const one = allCases.find((candidate) => candidate.name === name)
      assert.ok(one, `no case is named: ${name}`)
      if (one === undefined) return
      const result = await world.turn((ground) => ground.run(one))
      assert.is.not(result.fault, undefined, `green although the server ${deviation.name}: ${name}`)
    }
  })
}

test('at least eight ways of being wrong are tried', () => {
  assert.ok(deviations.length >= 8, `${deviations.length} deviations`)
})

interface ConformanceWorld { turn<T>(work: (ground: Ground) => Promise<T>): Promise<T> }

function openWorld(plant: (transport: Transport) => Transport): ConformanceWorld {
  const clock = virtualClock()
  const server = createApiServer({ clock, chance: chanceFrom(1) })
  const driver: Driver = {
    admin: plant(server.transportFor(admin)), node: (name) => plant(server.transportFor(nodeUser(name))), prefix: 'memory', clock,
  }
  let opened: Promise<Ground> | undefined
  return {
    turn: (work) => turned(clock, async () => work(await (opened ??= openGround(driver)))),
  }
}

/** Longer than any case waits, in the clock's own time. */
const limit = 120_000

async function turned<T>(clock: VirtualClock, work: () => Promise<T>): Promise<T> {
  let over = false
  const done = work().finally(() => { over = true })
  done.catch(() => undefined) // it is awaited below, after the clock
  await clock.runWhen(() => over, limit)
  assert.ok(over, 'the case waits for something that does not come')
  return done
}

/** Numbers in [0, 1) that are the same in each run. */
function chanceFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 48_271) % 2_147_483_647
    return state / 2_147_483_647
  }
}

test.run()
