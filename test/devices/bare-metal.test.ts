// The bare-metal configuration of the node fencing proposal, as it is printed there, fences a real machine: cut off from its
// storage network, switched off, cleared, switched on, given back, in this order by the devices' own logs.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { KubeObject } from '../../coordinator/api.ts'
import { fabricLogin } from '../fence-agents/fabric-os.ts'
import { overhear } from '../fence-agents/overheard.ts'
import { configMap, inCluster, properties, secretOf } from './cluster.ts'
import { startFcSwitch } from './fc-switch.ts'
import { startMachine } from './machine.ts'
import { placesOf } from './overheard.ts'
import { kinds, startPowerStrip } from './power-strip.ts'
import { inRack, secret, until, type Parameters } from './rack.ts'
import { audited, cordoned, held, patience, uncordon, volumesOn } from './victim.ts'

const test = suite('bare metal')

interface Template {
  readonly agent: string
  readonly parameters: Parameters
}

/** The proposal's own text, but for the name of its ConfigMap, which must be one. */
function proposal(node: string, fc: Template, eaton: Template): KubeObject[] {
  const { password = '' } = fc.parameters
  const { community = '' } = eaton.parameters
  return [
    secretOf('fabric', { password }), secretOf('strip', { community }),
    configMap('fence-method-template-fc-switch-brocade', { 'template.properties': properties(fc.agent, { ...fc.parameters, password: 'secret:fabric/password' }) }),
    configMap('fence-method-template-eaton-pdu', { 'template.properties': properties(eaton.agent, { ...eaton.parameters, community: 'secret:strip/community' }) }),
    configMap(`fence-config-${node}`, {
      'config.properties': 'node_name=[NODE_NAME]\nisolation=fc-off\npower_management=eaton-off eaton-on\nrecovery=fc-on',
      'fence-method-fc-on': 'template=fence-method-template-fc-switch-brocade\nplug=2\naction=on',
      'fence-method-fc-off': 'template=fence-method-template-fc-switch-brocade\nplug=2\naction=off',
      'fence-method-eaton-on': 'template=fence-method-template-eaton-pdu\nplug=1\naction=on',
      'fence-method-eaton-off': 'template=fence-method-template-eaton-pdu\nplug=1\naction=off',
    }),
  ]
}

for (const whose of ['our programs', 'those of Debian'] as const) {
  test(`fc-off, eaton-off, clear, eaton-on, fc-on, by ${whose}: a kernel that hangs is switched off, and boots; no secret is shown to anybody`, () => inRack(async (rack) => {
    const node = 'node-1'
    const machine = await startMachine(rack, 'machine')
    const boot = await machine.beats()
    const { fabric, ours, theirs } = await startFcSwitch(rack)
    const strip = await startPowerStrip(rack, 'strip', { 1: machine.feed }, kinds.eaton)
    const log: string[] = []
    fabric.heard = (order) => log.push(`switch: ${order}`)
    strip.heard = (order) => log.push(`strip: ${order}`)
    const own = whose === 'our programs'
    const objects = proposal(
      node, { agent: own ? 'fc-switch' : 'fence_brocade', parameters: own ? { ...ours, timeout: '15s', late: '5s' } : theirs },
      { agent: own ? 'pdu-snmp' : 'fence_eaton_snmp', parameters: strip.v2c },
    )
    const others = ['node-2', 'node-3']
    await inCluster(rack, { nodes: [node, ...others], real: { [node]: machine }, objects: [...objects, ...cordoned(others)] }, async (cluster) => {
      await audited(cluster, [node])
      await volumesOn(cluster, node)
      assert.equal(cluster.records().get(node)?.paths.map(({ method, identity }) => [method, identity]), [['fc-off', 'unproven'], ['eaton-off', 'unproven']])
      await uncordon(cluster, others)
      const overheard = overhear()
      // The first order is refused, so that there is an error to tell as well.
      if (own) fabric.fault = 'not permitted'
      let cleared = false
      const watch = setInterval(() => {
        if (cleared || held(cluster, node).length > 0 || log.length === 0) return
        cleared = true
        log.push('clear')
      }, 10)
      machine.tell('echo c > /proc/sysrq-trigger')
      if (own) {
        await until('an order that failed', () => cluster.incidents().some(({ status }) => status.attempts.some(({ result }) => result === 'failed')), patience)
        fabric.fault = undefined
      }
      await until('the incident to be over', () => cluster.incidents().some(({ nodeName, status }) => nodeName === node && status.phase === 'Final'), patience)
        .finally(() => clearInterval(watch))
      assert.equal(log, ['switch: persistent disable 2', 'strip: off 1', 'clear', 'strip: on 1', 'switch: persistent enable 2'])
      const incident = cluster.incidents().find(({ nodeName }) => nodeName === node)
      assert.equal([incident?.status.proof?.kind, incident?.status.proof?.methods, incident?.status.outcome], ['off', ['eaton-off'], 'Recovered'])
      // Debian's own program hands its community to the tools of net-snmp as an argument. Nothing of ours does.
      const debians = /^argument list: \/usr\/bin\/snmp(get|set|walk) /
      assert.equal(placesOf([fabricLogin.password, secret], overheard, cluster).filter((place) => own || !debians.test(place)), [])
      assert.ok([...overheard.programs].some((name) => (own ? name.startsWith('pdu-snmp') : name === 'fence_eaton_snmp')), [...overheard.programs].join())
      assert.is.not(await machine.beats(), boot)
      assert.equal([cluster.world.judges.twoWriters(), cluster.world.judges.wroteAfterRelease()], [[], []])
    })
  }))
}

