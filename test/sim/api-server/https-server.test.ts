import { Agent, request } from 'node:https'
import process from 'node:process'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { KubeObject } from '../../../coordinator/api.ts'
import { serve } from '../../../sim/api-server/https-server.ts'
import type { Served } from '../../../sim/api-server/https-server.ts'
import { admin, createApiServer } from '../../../sim/api-server/server.ts'
import { machineClock } from '../../../edge/clock.ts'
import { map, maps } from './server-world.ts'

const test = suite('https server')

/** The server while `run` runs, and nothing of it after. */
async function whileServing(run: (served: Served, apiServer: ReturnType<typeof createApiServer>, agent: Agent) => Promise<void>): Promise<void> {
  const apiServer = createApiServer({ clock: machineClock, chance: () => 0.25 })
  const served = await serve(apiServer, { tokens: { secret: admin }, wall: machineClock.wall() })
  const agent = new Agent({ ca: served.ca, keepAlive: true })
  try {
    await run(served, apiServer, agent)
  } finally {
    agent.destroy()
    await served.close()
  }
}

function ask(served: Served, agent: Agent, path: string, options: { token?: string; method?: string; body?: string } = {}): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const { token, method = 'GET', body } = options
    const headers = { ...(token === undefined ? {} : { authorization: `Bearer ${token}` }), 'content-type': 'application/json' }
    const asked = request(`${served.url}${path}`, { agent, method, headers }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (piece: string) => { text += piece })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }))
      response.on('error', reject)
      response.on('aborted', () => reject(new Error('broken off')))
    })
    asked.on('error', reject)
    asked.end(body)
  })
}

test('who bears a known token is served under a certificate that its authority vouches for', async () => {
  await whileServing(async (served, _apiServer, agent) => {
    assert.is((await ask(served, agent, maps, { token: 'secret', method: 'POST', body: JSON.stringify(map('a')) })).status, 201)
    const list = await ask(served, agent, maps, { token: 'secret' })
    assert.is(list.status, 200)
    assert.match(list.text, '"name":"a"')
  })
})

test('who bears no token or an unknown one is not: 401', async () => {
  await whileServing(async (served, _apiServer, agent) => {
    assert.is((await ask(served, agent, maps)).status, 401)
    assert.is((await ask(served, agent, maps, { token: 'guess' })).status, 401)
    assert.is((await ask(served, agent, '/readyz')).status, 200)
  })
})

test('a token that the server itself issued is good, until its account is gone', async () => {
  await whileServing(async (served, _apiServer, agent) => {
    const accounts = '/api/v1/namespaces/default/serviceaccounts'
    const issued = await ask(served, agent, `${accounts}/default/token`, { token: 'secret', method: 'POST', body: '{"spec":{}}' })
    const token = /"token":"([^"]+)"/.exec(issued.text)?.[1] ?? ''
    assert.is((await ask(served, agent, maps, { token })).status, 200)
    await ask(served, agent, `${accounts}/default`, { token: 'secret', method: 'DELETE' })
    assert.is((await ask(served, agent, maps, { token })).status, 401)
  })
})

test('a watch streams over the wire and ends in time', async () => {
  await whileServing(async (served, apiServer, agent) => {
    const watched = ask(served, agent, `${maps}?watch=true&timeoutSeconds=1`, { token: 'secret' })
    apiServer.plant({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a', namespace: 'default' } })
    assert.match((await watched).text, '"type":"ADDED"')
  })
})

test('a long stream leaves nothing behind on its connection, however often the reader was behind', async () => {
  const warnings: string[] = []
  const warned = ({ message }: Error) => void warnings.push(message)
  process.on('warning', warned)
  await whileServing(async (served, apiServer, agent) => {
    const data = { text: 'x'.repeat(100_000) }
    for (let index = 0; index < 60; index += 1) apiServer.plant({ ...map(`map-${index}`, data), apiVersion: 'v1', kind: 'ConfigMap' } as KubeObject) // a ConfigMap whole
    const path = `${maps}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1`
    const { text } = await ask(served, agent, path, { token: 'secret' })
    assert.is(text.split('\n').filter((line) => line.includes('"ADDED"')).length >= 60, true)
  })
  process.off('warning', warned)
  assert.equal(warnings, [])
})

test('an unreachable server breaks the connection without a status', async () => {
  await whileServing(async (served, apiServer, agent) => {
    apiServer.faults.set([{ does: 'unreachable' }])
    const failed = await ask(served, agent, maps, { token: 'secret' }).then(() => false, () => true)
    assert.ok(failed)
  })
})

test('a body beyond the limit is refused with 413', async () => {
  await whileServing(async (served, _apiServer, agent) => {
    const answer = await ask(served, agent, maps, { token: 'secret', method: 'POST', body: JSON.stringify(map('a', { a: 'x'.repeat(3_200_000) })) })
    assert.is(answer.status, 413)
  })
})

test.run()
