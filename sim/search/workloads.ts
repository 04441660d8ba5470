// What else runs in the cluster of a searched schedule: pods with volumes of another driver, alone and beside one of the usual, and
// a disruption budget that never lets the StatefulSet's one pod go.
import type { KubeObject } from '../../coordinator/api.ts'
import type { Chance } from '../chance.ts'
import { volume, workImage } from '../world/objects.ts'
import { usualWorld } from '../world/settings.ts'
import type { Scene } from './scene.ts'

/** It refuses to detach what is in use, and the policy trusts it to. */
export const driverApart = 'csi.apart.dev'
/** How long a person's fence begins with evictions. */
export const evictions = ['20s', '90s'] as const

const { driver, namespace } = usualWorld
/** Each app's claims, and the driver of each. */
const apps = { far: [['far', driverApart]], both: [['both-near', driver], ['both-far', driverApart]] } as const

export function drawWorkload(chance: Chance, scene: Scene): Scene {
  const apart = chance.yes(scene.power === 'fabric, then bmc' ? 0.6 : 0.1)
  const evicts = chance.yes(0.4) ? chance.pick(evictions) : undefined
  return { ...scene, ...(apart ? { apart } : {}), ...(evicts === undefined ? {} : { evicts }) }
}

export function workloads({ apart, evicts }: Scene): readonly KubeObject[] {
  const named = Object.keys(apps) as readonly (keyof typeof apps)[] // its own keys
  return [
    ...(apart === undefined ? [] : named.flatMap((name) => [...apps[name].flatMap(([claim, of]) => volume(claim, namespace, of)), app(name)])),
    ...(evicts === undefined ? [] : [budget]),
  ]
}

function app(name: keyof typeof apps): KubeObject {
  const labels = { app: name }
  const volumes = apps[name].map(([claimName]) => ({ name: claimName, persistentVolumeClaim: { claimName } }))
  return { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name, namespace, labels }, spec: {
    replicas: 1, selector: { matchLabels: labels }, strategy: { type: 'Recreate' },
    template: { metadata: { labels }, spec: { terminationGracePeriodSeconds: 30, automountServiceAccountToken: false, containers: [{ name: 'main', image: workImage }], volumes } },
  } } as KubeObject // a Deployment is more than the fields that KubeObject names
}

const budget = {
  apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata: { name: 'db', namespace },
  spec: { minAvailable: 1, selector: { matchLabels: { app: 'db' } } },
} as KubeObject // a PodDisruptionBudget is more than the fields that KubeObject names
