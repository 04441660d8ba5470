// Metrics in Prometheus' text form. By hand, because a registry is a map and a loop, and a scrape of many series costs a
// third of what the usual library takes. Labels come from closed sets of ours; the limit stands for the day one does not.
export type Labels<L extends string> = Readonly<Record<L, string>>

export interface Counter<L extends string> { add(labels: Labels<L>, by?: number): void }
export interface Gauge<L extends string> {
  set(labels: Labels<L>, value: number): void
  /** Forgets all series, before those that still hold are set anew. */
  clear(): void
}
export interface Histogram<L extends string> { observe(labels: Labels<L>, value: number): void }

export interface Description {
  readonly name: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  readonly labels: readonly string[]
}

export interface Metrics {
  counter<L extends string>(name: string, help: string, labels?: readonly L[]): Counter<L>
  gauge<L extends string>(name: string, help: string, labels?: readonly L[]): Gauge<L>
  /** Asked when it is read: for what is known elsewhere. */
  gaugeOf<L extends string>(name: string, help: string, labels: readonly L[], read: () => Iterable<readonly [Labels<L>, number]>): void
  counterOf<L extends string>(name: string, help: string, labels: readonly L[], read: () => Iterable<readonly [Labels<L>, number]>): void
  /** Upper bounds rise; the last bucket, without bound, is added here. */
  histogram<L extends string>(name: string, help: string, buckets: readonly number[], labels?: readonly L[]): Histogram<L>
  render(): string
  /** For the generated page of the docs. */
  described(): readonly Description[]
}

interface Family { readonly description: Description; lines(): Iterable<string> }

const seriesLimit = 300

export function metrics(): Metrics {
  const families = new Map<string, Family>()

  function register(description: Description, lines: () => Iterable<string>): void {
    const { name, labels } = description
    if (!/^[a-z][a-z0-9_]*$/.test(name) || !labels.every((label) => /^[a-z][a-z0-9_]*$/.test(label) && label !== 'le')) throw new Error(`${name} is no name for a metric`)
    if (families.has(name)) throw new Error(`the metric ${name} is there already`)
    families.set(name, { description, lines })
  }

  /** Asked when it is read: nothing is kept here. */
  const askedFor = (type: 'counter' | 'gauge') => <L extends string>(name: string, help: string, labels: readonly L[], read: () => Iterable<readonly [Labels<L>, number]>): void => {
    register({ name, type, help, labels }, function* lines() {
      let left = seriesLimit
      for (const [at, value] of read()) if (left-- > 0) yield sample(name, labelText(labels, at), value)
    })
  }

  return {
    counter<L extends string>(name: string, help: string, labels: readonly L[] = []): Counter<L> {
      const series = seriesOf<L, { value: number }>(labels, () => ({ value: 0 }))
      register({ name, type: 'counter', help, labels }, () => series.lines((text, { value }) => [sample(name, text, value)]))
      return {
        add(at, by = 1) {
          if (by >= 0) series.get(at).value += by // a counter that falls would look like a restart
        },
      }
    },
    gauge<L extends string>(name: string, help: string, labels: readonly L[] = []): Gauge<L> {
      const series = seriesOf<L, { value: number }>(labels, () => ({ value: 0 }))
      register({ name, type: 'gauge', help, labels }, () => series.lines((text, { value }) => [sample(name, text, value)]))
      return { set: (at, value) => { series.get(at).value = value }, clear: () => series.clear() }
    },
    gaugeOf: askedFor('gauge'),
    counterOf: askedFor('counter'),
    histogram<L extends string>(name: string, help: string, buckets: readonly number[], labels: readonly L[] = []): Histogram<L> {
      const bounds = [...buckets, Infinity]
      const series = seriesOf<L, { counts: number[]; sum: number }>(labels, () => ({ counts: bounds.map(() => 0), sum: 0 }))
      register({ name, type: 'histogram', help, labels }, () => series.lines((text, { counts, sum }) => {
        let below = 0
        const lines = counts.map((count, index) => sample(`${name}_bucket`, join(text, `le="${written(bounds[index] ?? Infinity)}"`), below += count))
        return [...lines, sample(`${name}_sum`, text, sum), sample(`${name}_count`, text, below)]
      }))
      return {
        observe(at, value) {
          const held = series.get(at)
          const index = bounds.findIndex((bound) => value <= bound)
          if (index === -1) return // not a number: nothing was measured
          held.counts[index] = (held.counts[index] ?? 0) + 1
          held.sum += value
        },
      }
    },
    render() {
      const lines: string[] = []
      for (const { description: { name, help, type }, lines: samples } of families.values()) {
        lines.push(`# HELP ${name} ${help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}`, `# TYPE ${name} ${type}`, ...samples())
      }
      return `${lines.join('\n')}\n`
    },
    described: () => [...families.values()].map(({ description }) => description),
  }
}

/** Values by label text. A metric without labels has its one series from the start, so that a zero is seen as a zero. */
function seriesOf<L extends string, V>(labels: readonly L[], fresh: () => V) {
  const values = new Map<string, V>()
  const at = (text: string): V => {
    const found = values.get(text)
    if (found) return found
    const value = fresh()
    values.set(text, value)
    return value
  }
  if (labels.length === 0) at('')
  // Above the limit everything new is counted together: the sum stays right, and memory stays bounded.
  const other = labels.map((label) => `${label}="other"`).join(',')
  return {
    get(given: Labels<L>): V {
      const text = labelText(labels, given)
      return at(values.size >= seriesLimit && !values.has(text) ? other : text)
    },
    clear: () => values.clear(),
    * lines(show: (text: string, value: V) => readonly string[]): Iterable<string> {
      for (const [text, value] of values) yield* show(text, value)
    },
  }
}

function labelText<L extends string>(labels: readonly L[], given: Labels<L>): string {
  return labels.map((label) => `${label}="${escaped(given[label])}"`).join(',')
}

function escaped(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}

function join(...texts: string[]): string {
  return texts.filter((text) => text !== '').join(',')
}

function sample(name: string, text: string, value: number): string {
  return text === '' ? `${name} ${written(value)}` : `${name}{${text}} ${written(value)}`
}

function written(value: number): string {
  if (value === Infinity) return '+Inf'
  return value === -Infinity ? '-Inf' : String(value)
}
