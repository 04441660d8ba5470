// The product's containers on a machine, as the machine's own runtime knows them.
import type { Pod, Stage } from './stage.ts'

/** As the kernel kills what has taken too much memory. */
export async function killContainer(stage: Stage, { metadata: { name }, spec: { nodeName = '' }, status }: Pod): Promise<void> {
  const id = status.containerStatuses?.[0]?.containerID.replace('containerd://', '') ?? ''
  const machine = stage.cluster.machine(nodeName)
  const tasks = await machine.run(['ctr', 'tasks', 'list'])
  const pid = id === '' ? undefined : tasks.split('\n').find((line) => line.startsWith(id))?.split(/\s+/)[1]
  if (pid === undefined) throw new Error(`${name} has no container that runs`)
  await machine.run(['sh', '-c', `kill -KILL ${pid}`])
}
