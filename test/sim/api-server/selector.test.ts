import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { isRefusal } from '../../../sim/api-server/refusal.ts'
import { matchesFields, matchesLabels, parseFieldSelector, parseLabelSelector } from '../../../sim/api-server/selector.ts'

const test = suite('selector')

const labels = { app: 'db', tier: '', 'example.com/zone': 'a', size: '5' }
const selects = (text: string) => {
  const selector = parseLabelSelector(text)
  return isRefusal(selector) ? 'refused' : matchesLabels(selector, labels)
}

for (const [text, gives] of [
  ['', true], ['app=db', true], ['app==db', true], ['app=other', false], ['app!=db', false], ['none!=db', true], ['tier=', true], ['none=', false],
  ['app', true], ['none', false], ['!app', false], ['!none', true], ['app in (web,db)', true], ['app in (web)', false], ['app notin (web)', true], ['none notin (web)', true],
  ['app=db,tier=', true], ['app=db,size>4', true], ['size<5', false], ['example.com/zone=a', true], ['app in (', 'refused'], ['app=a b', 'refused'], ['=x', 'refused'], ['app in web', 'refused'],
] as const) {
  test(`labels: ${JSON.stringify(text)} is ${gives}`, () => assert.is(selects(text), gives))
}

const known = (field: string) => ['spec.nodeName', 'status.phase'].includes(field)
const picks = (text: string) => {
  const selector = parseFieldSelector(text, known)
  return isRefusal(selector) ? 'refused' : matchesFields(selector, { 'spec.nodeName': 'n1', 'status.phase': 'a,b' })
}

for (const [text, gives] of [
  ['', true], ['spec.nodeName=n1', true], ['spec.nodeName==n1', true], ['spec.nodeName!=n1', false], ['spec.nodeName=', false], ['status.phase=a\\,b', true],
  ['spec.nodeName=n1,status.phase!=c', true], ['spec.colour=red', 'refused'], ['spec.nodeName', 'refused'],
] as const) {
  test(`fields: ${JSON.stringify(text)} is ${gives}`, () => assert.is(picks(text), gives))
}

test.run()
