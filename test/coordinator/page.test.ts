import { readdirSync, readFileSync } from 'node:fs'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { serveHealth } from '../../coordinator/health.ts'
import { createPage, type Page } from '../../coordinator/page.ts'
import type { PageSource } from '../../coordinator/page-state.ts'
import { machineClock } from '../../edge/clock.ts'
import { silentLog } from '../../edge/log.ts'
import { incident, now, policy, three } from '../core/world.ts'

const test = suite('page')

const nasty = '</script><img src=x onerror=alert(1)>'

async function served(use: (address: string, page: Page, change: (detail: string) => void) => Promise<void>): Promise<void> {
  let observed = three({}, [incident({ phase: 'Running', timeline: [{ at: '2026-01-01T00:00:00Z', what: 'opened', detail: nasty }] })])
  const source: PageSource = { get seen() { return observed }, leads: () => undefined, policies: () => [policy], holds: () => [], ready: () => true }
  // Its own now stands still: what is shown changes only where a test changes it.
  const page = createPage({ source, clock: { ...machineClock, now: () => now } })
  const health = await serveHealth({ address: '127.0.0.1:0', live: {}, ready: {}, metrics: () => '', log: silentLog })
  health.route('/', page.handle)
  try {
    await use(`http://${health.address}`, page, (detail) => {
      observed = three({}, [incident({ phase: 'Running', timeline: [{ at: '2026-01-01T00:00:00Z', what: 'opened', detail }] })])
    })
  } finally {
    page.close()
    await health.close()
  }
}

/** The texts of the next events of a stream. */
async function* events(response: Response): AsyncGenerator<{ state: { incidents: { timeline: { detail: string }[] }[] } }> {
  let text = ''
  for await (const piece of response.body ?? []) {
    text += Buffer.from(piece).toString()
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      const data = /^data: (.*)$/m.exec(text.slice(0, end))?.[1]
      text = text.slice(end + 2)
      if (data !== undefined) yield JSON.parse(data)
    }
  }
}

test('the page and its files are served, and nothing beside them', async () => {
  await served(async (address) => {
    for (const path of ['/', '/page.css', '/page.js', '/draw.js', '/first.js', '/icon.svg']) {
      const answer = await fetch(address + path)
      assert.is(answer.status, 200, path)
      assert.match(answer.headers.get('content-security-policy') ?? '', /default-src 'none'; script-src 'self'/)
      assert.is(answer.headers.get('x-content-type-options'), 'nosniff')
      await answer.text()
    }
    for (const path of ['/page.ts', '/../page.ts', '/%2e%2e/page.ts', '/constructor', '/page.html/..%2f', '/api/', '/world/node-1/cut-power']) {
      assert.is((await fetch(address + path)).status, 404, path)
    }
  })
})

test('it only reads', async () => {
  await served(async (address) => {
    for (const method of ['POST', 'PUT', 'DELETE', 'PATCH']) assert.is((await fetch(`${address}/api/state`, { method })).status, 405, method)
  })
})

test('whatever stands in the cluster stays text: it is data in the script, and never becomes markup', async () => {
  await served(async (address) => {
    const state = await (await fetch(`${address}/api/state`)).json() as { incidents: { timeline: { detail: string }[] }[] }
    assert.is(state.incidents[0]?.timeline[0]?.detail, nasty)
    const html = await (await fetch(address)).text()
    assert.not.match(html, /onerror/)
    assert.not.match(html, /<script(?![^>]*src=)/)
    for (const file of readdirSync('coordinator/page').filter((name) => name.endsWith('.js'))) {
      assert.not.match(readFileSync(`coordinator/page/${file}`, 'utf8'), /innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function/, file)
    }
  })
})

test('the first state comes with the script', async () => {
  await served(async (address) => {
    const script = await (await fetch(`${address}/first.js`)).text()
    const { first } = await import(`data:text/javascript,${encodeURIComponent(script)}`) as { first: { state: { replica: string } } }
    assert.is(first.state.replica, 'replica-0')
  })
})

test('who listens hears the state at once, and again when it changed, not otherwise', async () => {
  await served(async (address, page, change) => {
    const stop = new AbortController()
    const stream = events(await fetch(`${address}/api/events`, { signal: stop.signal }))
    const next = async () => (await stream.next()).value?.state.incidents[0]?.timeline[0]?.detail
    assert.is(await next(), nasty)
    await machineClock.wait(1_200)
    change('another')
    assert.is(await next(), 'another')
    assert.is(page.listeners(), 1)
    stop.abort()
    await stream.next().catch(() => undefined) // it was aborted here
    for (let tries = 0; page.listeners() > 0 && tries < 200; tries += 1) await machineClock.wait(20)
    assert.is(page.listeners(), 0)
  })
})

test('more listeners than are allowed are told to come again', async () => {
  await served(async (address, page) => {
    const stop = new AbortController()
    const answers = await Promise.all(Array.from({ length: 40 }, () => fetch(`${address}/api/events`, { signal: stop.signal })))
    assert.equal([page.listeners(), answers.filter(({ status }) => status === 200).length, answers.filter(({ status }) => status === 503).length], [32, 32, 8])
    stop.abort()
  })
})

test('closing it ends the streams', async () => {
  await served(async (address, page) => {
    const stream = events(await fetch(`${address}/api/events`))
    await stream.next()
    page.close()
    assert.ok((await stream.next()).done)
  })
})

test.run()
