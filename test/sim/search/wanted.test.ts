import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { read } from '../../../sim/search/wanted.ts'

const test = suite('search: what is wanted')

test('what is not known, has no number or is left without its value is told as that', () => {
  for (const [words, told] of [
    [['--nope'], /Unknown option '--nope'/], [['--help'], /Unknown option/], [['more'], /Unexpected argument 'more'/], [['--seeds', 'x'], /--seeds wants a number above 0, not "x"/],
    [['--seeds'], /'--seeds <value>' argument missing/], [['--seeds='], /--seeds wants a number above 0, not ""/], [['--seeds', '-3'], /ambiguous/],
    [['--seeds', '0'], /--seeds wants/], [['--seed', '1.5'], /--seed wants/], [['--jobs', '--marks'], /ambiguous/], [['--without', 'nobody'], /there is no defence "nobody"/],
    [['--only', 'all'], /--only is of --defences/],
  ] as const) {
    const wanted = read(words)
    assert.type(wanted, 'string', words.join(' '))
    assert.match(String(wanted), told)
    assert.not.match(String(wanted), '\n')
  }
})

test('numbers are numbers, minutes alone come in parts, and a few defences are cut at once', () => {
  assert.equal(read(['--seeds', '7', '--from', '3', '--minutes', '.5']), { seeds: 7, from: 3, minutes: 0.5, marks: false, defences: false })
  assert.equal(read(['--without', 'two-readings+fresh-off-before-each-batch']), { without: 'two-readings+fresh-off-before-each-batch', marks: false, defences: false })
})

test.run()
