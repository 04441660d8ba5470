// What a long run draws its trouble from: what befalls machines, cables, services, management controllers, the product's own
// containers and the API server. Each begins at once and is ended by whoever drew it.
import { names, usualValues } from '../../deploy/values.ts'
import type { Ms } from '../../core/model.ts'
import type { Chance } from '../../sim/chance.ts'
import type { RedfishFault } from '../../sim/redfish.ts'
import { killContainer } from './containers.ts'
import type { Machine } from './machine.ts'
import { everybody, partition, theApi, type Way } from './partition.ts'
import type { Pod, Stage } from './stage.ts'

export interface Kind {
  readonly what: string
  /** How often it is drawn beside the others. */
  readonly weight: number
  /** How long it lasts. */
  readonly span: readonly [Ms, Ms]
  /** Whether a machine may be cut off for it: its own, or any. */
  readonly silences: 'its machine' | 'any machine' | 'nobody'
  /** It ends the boot of whom it silences. */
  readonly deadly?: true
  /** Answers what ends it. Throws where there is nothing to strike, such as a service of a machine that is off. */
  begin(stage: Stage, machine: Machine, chance: Chance): Promise<() => Promise<void>>
}

/** What is done is done: whoever gives back the power is the product. */
const nothing = (): Promise<void> => Promise.resolve()

const power: readonly Kind[] = [
  {
    what: 'loses its power', weight: 5, span: [0, 0], silences: 'its machine', deadly: true,
    async begin(_, machine) {
      mustRun(machine)
      await machine.powerOff()
      return nothing
    },
  },
  {
    what: 'reboots', weight: 2, span: [0, 6_000], silences: 'its machine', deadly: true,
    async begin(_, machine) {
      mustRun(machine)
      await machine.powerOff()
      return () => machine.powerOn()
    },
  },
  {
    what: 'stands still', weight: 4, span: [500, 40_000], silences: 'its machine',
    async begin(_, machine) {
      mustRun(machine)
      await machine.freeze()
      return () => machine.thaw()
    },
  },
  {
    what: 'loses its power with all others', weight: 0.5, span: [2_000, 15_000], silences: 'any machine', deadly: true,
    async begin({ cluster }) {
      const machines = [...cluster.machines.values()]
      await Promise.all(machines.map((machine) => machine.powerOff()))
      return async () => void await Promise.all(machines.map((machine) => machine.powerOn()))
    },
  },
]

const network: readonly Kind[] = [
  {
    what: 'has its cable pulled', weight: 3, span: [500, 40_000], silences: 'its machine',
    async begin(_, machine) {
      await machine.cutCable()
      return () => machine.mendCable()
    },
  },
  halfCut('from the machine', 1.5),
  halfCut('towards the machine', 1.5),
  {
    what: 'does not reach the API server', weight: 2, span: [2_000, 70_000], silences: 'nobody',
    begin: (_, machine) => partition(machine, theApi, 'both ways'),
  },
  {
    what: 'does not reach the coordinators', weight: 1.5, span: [2_000, 40_000], silences: 'nobody',
    async begin(stage, machine) {
      const addresses = (await stage.pods(usualValues.namespace)).flatMap(({ status: { podIP } }) => (podIP === undefined ? [] : [`${podIP}/32`]))
      return partition(machine, addresses, 'both ways')
    },
  },
]

function halfCut(way: Way, weight: number): Kind {
  return { what: `is cut off one way, ${way}`, weight, span: [500, 40_000], silences: 'its machine', begin: (_, machine) => partition(machine, everybody, way) }
}

const services: readonly Kind[] = (['kubelet', 'containerd'] as const).flatMap((service): readonly Kind[] => [
  {
    what: `has its ${service} killed`, weight: 1, span: [0, 0], silences: 'nobody',
    async begin(_, machine) {
      mustRun(machine)
      await machine.killService(service, 'starts again')
      return nothing
    },
  },
  {
    what: `is without ${service}`, weight: 1, span: [2_000, 30_000], silences: 'nobody',
    async begin(_, machine) {
      mustRun(machine)
      const boot = machine.bootId()
      await machine.killService(service, 'stays away')
      return async () => {
        if (machine.power() === 'on' && machine.bootId() === boot) await machine.startService(service)
      }
    },
  },
])

const product: readonly Kind[] = [
  {
    what: 'has its agent killed', weight: 1.5, span: [0, 0], silences: 'nobody',
    async begin(stage, machine) {
      mustRun(machine)
      await killOne(stage, (await stage.pods(usualValues.agentNamespace)).find(({ spec }) => spec.nodeName === machine.name))
      return nothing
    },
  },
  {
    what: 'sees the leader killed', weight: 2, span: [0, 0], silences: 'nobody',
    async begin(stage) {
      await killOne(stage, await leaderOf(stage))
      return nothing
    },
  },
]

const faults: readonly RedfishFault[] = ['mute', 'refuse', 'error', 'ignore', 'wrong-password', { slow: 3_000 }]

const around: readonly Kind[] = [
  {
    what: 'has a management controller that fails', weight: 2, span: [5_000, 60_000], silences: 'nobody',
    begin({ management }, { name }, chance) {
      management.of.get(name)?.fault(chance.pick(faults))
      return Promise.resolve(() => {
        management.of.get(name)?.fault(undefined)
        return Promise.resolve()
      })
    },
  },
  {
    what: 'sees the API server crash', weight: 0.7, span: [1_000, 15_000], silences: 'nobody',
    async begin({ cluster: { plane } }) {
      await plane.stopApiServer()
      return () => plane.startApiServer()
    },
  },
]

export const kinds: readonly Kind[] = [...power, ...network, ...services, ...product, ...around]

export function drawKind(chance: Chance): Kind {
  let left = chance.between(0, kinds.reduce((sum, { weight }) => sum + weight, 0))
  const drawn = kinds.find(({ weight }) => (left -= weight) < 0)
  return drawn ?? chance.pick(kinds) // the sum is what was drawn below
}

export async function leaderOf(stage: Stage): Promise<Pod | undefined> {
  const { namespace } = usualValues
  const lease = await stage.cluster.api.get<{ spec?: { holderIdentity?: string } }>(`/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/${names.coordinator}`)
  const holder = lease.ok ? lease.value.spec?.holderIdentity ?? '' : ''
  return (await stage.pods(namespace)).find(({ metadata: { name } }) => holder.startsWith(`${name}-`))
}

function mustRun({ name, power: is }: Machine): void {
  if (is() !== 'on') throw new Error(`${name} is off`)
}

async function killOne(stage: Stage, pod: Pod | undefined): Promise<void> {
  if (pod === undefined) throw new Error('there is none')
  await killContainer(stage, pod)
}
