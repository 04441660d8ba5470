// What holds of every test of this folder is watched by the rack that it stands in; here it is shown to see.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { inRack, secret } from './rack.ts'

const test = suite('rack')

/** What a program does that is found out; and what the rack says then, or nothing. */
const programs: readonly (readonly [string, string, readonly string[], RegExp | undefined])[] = [
  ['hands its secret on as an argument', 'nut', ['sh', '-c', "'sleep 0.5; true'", 'sh', secret], /no secret is shown to anybody/],
  ['says its secret', 'nut', ['sed', '-n', '/password/p'], /no secret is shown to anybody/],
  ['keeps it', 'nut', ['sh', '-c', "'sleep 0.5; true'"], undefined],
  ['hands it on, and is none of ours', 'fence_apc_snmp', ['sh', '-c', "'sleep 0.5; true'", 'sh', secret], undefined],
]
for (const [does, name, command, found] of programs) {
  test(`a program that ${does}: ${found === undefined ? 'nobody objects' : 'the test fails'}`, async () => {
    const said = await inRack(async (rack) => {
      rack.wrap(name, command)
      await rack.ask(name, 'status', { ip: '127.0.0.1', password: secret })
    }).then(() => undefined, (error: unknown) => String(error))
    if (found === undefined) assert.is(said, undefined)
    else assert.match(said ?? '', found)
  })
}

test.run()
