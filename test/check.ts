// Types, lint, and the rules that neither knows: the wall round core/, test files that could be silently green, words that
// must not stay. Ends 1 with every fault listed.
import { spawnSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { exit } from 'node:process'

const folders = ['core', 'edge', 'coordinator', 'agent', 'fence-agents', 'cli', 'sim', 'deploy', 'test']

if (import.meta.main) {
  const faults = [
    ...tool('types', 'tsc', ['-p', '.']),
    // Without what Node gives every program: there, time, chance, environment and network are names that nothing is known of.
    ...tool('wall', 'tsc', ['-p', 'core']),
    ...tool('lint', 'oxlint', ['--deny-warnings', ...folders]), ...tidy(),
  ]
  for (const fault of faults) console.log(fault)
  console.log(faults.length === 0 ? 'check: well' : `check: ${faults.length} faults`)
  exit(faults.length === 0 ? 0 : 1)
}

function tool(name: string, program: string, input: string[]): string[] {
  const ran = spawnSync(`node_modules/.bin/${program}`, input, { encoding: 'utf8' })
  return ran.status === 0 ? [] : [`${name}: ${ran.error?.message ?? `${ran.stdout}${ran.stderr}`.trim()}`]
}

function tidy(): string[] {
  return folders.flatMap((folder) => globSync(`${folder}/**/*.ts`)).flatMap((file) => {
    const text = readFileSync(file, 'utf8')
    return [...wall(file, text), ...copies(file, text), ...words(file, text), ...names(file), ...(file.endsWith('.test.ts') ? greens(file, text) : [])]
  })
}

/** core/ decides from what it is given: it may import only core/, and of what the language itself knows it may ask for no time, no chance and nothing that is told later. */
export function wall(file: string, text: string): string[] {
  if (!file.startsWith('core/')) return []
  const imports = [...text.matchAll(/\b(?:from|import)\s*\(?\s*(['"`])([^'"`]*)\1/g)].map((match) => match[2] ?? '').filter((source) => !/^\.\/[a-z-]+\.ts$/.test(source))
  const asks = [...text.matchAll(/\b((?<!new )Date\b(?!\.parse\()|new Date\b(?!\((?!\s*\)))|Math\.random|Math\[|globalThis|async |await |Promise)/g)].map((match) => match[1])
  return [...imports.map((source) => `wall: ${file} imports ${source}`), ...asks.map((word) => `wall: ${file} uses ${word}`)]
}

/** A node that was copied so would look as if no agent had ever been heard on it. */
function copies(file: string, text: string): string[] {
  if (!/^(core|coordinator)\//.test(file) || file === 'core/model.ts') return []
  return [...text.matchAll(/\{ \.\.\.(node|row)\b(?![.[(?])/g)].map((match) => `copies: ${file} has ${match[0]}: a node is copied by seenAs`)
}

function words(file: string, text: string): string[] {
  if (file === 'test/check.ts') return []
  const unfinished = /\b(TODO|FIXME|XXX|HACK)\b|@ts-(ignore|nocheck|expect-error)/
  const untyped = /: any\b|\bas any\b|<any>/
  return text.split('\n').flatMap((line, index) => {
    const prose = /^\s*(\/\/|\/?\*)/.test(line)
    return unfinished.test(line) || (!prose && untyped.test(line)) ? [`words: ${file}:${index + 1}: ${line.trim()}`] : []
  })
}

function names(file: string): string[] {
  return /\/(utils?|helpers?|types|common|manager|service|index)\.ts$/.test(file) ? [`names: ${file} is not a noun of this project`] : []
}

/** What makes uvu silently green. */
function greens(file: string, text: string): string[] {
  const suites = [...text.matchAll(/const (\w+) = suite(?:<[^>]*>)?\(/g)].map(([, name]) => name)
  // What is registered behind its run is never run, and says nothing.
  const runs = [.../(?:\w+\.run\(\)\s*)+$/.exec(text)?.[0].matchAll(/(\w+)\.run/g) ?? []].map(([, name]) => name)
  const elsewhere = (text.match(/\b\w+\.run\(\)/g)?.filter((call) => suites.includes(call.slice(0, -6))).length ?? 0) - runs.length
  // A clock's own `after` arms a timer and hooks nothing.
  const traps = text.match(/(?<!lock)\.(only|skip|before|after)\b(\.each)?\(/g) ?? []
  return [
    ...(suites.length === 0 || suites.toSorted().join() !== runs.toSorted().join() || elsewhere > 0 ? [`greens: ${file} is to end with one run of each of its suites: ${suites.join(', ') || 'none'}`] : []),
    ...traps.map((trap) => `greens: ${file} uses ${trap}`),
  ]
}
