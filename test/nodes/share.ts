// What of this folder is run: what was asked for by name, all of it, or the share of a commit, which is a fixed part and one of
// the longer files in turns.
import { globSync } from 'node:fs'

export interface Asked {
  readonly files: readonly string[]
  /** Not run this time. */
  readonly left: readonly string[]
  readonly kubernetes?: string
  readonly chaos: ChaosAsked
}

export interface ChaosAsked {
  readonly minutes: number
  readonly seed: string
}

export const chaosVariable = 'HOLDFAST_NODES_CHAOS'

const folder = 'test/nodes'
const chaos = `${folder}/chaos.test.ts`
const always = [`${folder}/judge.test.ts`, `${folder}/share.test.ts`, `${folder}/power.test.ts`, chaos]
const usage = 'npm run test:nodes -- [--kubernetes 1.36.4] [--chaos 60m [--seed S]] [FILE…]'
/** Of random trouble, beside the stories. */
const chaosMinutes = { share: 2, all: 10 }

/** Of a whole run, the longest first: a room that begins one of ten minutes last is waited for by the other. A file that is not here yet is begun before all of them. */
const longestFirst = ['chaos', 'give-up', 'trouble', 'coordinators', 'remedy', 'gate-shut', 'patience', 'gate', 'network', 'policies', 'rollout', 'fence-agents', 'refusal', 'power',
  'goodbye', 'clean-up', 'gate-older', 'boot-gate', 'machines', 'judge', 'share'].map((name) => `${folder}/${name}.test.ts`)

/** `commit`: as git tells it, in hexadecimal. A sentence, if the words make no sense. */
export function readWords(words: readonly string[], commit: string, all: boolean): Asked | string {
  const rest = [...words]
  const taken = new Map<string, string>()
  for (const flag of ['--kubernetes', '--chaos', '--seed']) {
    const at = rest.indexOf(flag)
    if (at !== -1) taken.set(flag, rest.splice(at, 2)[1] ?? '')
  }
  const minutes = /^(\d+)m$/.exec(taken.get('--chaos') ?? `${all ? chaosMinutes.all : chaosMinutes.share}m`)?.[1]
  const named = rest.flatMap((pattern) => globSync(pattern))
  const kubernetes = taken.get('--kubernetes')
  if (minutes === undefined || taken.get('--seed') === '' || kubernetes === '' || rest.some((pattern) => globSync(pattern).length === 0)) return usage
  const { files, left } = named.length > 0 ? { files: named, left: [] } : taken.has('--chaos') ? { files: [chaos], left: [] } : all ? { files: every().toSorted((one, other) => longestFirst.indexOf(one) - longestFirst.indexOf(other)), left: [] } : shareOf(commit)
  return { files, left, ...(kubernetes === undefined ? {} : { kubernetes }), chaos: { minutes: Number(minutes), seed: taken.get('--seed') ?? commit } }
}

function every(): readonly string[] {
  return globSync(`${folder}/*.test.ts`).toSorted()
}

function shareOf(commit: string): Pick<Asked, 'files' | 'left'> {
  const longer = every().filter((file) => !always.includes(file))
  const turn = longer[Number.parseInt(commit.slice(0, 6), 16) % longer.length]
  return { files: [...always, ...longer.filter((file) => file === turn)], left: longer.filter((file) => file !== turn) }
}