test('two machines whose outlets are exchanged: the audit says that nothing proves them, the wrong one goes dark, and that is no proof', () => inRack(async (rack) => {
  const machines = { 'node-1': await startMachine(rack, 'one'), 'node-2': await startMachine(rack, 'two') }
  const boots = { 'node-1': await machines['node-1'].beats(), 'node-2': await machines['node-2'].beats() }
  const strip = await startPowerStrip(rack, 'strip', { 1: machines['node-2'].feed, 2: machines['node-1'].feed })
  const log: string[] = []
  strip.heard = (order) => log.push(order)
  const objects = [
    configMap('fence-method-template-strip', { 'template.properties': `${properties('pdu-snmp', strip.v2c)}late=5s\n` }),
    ...[1, 2].map((plug) => configMap(`fence-config-node-${plug}`, {
      'config.properties': `node_name=node-${plug}\npower_management=outlet-off\n`,
      'fence-method-outlet-off': `template=fence-method-template-strip\nplug=${plug}\naction=off\n`,
    })),
  ]
  await inCluster(rack, { nodes: ['node-1', 'node-2', 'node-3', 'node-4', 'node-5'], real: machines, objects }, async (cluster) => {
    await audited(cluster, ['node-1', 'node-2'])
    for (const node of ['node-1', 'node-2']) assert.equal(cluster.records().get(node)?.paths.map(({ state, identity }) => [state, identity]), [['verified', 'unproven']])
    const pods = held(cluster, 'node-1')
    cluster.world.isolate('node-1')
    const own = () => cluster.incidents().find(({ nodeName }) => nodeName === 'node-1')
    await until('the wrong machine to be dark', () => machines['node-2'].state(60_000) === 'off', patience)
    await until('the alarm', () => own()?.status.holds.some(({ because, detail }) => because === 'identity-unproven' && detail.includes('node-2 on the same device has not answered')) === true, patience)
    await until('the wrong machine to beat again', () => machines['node-2'].boots.length === 2 && machines['node-2'].state(4_000) === 'beating', patience)
    assert.is(own()?.status.proof, undefined)
    assert.equal(held(cluster, 'node-1'), pods, 'nothing of it was freed')
    assert.equal(log, ['off 1', 'on 1'])
    await machines['node-1'].mustBeatOn(boots['node-1'])
    const told = cluster.objects<KubeObject & { type?: string; message?: string }>('events')
    assert.ok(told.some(({ type, message = '' }) => type === 'Warning' && message.includes('node-2 on the same device has not answered')), JSON.stringify(told))
  })
}))

test.run()
