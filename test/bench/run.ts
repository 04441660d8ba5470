// `npm run bench -- NAME [--json] …`: runs one benchmark, a file of this folder that exports `bench`. Without a name it lists them.
import { globSync } from 'node:fs'
import { basename } from 'node:path'
import { argv, exit } from 'node:process'

export interface Benchmark {
  /** What it takes besides --json, by name. */
  readonly flags?: Readonly<Record<string, Flag>>
  /** With `json`, its last line is one JSON value. */
  bench(json: boolean, options: ReadonlyMap<string, string>): Promise<void>
}

export interface Flag {
  /** As a person is told it: `N`. */
  readonly wants: string
  readonly fits: RegExp
}

const [name, ...words] = argv.slice(2).filter((word) => word !== '--json')
const listed = `npm run bench -- NAME [--json], where NAME is one of ${names().join(', ')}`
if (name === undefined) {
  console.log(listed)
  exit(0)
}
if (!names().includes(name)) refuse(listed)
const { bench, flags = {} } = await import(new URL(`${name}.ts`, import.meta.url).href) as Partial<Benchmark> // whatever the file exports
if (bench === undefined) refuse(`${name} is no benchmark`)
const options = optionsOf(words, flags)
if (typeof options === 'string') refuse(`${options}; ${name} takes ${['--json', ...Object.entries(flags).map(([flag, { wants }]) => `--${flag} ${wants}`)].join(', ')}`)
await bench(argv.includes('--json'), options)

function refuse(reason: string): never {
  console.error(reason)
  exit(2)
}

/** Or what was not understood. */
function optionsOf(given: readonly string[], known: Readonly<Record<string, Flag>>): ReadonlyMap<string, string> | string {
  const found = new Map<string, string>()
  const rest = [...given]
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    const flag = word.startsWith('--') ? known[word.slice(2)] : undefined
    if (flag === undefined) return `${word} is not known`
    const value = rest.shift()
    if (value === undefined || !flag.fits.test(value)) return `${word} wants ${flag.wants}, not ${value ?? 'nothing'}`
    found.set(word.slice(2), value)
  }
  return found
}

function names(): string[] {
  return globSync('*.ts', { cwd: import.meta.dirname }).map((one) => basename(one, '.ts')).filter((one) => one !== 'run').toSorted()
}
