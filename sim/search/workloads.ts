// What else runs in the cluster of a searched schedule: pods with volumes of another driver, alone and beside one of the usual; StatefulSets whose
// volumes several nodes may have at once, so that nothing but the product keeps a second writer from them; and a disruption budget that never
// lets the first StatefulSet's one pod go.
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

/** A share of the clusters, whatever else they are. */
export function drawShared(chance: Chance, scene: Scene): Scene {
  return chance.yes(scene.apart === undefined ? 0.1 : 0.5) ? { ...scene, shared: true } : scene
}

export function workloads({ apart, evicts, shared }: Pick<Scene, 'apart' | 'evicts' | 'shared'>): readonly KubeObject[] {
  const named = Object.keys(apps) as readonly (keyof typeof apps)[] // its own keys
  return [
    ...(apart === undefined ? [] : named.flatMap((name) => [...apps[name].flatMap(([claim, of]) => volume(claim, namespace, of)), app(name)])),
    ...(shared === undefined ? [] : sharedSet('many', driver)), ...(shared === undefined || apart === undefined ? [] : sharedSet('many-far', driverApart)),
    ...(evicts === undefined ? [] : [budget]),
  ]
}

function app(name: keyof typeof apps): KubeObject {
  const labels = { app: name }
  return { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name, namespace, labels }, spec: {
    replicas: 1, selector: { matchLabels: labels }, strategy: { type: 'Recreate' }, template: template(name, apps[name].map(([claim]) => claim)),
  } } as KubeObject // a Deployment is more than the fields that KubeObject names
}

/** Its one pod has a name of its own, so nothing of Kubernetes starts a second one beside it. */
function sharedSet(name: string, of: string): readonly KubeObject[] {
  const labels = { app: name }
  return [...volume(name, namespace, of, 'ReadWriteMany'), { apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: { name, namespace, labels }, spec: {
    replicas: 1, serviceName: name, selector: { matchLabels: labels }, template: template(name, [name]),
  } } as KubeObject] // likewise
}

function template(name: string, claims: readonly string[]): object {
  const volumes = claims.map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } }))
  return { metadata: { labels: { app: name } }, spec: { terminationGracePeriodSeconds: 30, automountServiceAccountToken: false, containers: [{ name: 'main', image: workImage }], volumes } }
}

const budget = {
  apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata: { name: 'db', namespace },
  spec: { minAvailable: 1, selector: { matchLabels: { app: 'db' } } },
} as KubeObject // a PodDisruptionBudget is more than the fields that KubeObject names
