// Containers on a machine, as the machine's own runtime knows them.
import type { Machine } from './machine.ts'
import type { Pod, Stage } from './stage.ts'

/** Of the pods' containers, those that are not over: one that stands still is not. */
export async function running(machine: Machine, pods: readonly Pod[]): Promise<number> {
  const ids = pods.map(idOf)
  const tasks = await machine.run(['ctr', 'tasks', 'list'])
  return tasks.split('\n').filter((line) => ids.some((id) => id !== '' && line.startsWith(id)) && !line.includes('STOPPED')).length
}

/** As the kernel kills what has taken too much memory. */
export async function killContainer(stage: Stage, pod: Pod): Promise<void> {
  const { metadata: { name }, spec: { nodeName = '' } } = pod
  const id = idOf(pod)
  const machine = stage.cluster.machine(nodeName)
  const tasks = await machine.run(['ctr', 'tasks', 'list'])
  const pid = id === '' ? undefined : tasks.split('\n').find((line) => line.startsWith(id))?.split(/\s+/)[1]
  if (pid === undefined) throw new Error(`${name} has no container that runs`)
  await machine.run(['sh', '-c', `kill -KILL ${pid}`])
}

const idOf = ({ status }: Pod): string => status.containerStatuses?.[0]?.containerID.replace('containerd://', '') ?? ''
