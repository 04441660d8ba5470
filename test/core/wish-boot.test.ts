// A person's fence beside an open incident is of one boot of one machine.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Incident } from '../../core/incident.ts'
import { wishBeside } from '../../core/wish.ts'
import { opened } from './states.ts'
import { wants } from './wishes.ts'
import { beat, boot, incident, now, reading, three } from './world.ts'

const test = suite('wish of a boot')
const wish = (changes: Partial<Incident> = {}): Incident => incident({}, { name: 'a-person', uid: 'uid-person', cause: 'by-hand', ...changes })

test('a wish of another boot is none on this one', () => {
  const open = incident({}, { boot })
  assert.ok(wishBeside([open, wish({ boot: 'boot-0/1' })], open) === undefined)
  const heard = { ...opened.node, beat: beat(), readings: [reading('on', now - 1_000)] }
  assert.not.ok(wants(three(heard, [incident(), wish({ boot: 'boot-0/1' })])).includes('fence bmc-off'))
})

test('a wish of another Node of the name is none on this one', () => {
  const open = incident({}, { boot })
  assert.ok(wishBeside([open, wish({ nodeUid: 'uid-before' })], open) === undefined)
})

test('a wish that names no boot is of the boot in which it was first seen, though it waits beside an open incident', () => {
  const own = wish({ incomplete: true, boot: '', nodeUid: '', machine: '' })
  assert.ok(wants(three(opened.node, [incident(), own])).includes('complete'))
})

test.run()
