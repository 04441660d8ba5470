// `npm run test:all`: every tier there is, however long. What they said is added to docs/runs.md: the date, the commit, the counts.
import { spawn, spawnSync } from 'node:child_process'
import { appendFileSync, existsSync, writeFileSync } from 'node:fs'
import { exit } from 'node:process'
import { createInterface } from 'node:readline'

interface Tier {
  readonly name: string
  readonly command: readonly string[]
  readonly variables?: Readonly<Record<string, string>>
}

const commit = spawnSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).stdout.trim()

const whole = { HOLDFAST_ALL: '1' }
/** Alone: what `npm test` takes is a promise, and what searches takes both cores. */
const first: readonly Tier[] = [
  { name: 'check', command: ['npm', 'run', '--silent', 'check'] },
  { name: 'test', command: ['npm', 'test', '--silent'] },
  { name: 'judges', command: ['npm', 'run', '--silent', 'test:search'] },
  // Another stretch for each commit, apart from those of `.ci/run`; longer searches stand in the record by themselves.
  { name: 'search', command: ['npm', 'run', '--silent', 'sim', '--', '--seeds', '1000', '--from', String(200_000_000 + Number.parseInt(commit.slice(0, 6), 16))] },
]
/** Beside each other, one after the other in each: a tier of real components waits for real timers most of its time. */
const lanes: readonly (readonly Tier[])[] = [
  [{ name: 'cluster', command: ['npm', 'run', '--silent', 'test:cluster'], variables: whole }],
  [
    { name: 'nodes', command: ['npm', 'run', '--silent', 'test:nodes'], variables: whole },
    { name: 'devices', command: ['npm', 'run', '--silent', 'test:devices'], variables: whole },
  ],
]

const record = 'docs/runs.md'
const dirty = spawnSync('git', ['status', '--porcelain'], { encoding: 'utf8' }).stdout.trim() === '' ? '' : ' with changes'
const told = [...await inTurn(first), ...(await Promise.all(lanes.map(inTurn))).flat()]
if (!existsSync(record)) writeFileSync(record, '# Runs\n\n## Every tier, by `npm run test:all`\n\n| date | commit | counts |\n|---|---|---|\n')
appendFileSync(record, `| ${new Date().toISOString().slice(0, 10)} | ${commit}${dirty} | ${told.map(({ name, line }) => `${name}: ${line}`).join(' · ')} |\n`)
exit(told.every(({ well }) => well) ? 0 : 1)


interface Told { readonly name: string; readonly well: boolean; readonly line: string }

async function inTurn(tiers: readonly Tier[]): Promise<readonly Told[]> {
  const ended: Told[] = []
  for (const tier of tiers) {
    const one = await run(tier)
    ended.push(one)
    console.log(`== ${one.name}: ${one.line}`)
  }
  return ended
}

function run({ name, command, variables }: Tier): Promise<Told> {
  return new Promise((resolve) => {
    const [program = '', ...words] = command
    const child = spawn(program, words, { stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, ...variables } })
    let counts: string | undefined
    createInterface({ input: child.stdout }).on('line', (line) => {
      console.log(`${name}: ${line}`)
      if (/^\d+ passed, \d+ failed(?:, \d+ skipped)?$/.test(line)) counts = line
    })
    child.on('close', (code) => {
      resolve({ name, well: code === 0, line: counts ?? (name === 'check' && code === 0 ? '1 passed, 0 failed' : `ended with ${code}`) })
    })
  })
}
