// Each of these kinds does in the world what its name says, as the world's own record or its API server's store shows it, and
// nothing of it is left afterwards.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { kinds } from '../../../sim/search/schedule.ts'
import { run } from '../../../sim/search/run.ts'
import type { Schedule } from '../../../sim/search/schedule.ts'

const test = suite('search: troubles')

const scene: Schedule['scene'] = { nodes: 5, zones: 3, replicas: 2, profile: 'fast', feed: 'own' }

interface Claim {
  readonly does: string
  readonly how?: string
  readonly on?: string
  /** In the transcript before everything is undone. */
  readonly seen: RegExp
  /** Without a death before it. */
  readonly alone?: boolean
}

const claims: readonly Claim[] = [
  { does: 'a replica dies at a write', how: '3 answered 0 4', on: 'leader', seen: /replica dies at an await .*at=write .*when=answered/ },
  { does: 'a replica dies at an order', how: '1 sent 40 0', on: 'leader', seen: /replica dies at an await .*at=order/ },
  { does: 'a replica dies at any await', how: '100 before 0 3', on: 'leader', seen: /replica dies at an await .*at=turn/ },
  { does: 'the machine reboots in its incident', how: '300', seen: /machine lost its power .*node=VICTIM/ },
  { does: 'power is lost and comes back once found off', how: '200', alone: true, seen: /proof=found-off[^]*machine powered on .*node=VICTIM/ },
  { does: 'the machine migrates', how: 'in two seconds', alone: true, seen: /machine migrates .*node=VICTIM .*still=2000[^]*machine thawed/ },
  { does: 'the machine is slow', how: 'badly', alone: true, seen: /machine slow .*node=VICTIM .*by=4000/ },
  { does: 'the clock of a node is set', how: 'an hour back', alone: true, seen: /clock set .*node=VICTIM .*ahead=-3600000/ },
  { does: 'the runtime fails', how: 'hangs', alone: true, seen: /runtime failed .*node=VICTIM .*how=hangs/ },
  { does: 'the attach/detach controller is stuck', seen: /attach\/detach controller stuck/ },
  { does: 'another remediator fences the node', seen: /another remediator acts .*node=VICTIM[^]*machine lost its power/ },
  { does: 'another remediator reboots the node', seen: /another remediator acts .*node=VICTIM[^]*machine powered on[^]*another frees .*machine=booting/ },
  { does: 'another remediator assumes the node dead', seen: /another remediator acts .*node=VICTIM[^]*another frees/ },
  { does: 'a person deletes the pods of a node that is ill', seen: /another frees .*node=VICTIM/ },
  { does: 'another remediator deletes the Node', seen: /another remediator acts .*node=VICTIM/ },
]

test('each leaves its mark, and ends with nothing broken', async () => {
  for (const { does, how, on = 'victim', seen, alone = false } of claims) {
    const own = { does, at: 1_500, span: 40_000, on, ...(how === undefined ? {} : { how }) }
    const troubles = alone ? [own] : [{ does: 'the kernel freezes for good', at: 1_000, span: 1_000, on: 'victim' }, own]
    const { struck, violations, transcript } = await run({ seed: 7, scene, reliefAt: 60_000, shortest: 60_000, troubles })
    assert.ok(struck.includes(does), does)
    const lines = transcript()
    const victim = /container runs {2}node=(\S+) {2}pod=work\/db-0/.exec(lines)?.[1] ?? ''
    const text = lines.slice(0, lines.indexOf('  relief'))
    assert.match(text, new RegExp(seen.source.replaceAll('VICTIM', victim)), does)
    assert.equal(violations, [], does)
  }
})

test('every way of every kind is written down in one word or a few, and drawn from the scene alone', () => {
  for (const [does, kind] of Object.entries(kinds)) {
    const hows = [0, 0.3, 0.6, 0.99].map((share) => kind.draw({ next: () => share, below: (bound: number) => Math.floor(share * bound), between: () => 0, yes: () => false, pick: <T>(choices: readonly T[]) => choices[Math.floor(share * choices.length)] as T, bytes: () => new Uint8Array(), fork: () => { throw new Error('a fork') } }, scene).how)
    for (const how of hows) assert.ok(how === undefined || (how.length > 0 && how.length < 40), `${does}: ${how}`)
  }
})

test.run()
