// `npm run test:all`: every tier there is, one after the other, however long. What they said is added to docs/runs.md: the date,
// the commit, the counts.
import { spawn, spawnSync } from 'node:child_process'
import { appendFileSync, existsSync, writeFileSync } from 'node:fs'
import { exit } from 'node:process'

interface Tier {
  readonly name: string
  readonly command: readonly string[]
  readonly variables?: Readonly<Record<string, string>>
}

const commit = spawnSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).stdout.trim()

const tiers: readonly Tier[] = [
  { name: 'check', command: ['npm', 'run', '--silent', 'check'] },
  { name: 'test', command: ['npm', 'test', '--silent'] },
  // Another stretch for each commit, apart from those of `.ci/run`; longer searches stand in the record by themselves.
  { name: 'search', command: ['npm', 'run', '--silent', 'sim', '--', '--seeds', '1000', '--from', String(200_000_000 + Number.parseInt(commit.slice(0, 6), 16))] },
  { name: 'cluster', command: ['npm', 'run', '--silent', 'test:cluster'], variables: { HOLDFAST_ALL: '1' } },
  { name: 'nodes', command: ['npm', 'run', '--silent', 'test:nodes'], variables: { HOLDFAST_ALL: '1' } },
  { name: 'devices', command: ['npm', 'run', '--silent', 'test:devices'], variables: { HOLDFAST_ALL: '1' } },
]

const record = 'docs/runs.md'
const dirty = spawnSync('git', ['status', '--porcelain'], { encoding: 'utf8' }).stdout.trim() === '' ? '' : ' with changes'
let failed = false
const told: string[] = []
for (const tier of tiers) {
  const ended = await run(tier)
  failed ||= !ended.well
  told.push(`${tier.name}: ${ended.line}`)
  console.log(`== ${tier.name}: ${ended.line}`)
}
if (!existsSync(record)) writeFileSync(record, '# Runs\n\n## Every tier, by `npm run test:all`\n\n| date | commit | counts |\n|---|---|---|\n')
appendFileSync(record, `| ${new Date().toISOString().slice(0, 10)} | ${commit}${dirty} | ${told.join(' · ')} |\n`)
exit(failed ? 1 : 0)

function run({ name, command, variables }: Tier): Promise<{ well: boolean; line: string }> {
  return new Promise((resolve) => {
    const [program = '', ...words] = command
    const child = spawn(program, words, { stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, ...variables } })
    let tail = ''
    child.stdout.on('data', (piece: Buffer) => {
      process.stdout.write(piece)
      tail = (tail + piece.toString()).slice(-4_000)
    })
    child.on('close', (code) => {
      const counts = [...tail.matchAll(/^\d+ passed, \d+ failed(?:, \d+ skipped)?$/gm)].at(-1)?.[0]
      const line = counts ?? (name === 'check' && code === 0 ? '1 passed, 0 failed' : `ended with ${code}`)
      resolve({ well: code === 0, line })
    })
  })
}
