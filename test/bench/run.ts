// `npm run bench -- NAME [--json] [--runs N]`: runs one benchmark, a file of this folder that exports `bench`. Without a name it
// lists them.
import { existsSync, globSync } from 'node:fs'
import { basename } from 'node:path'
import { argv, exit } from 'node:process'

export interface Benchmark {
  /** With `json`, its last line is one JSON value. */
  bench(json: boolean, options: ReadonlyMap<string, string>): Promise<void>
}

const words = argv.slice(2)
const [name] = words.filter((word, index) => !word.startsWith('--') && !takesValue(words[index - 1]))
const file = name === undefined ? undefined : new URL(`${name}.ts`, import.meta.url)
if (name === undefined || !/^[a-z-]+$/.test(name) || name === 'run' || file === undefined || !existsSync(file)) {
  console.log(`npm run bench -- NAME [--json], where NAME is one of ${names().join(', ')}`)
  exit(name === undefined ? 0 : 1)
}
const { bench } = await import(file.href) as Partial<Benchmark> // whatever the file exports
if (bench === undefined) {
  console.log(`${name} is no benchmark`)
  exit(1)
}
await bench(words.includes('--json'), options())

function takesValue(word: string | undefined): boolean {
  return word !== undefined && word.startsWith('--') && word !== '--json'
}

function options(): ReadonlyMap<string, string> {
  return new Map(words.flatMap((word, index) => (takesValue(word) ? [[word.slice(2), words[index + 1] ?? ''] as const] : [])))
}

function names(): string[] {
  return globSync('*.ts', { cwd: import.meta.dirname }).map((one) => basename(one, '.ts')).filter((one) => one !== 'run').toSorted()
}
