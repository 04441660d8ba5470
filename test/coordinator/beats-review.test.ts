import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { audience, judge } from '../../coordinator/beats-review.ts'

const test = suite('beats-review')

const accounts = { namespace: 'holdfast', replicaNamespace: 'holdfast-system' }
const account = (name: string, namespace = 'holdfast') => `system:serviceaccount:${namespace}:${name}`
const bound = {
  'authentication.kubernetes.io/node-name': ['node-1'], 'authentication.kubernetes.io/node-uid': ['n'], 'authentication.kubernetes.io/pod-name': ['agent-x'],
  'authentication.kubernetes.io/pod-uid': ['p'],
}

function answer(change: { readonly status?: object; readonly user?: object } = {}): unknown {
  return { status: { authenticated: true, audiences: [audience], user: { username: account('holdfast-agent'), extra: bound, ...change.user }, ...change.status } }
}

test('an agent\'s token names its node and its pod', () => {
  assert.equal(judge(answer(), accounts), { caller: { is: 'agent', node: 'node-1', nodeUid: 'n', pod: 'agent-x', podUid: 'p' } })
})

test('a replica\'s token makes a replica', () => {
  assert.equal(judge(answer({ user: { username: account('holdfast-coordinator', 'holdfast-system') } }), accounts), { caller: { is: 'replica', podUid: 'p' } })
})

test('what is not said outright is refused', () => {
  const refused: readonly [unknown, RegExp][] = [
    [answer({ status: { authenticated: false, error: 'expired' } }), /not valid: expired/],
    [answer({ status: { authenticated: 'true' } }), /not valid/],
    [answer({ status: { audiences: [] } }), /not for holdfast-coordinator/],
    [answer({ status: { audiences: undefined } }), /not for holdfast-coordinator/],
    [answer({ status: { audiences: ['https://kubernetes.default.svc'] } }), /not for holdfast-coordinator/],
    [answer({ user: { username: account('default') } }), /not an agent's account/],
    [answer({ user: { username: account('holdfast-agent', 'holdfast-system') } }), /not an agent's account/],
    [answer({ user: { username: account('holdfast-coordinator') } }), /not an agent's account/],
    [answer({ user: { username: undefined } }), /not an agent's account/],
    [answer({ user: { extra: {} } }), /not bound to a pod on a node/],
    [answer({ user: { extra: { ...bound, 'authentication.kubernetes.io/node-name': [] } } }), /not bound/],
    [answer({ user: { extra: { ...bound, 'authentication.kubernetes.io/pod-uid': 'p' } } }), /not bound/],
    [{}, /not valid/], [undefined, /not valid/], ['yes', /not valid/], [{ status: null }, /not valid/],
  ]
  for (const [said, why] of refused) {
    const review = judge(said, accounts)
    assert.match('refused' in review ? review.refused : JSON.stringify(review), why)
  }
})

test.run()
