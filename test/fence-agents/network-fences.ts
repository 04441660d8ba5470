// An API server with a controller of csi-addons behind it, whose storage refuses whom it was told to refuse: what is refused there
// is the truth, whatever stands in the objects.
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Ms } from '../../core/model.ts'
import { inCluster, type Cluster, type ClusterObject } from './cluster.ts'

const group = '/apis/csiaddons.openshift.io/v1alpha1'
const [fences, classes, nodes] = [`${group}/networkfences`, `${group}/networkfenceclasses`, '/api/v1/nodes']
const finalizer = 'csiaddons.openshift.io/network-fence'

export interface StorageWorld {
  readonly cluster: Cluster
  readonly at: Readonly<Record<string, string>>
  /** The same, and what agent-test must know of it. */
  readonly params: Readonly<Record<string, string>>
  /** Whom the storage refuses. */
  readonly refused: Set<string>
  fences(): readonly ClusterObject[]
}

/** `away`: the controller does not run. `fails`: its driver refuses so many orders. */
export interface Driver { lag: Ms; away: boolean; fails: number }

const named = (kind: string, name: string): ClusterObject => ({ kind, metadata: { name } })

export async function inStorage(work: (world: StorageWorld) => Promise<void>, driver: Driver = { lag: 0, away: false, fails: 0 }): Promise<void> {
  const refused = new Set<string>()
  let folder = ''
  let over = false
  const carryOut = (path: string, { objects, touch }: Pick<Cluster, 'objects' | 'touch'>) => {
    const object = objects.get(path)
    if (object === undefined || over) return
    if (driver.away) return void setTimeout(() => carryOut(path, { objects, touch }), 50)
    if (object.metadata.deletionTimestamp !== undefined) {
      // As the real one: only its finalizer goes, and the storage goes on refusing.
      objects.delete(path)
      return
    }
    object.metadata.finalizers = [finalizer]
    if (driver.fails > 0) {
      driver.fails -= 1
      object.status = { result: 'Failed', message: 'rpc error: code = Unavailable desc = no monitor answers' }
      touch(object)
      setTimeout(() => carryOut(path, { objects, touch }), 100)
      return
    }
    const fenced = object.spec?.['fenceState'] === 'Fenced'
    for (const cidr of (object.spec?.['cidrs'] ?? []) as string[]) { // as the program wrote them
      if (fenced) refused.add(cidr)
      else refused.delete(cidr)
      writeFileSync(join(folder, 'truth'), refused.size > 0 ? 'off' : 'on')
    }
    object.status = { result: 'Succeeded', message: fenced ? 'fencing operation successful' : 'unfencing operation successful' }
    touch(object)
  }
  await inCluster({
    serves: [fences, classes, nodes], gone: () => existsSync(join(folder, 'gone')),
    objects: { [`${classes}/rbd`]: named('NetworkFenceClass', 'rbd'), [`${classes}/cephfs`]: named('NetworkFenceClass', 'cephfs'), [`${nodes}/n1`]: named('Node', 'n1'), [`${nodes}/n2`]: named('Node', 'n2') },
    written: (path, _object, cluster) => void setTimeout(() => carryOut(path, cluster), driver.lag),
  }, async (cluster) => {
    folder = cluster.place.folder
    writeFileSync(join(folder, 'truth'), 'on')
    const all = () => [...cluster.objects].filter(([path]) => path.startsWith(`${fences}/`)).map(([, object]) => object)
    const at = { ...cluster.login, plug: 'n1', cidrs: '10.0.0.7 fd00::7/128', class: 'rbd', stonith_status_sleep: '0.1' }
    const params = { ...at, other: 'n2', unknown: 'n9', 'wrong.token_file': join(folder, 'wrong-token'), truth: `cat ${folder}/truth`, gone: `touch ${folder}/gone`, back: `rm ${folder}/gone` }
    await work({ cluster, refused, fences: all, at, params }).finally(() => { over = true })
  })
}
