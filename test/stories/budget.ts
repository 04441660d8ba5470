// A person has a node fenced that answers, and a disruption budget keeps a pod of it.
import * as assert from 'uvu/assert'
import { fencesPath } from '../../coordinator/node-fence.ts'
import { allEnd, incidentOf, isLive, podsOf, type Ground, type Story } from './ground.ts'

async function done(on: Ground, what: Promise<{ readonly ok: boolean }>): Promise<void> {
  assert.ok((await on.answered(what)).ok)
}

export const budgetSaysNo: Story = {
  title: 'a disruption budget says no, and nothing is ordered; lifted, the pod goes in good order, and then the node is switched off',
  async tell(on) {
    const { world: { api, settings }, victim } = on
    const budgets = `/apis/policy/v1/namespaces/${settings.namespace}/poddisruptionbudgets`
    const spec = { minAvailable: 1, selector: { matchLabels: { app: 'db' } } }
    await done(on, api.create(budgets, { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata: { name: 'db', namespace: settings.namespace }, spec }))
    await on.run(3_000)
    const [pod] = (await podsOf(on, 'db')).map(({ metadata }) => metadata.uid)
    await done(on, api.create(fencesPath, { apiVersion: 'holdfast.dev/v1alpha1', kind: 'NodeFence', metadata: { name: 'by-hand' }, spec: { nodeName: victim } }))
    await on.until('its budget holds it', async () => (await incidentOf(on, victim))?.status.holds.some(({ because }) => because === 'disruption-budget') === true, 60_000)
    await on.run(5_000)
    assert.equal([on.happened('device ordered').length, (await podsOf(on, 'db')).map(({ metadata }) => metadata.uid)], [0, [pod]])
    await done(on, api.remove(`${budgets}/db`))
    await on.until('its pod runs elsewhere', async () => (await podsOf(on, 'db')).some((one) => isLive(one) && one.spec.nodeName !== victim), 120_000)
    const [incident] = await allEnd(on, 600_000)
    const endedAt = on.happened('container ended').find(({ facts }) => facts['uid'] === pod)?.at ?? Infinity
    const [offAt = 0] = on.happened('machine lost its power').map(({ at }) => at)
    assert.ok(endedAt < offAt, 'it was over before the power went')
    assert.equal([incident?.status.outcome, incident?.status.pods.filter(({ fate }) => fate === 'freed')], ['Recovered', []], 'and nothing was deleted by force')
    assert.equal([on.findings(), await on.taints()], [[], []])
  },
}
