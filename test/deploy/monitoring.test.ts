// The example alerts and the dashboard ask only for what a replica measures, by labels and words that it has, and send people to what is there.
import { readFileSync } from 'node:fs'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { parse } from 'yaml'
import { measures } from '../../coordinator/measures.ts'
import type { Coordinator } from '../../coordinator/coordinator.ts'
import type { Description } from '../../coordinator/metrics.ts'
import { machineClock } from '../../edge/clock.ts'

const test = suite('monitoring')

interface Rule {
  readonly alert: string
  readonly expr: string
  readonly annotations: { readonly description: string }
}

interface Panel {
  readonly id: number
  readonly title: string
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly datasource: { readonly uid: string }
  readonly targets: readonly { readonly expr: string; readonly legendFormat: string }[]
}

const alerts = parse(readFileSync('deploy/examples/alerts.yaml', 'utf8')) as { spec: { groups: { rules: Rule[] }[] } } // our own file
const dashboard = JSON.parse(readFileSync('deploy/examples/dashboard.json', 'utf8')) as { panels: Panel[]; templating: { list: { name: string }[] } } // likewise
const rules = alerts.spec.groups.flatMap((group) => group.rules)
const targets = dashboard.panels.flatMap((panel) => panel.targets)
const expressions = [...rules, ...targets].map(({ expr }) => expr)

function measured(): readonly Description[] {
  const all = measures('1')
  all.watch({} as Coordinator, machineClock) // nothing is read here
  return all.metrics.described()
}

/** The metric whose series bear this name. */
const known = measured()
const described = (series: string): Description | undefined => known.find(({ name, type }) => (type === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name]).includes(series))
/** Put there by whoever scrapes. */
const scraped = ['instance']
const series = (expr: string): readonly string[] => [...expr.matchAll(/\bholdfast_[a-z_]+/g)].map(([name]) => name)
const labels = (expr: string): readonly string[] => series(expr).flatMap((name) => [...described(name)?.labels ?? [], ...(name.endsWith('_bucket') ? ['le'] : [])])

test('every series that an alert or the dashboard asks for is one that a replica has', () => {
  assert.ok(rules.length >= 10 && targets.length >= 15)
  for (const expr of expressions) {
    assert.is.not(series(expr).length, 0, expr)
    for (const name of series(expr)) assert.ok(described(name), `${name} in ${expr}`)
  }
})

test('every label that is asked for, or shown, is one of that metric', () => {
  for (const expr of expressions) {
    const asked = [...expr.matchAll(/\bby \(([^)]+)\)/g)].flatMap(([, list = '']) => list.split(', ')).concat([...expr.matchAll(/[{,]([a-z]+)[!=]~?"/g)].map(([, label = '']) => label))
    for (const label of asked) assert.ok([...labels(expr), ...scraped].includes(label), `${label} in ${expr}`)
  }
  for (const { expr, legendFormat } of targets) for (const [, label = ''] of legendFormat.matchAll(/\{\{([a-z]+)\}\}/g)) assert.ok([...labels(expr), ...scraped].includes(label), `${label} of ${expr}`)
})

test('every word that a label is asked for is one that it can have', () => {
  const holdReasons = readFileSync('coordinator/node-fence-status.ts', 'utf8')
  for (const expr of expressions) {
    const [, name = '', label = '', words = ''] = /(holdfast_[a-z_]+)\{([a-z]+)[!=]~?"([^"]+)"\}/.exec(expr) ?? []
    for (const word of words.split('|').filter((one) => one !== '')) {
      if (label === 'because') assert.match(holdReasons, new RegExp(`['\\s]${word}'?: '`), word)
      else if (label === 'phase') assert.is(word, 'Final')
      else assert.ok(described(name)?.help.includes(word), `${word} of ${name}`)
    }
  }
})

test('each alert has a heading that says what to do, and no heading is without its alert', () => {
  const headings = [...readFileSync('docs/alerts.md', 'utf8').matchAll(/^## (\w+)$/gm)].map(([, heading]) => heading)
  assert.equal(headings, rules.map(({ alert }) => alert))
  for (const { alert, annotations } of rules) assert.ok(annotations.description.includes(`docs/alerts.md#${alert.toLowerCase()}`), alert)
})

test('what is said to do sends people to headings that are there', () => {
  const checks = readFileSync('docs/checks.md', 'utf8')
  const links = [...readFileSync('docs/alerts.md', 'utf8').matchAll(/checks\.md#([a-z-]+)/g)]
  assert.ok(links.length >= 5)
  for (const [, heading = ''] of links) assert.ok(checks.includes(`## ${heading}\n`), heading)
})

test('no panel lies on another one, and each asks the source that a person chooses', () => {
  const places = dashboard.panels.flatMap(({ gridPos: { x, y, w, h } }) => Array.from({ length: w * h }, (_, index) => `${x + (index % w)} ${y + Math.floor(index / w)}`))
  assert.is(new Set(places).size, places.length)
  assert.ok(dashboard.panels.every(({ gridPos: { x, w } }) => x + w <= 24))
  assert.is(new Set(dashboard.panels.map(({ id }) => id)).size, dashboard.panels.length)
  assert.equal(dashboard.templating.list.map(({ name }) => name), ['datasource'])
  for (const { title, datasource } of dashboard.panels) assert.is(datasource.uid, '${datasource}', title)
})

test.run()
