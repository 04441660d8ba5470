import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { metrics } from '../../coordinator/metrics.ts'

const test = suite('metrics')

test('a scrape reads as Prometheus reads it', () => {
  const all = metrics()
  const calls = all.counter('holdfast_api_requests_total', 'Calls to the API server.', ['verb', 'status'])
  calls.add({ verb: 'get', status: '200' })
  calls.add({ verb: 'get', status: '200' }, 2)
  calls.add({ verb: 'patch', status: '409' })
  all.gauge('holdfast_leader', 'Whether this replica leads.').set({}, 1)
  const span = all.histogram('holdfast_clear_seconds', 'From proof to cleared.', [1, 5], ['outcome'])
  for (const seconds of [0.5, 1, 3, 60]) span.observe({ outcome: 'cleared' }, seconds)
  all.gaugeOf('holdfast_incidents', 'Open incidents.', ['phase'], () => [[{ phase: 'Running' }, 2]])
  assert.is(all.render(), `# HELP holdfast_api_requests_total Calls to the API server.
# TYPE holdfast_api_requests_total counter
holdfast_api_requests_total{verb="get",status="200"} 3
holdfast_api_requests_total{verb="patch",status="409"} 1
# HELP holdfast_leader Whether this replica leads.
# TYPE holdfast_leader gauge
holdfast_leader 1
# HELP holdfast_clear_seconds From proof to cleared.
# TYPE holdfast_clear_seconds histogram
holdfast_clear_seconds_bucket{outcome="cleared",le="1"} 2
holdfast_clear_seconds_bucket{outcome="cleared",le="5"} 3
holdfast_clear_seconds_bucket{outcome="cleared",le="+Inf"} 4
holdfast_clear_seconds_sum{outcome="cleared"} 64.5
holdfast_clear_seconds_count{outcome="cleared"} 4
# HELP holdfast_incidents Open incidents.
# TYPE holdfast_incidents gauge
holdfast_incidents{phase="Running"} 2
`)
})

test('a metric without labels shows its zero from the start', () => {
  const all = metrics()
  all.counter('holdfast_fences_total', 'Fences.')
  all.histogram('holdfast_decide_seconds', 'Decisions.', [0.1])
  assert.match(all.render(), 'holdfast_fences_total 0\n')
  assert.match(all.render(), 'holdfast_decide_seconds_bucket{le="+Inf"} 0\n')
})

test('what is counted elsewhere is asked for when it is read, as a counter', () => {
  const all = metrics()
  let lost = 2
  all.counterOf('holdfast_x_total', 'X.', [], () => [[{}, lost]])
  lost = 3
  assert.is(all.render(), '# HELP holdfast_x_total X.\n# TYPE holdfast_x_total counter\nholdfast_x_total 3\n')
})

test('label values and helps are escaped', () => {
  const all = metrics()
  all.counter('holdfast_x_total', 'One\\line\nand another.', ['why']).add({ why: 'a "quote", a \\ and a\nline' })
  assert.match(all.render(), '# HELP holdfast_x_total One\\\\line\\nand another.\n')
  assert.match(all.render(), 'holdfast_x_total{why="a \\"quote\\", a \\\\ and a\\nline"} 1\n')
})

test('labels that run away are counted together, and the sum stays right', () => {
  const all = metrics()
  const wild = all.counter('holdfast_x_total', 'X.', ['who'])
  for (let index = 0; index < 5_000; index++) wild.add({ who: `n${index}` })
  const values = [...all.render().matchAll(/^holdfast_x_total\{.*\} (\d+)$/gm)].map((match) => Number(match[1]))
  assert.ok(values.length <= 301)
  assert.is(values.reduce((sum, value) => sum + value, 0), 5_000)
  assert.match(all.render(), 'who="other"')
})

test('a counter never falls, a histogram takes no nonsense, a gauge can be cleared', () => {
  const all = metrics()
  const count = all.counter('holdfast_a_total', 'A.')
  count.add({}, 2)
  count.add({}, -1)
  const span = all.histogram('holdfast_b_seconds', 'B.', [1])
  span.observe({}, Number.NaN)
  const gauge = all.gauge('holdfast_c', 'C.', ['node'])
  gauge.set({ node: 'one' }, 1)
  gauge.clear()
  gauge.set({ node: 'two' }, -Infinity)
  assert.match(all.render(), 'holdfast_a_total 2\n')
  assert.match(all.render(), 'holdfast_b_seconds_count 0\n')
  assert.not.match(all.render(), 'one')
  assert.match(all.render(), 'holdfast_c{node="two"} -Inf\n')
})

test('a name twice, or no name, is a mistake of ours and stops the start', () => {
  const all = metrics()
  all.counter('holdfast_a_total', 'A.')
  assert.throws(() => all.gauge('holdfast_a_total', 'A.'), 'there already')
  assert.throws(() => all.gauge('Holdfast-A', 'A.'), 'no name')
  assert.throws(() => all.gauge('holdfast_d', 'D.', ['le']), 'no name')
  assert.equal(all.described().map(({ name, type }) => [name, type]), [['holdfast_a_total', 'counter']])
})

test.run()
