// Where the claims of a pod lead: to which volume, of which driver, and whether others may write to it too. A claim that is bound
// stays so as long as a pod uses it, so each is asked about once.
import type { Ms, PodVolume } from '../core/model.ts'
import type { Api, KubeObject } from './api.ts'
import { claimsOf, paths } from './kubernetes.ts'

export interface PodVolumes {
  of(pod: KubeObject): Promise<readonly PodVolume[]>
}

const readDeadline: Ms = 2_000
/** Of every pod of every node that was ever cleared here; then all are asked about anew. */
const mostKept = 20_000

interface ClaimObject extends KubeObject {
  spec?: { volumeName?: string; accessModes?: string[] }
}

interface VolumeObject extends KubeObject {
  spec?: {
    accessModes?: string[]
    csi?: { driver?: string }
    local?: object
    nodeAffinity?: { required?: { nodeSelectorTerms?: { matchExpressions?: { key: string }[]; matchFields?: { key: string }[] }[] } }
  }
}

export function podVolumes(api: Pick<Api, 'get'>): PodVolumes {
  const known = new Map<string, PodVolume>()
  return {
    of: (pod) => Promise.all(claimsOf(pod).map(async (claim) => {
      const key = `${pod.metadata.uid} ${claim}`
      const volume = known.get(key) ?? await read(claim)
      if (known.size >= mostKept) known.clear()
      if (volume.is === 'bound') known.set(key, volume)
      return volume
    })),
  }

  async function read(claim: string): Promise<PodVolume> {
    const [namespace = '', name = ''] = claim.split('/')
    const asked = await api.get<ClaimObject>(paths.claim(namespace, name), { deadline: readDeadline })
    if (!asked.ok) return nowhere(claim, asked.error.kind === 'notFound' ? 'unbound' : 'unread')
    const volume = asked.value.spec?.volumeName ?? ''
    if (volume === '') return nowhere(claim, 'unbound')
    const found = await api.get<VolumeObject>(paths.volume(volume), { deadline: readDeadline })
    // A volume that is gone is attached nowhere that anybody could find.
    if (!found.ok) return nowhere(claim, found.error.kind === 'notFound' ? 'unbound' : 'unread')
    const { metadata: { annotations }, spec } = found.value
    const modes = [...(asked.value.spec?.accessModes ?? []), ...(spec?.accessModes ?? [])]
    return {
      claim, is: 'bound', volume, driver: spec?.csi?.driver ?? annotations?.['pv.kubernetes.io/migrated-to'] ?? '',
      provisioner: annotations?.['pv.kubernetes.io/provisioned-by'] ?? '', shared: modes.includes('ReadWriteMany'), local: isLocal(found.value),
    }
  }
}

function nowhere(claim: string, is: 'unbound' | 'unread'): PodVolume {
  return { claim, is, volume: '', driver: '', provisioner: '', shared: false, local: false }
}

/** A volume of a zone can go to another node of it; one that names a host cannot. Drivers of local disks have labels of their own. */
function isLocal({ spec }: VolumeObject): boolean {
  if (spec?.local !== undefined) return true
  const terms = spec?.nodeAffinity?.required?.nodeSelectorTerms ?? []
  return terms.length > 0 && terms.every(({ matchExpressions = [], matchFields = [] }) =>
    matchFields.some(({ key }) => key === 'metadata.name') || matchExpressions.some(({ key }) => key === 'kubernetes.io/hostname' || /\/node(name)?$/.test(key)))
}
