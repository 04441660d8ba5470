// Each kind of trouble there is, beside a death: it must take effect, or the search would be silent about it, and break no promise.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { kinds, type Schedule } from '../../sim/search/schedule.ts'
import { run } from '../../sim/search/run.ts'
import type { Trouble } from '../../sim/search/trouble.ts'

const test = suite('search: kinds of trouble')

const usual: Schedule['scene'] = { nodes: 5, zones: 3, replicas: 2, profile: 'fast', feed: 'own' }
const racked: Schedule['scene'] = { ...usual, power: 'two feeds on two strips' }
const dumping: Schedule['scene'] = { ...usual, dumps: 'accepted' }
const ailing: Schedule['scene'] = { ...usual, remedy: 'fence' }
/** Each trouble alone is over in a minute. */
const brief = { reliefAt: 60_000, shortest: 60_000 }
const trouble = (does: string, wanted: Partial<Trouble> = {}): Trouble => ({ does, at: 1_000, span: 20_000, on: 'victim', ...wanted })

/** Kinds that strike in one run, each a node of its own. */
const together = 4
/** They need taints of ours, which the victim alone bears, for a few seconds, or a node that is ill. */
const ofTheVictim: readonly string[] = ['our taints are removed', 'a person deletes the pods of a node that is ill']

test('every kind of trouble takes effect beside a death, and a few of them at once break no promise', async () => {
  const names = Object.keys(kinds)
  const others = names.filter((does) => !ofTheVictim.includes(does) && !waits(does) && fits(does, usual))
  const runs = Math.ceil(others.length / together)
  // Neighbours in the table are of one class and would strike the same thing, so each run takes kinds that stand far apart.
  const groups = Array.from({ length: runs }, (_, first) => others.filter((_does, index) => index % runs === first))
  groups.push(...names.filter((does) => !others.includes(does)).map((does) => [does]))
  for (const group of groups) {
    const scene = [usual, racked, dumping].find((one) => group.every((does) => fits(does, one))) ?? ailing
    const { struck, violations, excused } = await run({ ...brief, seed: 7, scene, troubles: [trouble('the kernel freezes for good', { at: 500 }), ...group.map((does, index) => strike(does, index, scene))] })
    assert.equal(violations, [], group.join(', '))
    const missed = group.filter((does) => !struck.includes(does))
    // One kind may stand in another's way, and what excuses one must not cover for the others: then each is asked alone.
    if (group.length > 1 && (missed.length > 0 || excused.length > 0)) groups.push(...group.map((does) => [does]))
    else assert.equal(missed, [], 'took no effect')
  }
})

/** Its moment is of the victim's incident, or of the leader that sees to it: alone, and there before it. */
const waits = (does: string): boolean => kinds[does]?.waits === true
const fits = (does: string, scene: Schedule['scene']): boolean => kinds[does]?.fits?.(scene) !== false

/** What people take away must be there: an incident is under way by then. */
function strike(does: string, index: number, scene: Schedule['scene']): Trouble {
  const how = kinds[does]?.draw({ pick: <T>(choices: readonly T[]) => choices[0] as T, below: () => 0, yes: () => false } as never, scene).how // the first choice of each
  const where = waits(does) ? { at: 1_500, on: kinds[does]?.class === 'replica' ? 'leader' : 'victim' } : ofTheVictim.includes(does) ? { at: 7_000 } : { at: 14_000 + index * 500, on: kinds[does]?.class === 'replica' ? 'leader' : `node-${index + 2}` }
  return trouble(does, { ...where, ...(how === undefined ? {} : { how }) })
}

test.run()
