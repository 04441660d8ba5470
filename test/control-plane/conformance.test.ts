// What we rely on of the API server, asked of the real one: the same cases, under the same names, that the in-memory one passes.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { HttpsTransport } from '../../coordinator/https.ts'
import { machineClock } from '../../edge/clock.ts'
import { allCases, openGround, type Ground } from '../conformance/run.ts'
import { startControlPlane, type ControlPlane } from './control-plane.ts'
import { bearerTransport, transportTo } from './transport.ts'

const test = suite('conformance of the real API server')

let opened: { readonly plane: ControlPlane; readonly ground: Ground } | undefined
const transports: HttpsTransport[] = []

test('a real API server is there', async () => {
  const plane = await startControlPlane()
  const ground = await openGround({
    admin: kept(transportTo(plane, 'admin')), node: (name) => kept(transportTo(plane, `system:node:${name}`)),
    bearer: (token) => kept(bearerTransport(plane, token)), prefix: 'real', clock: machineClock,
  })
  opened = { plane, ground }
})

function kept(transport: HttpsTransport): HttpsTransport {
  transports.push(transport)
  return transport
}

for (const one of allCases) {
  test(one.name, async () => {
    if (opened === undefined) throw new Error('the control plane did not start, see the first test')
    const result = await opened.ground.run(one)
    assert.is(result.fault, undefined, result.fault)
  })
}

test('it stops and leaves nothing open', async () => {
  await opened?.ground.close()
  for (const transport of transports) transport.close()
  await opened?.plane.stop()
})

test.run()
