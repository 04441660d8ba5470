// Another remediator in the same cluster, which knows nothing of ours and asks nobody: as the medik8s family does it (a fence agent
// run by an operator, a watchdog that is assumed to have fired, a Machine that is deleted), each on a node that is not well.
import type { Taint } from '../../core/model.ts'
import { addTaint, deletePods, dropTaint, frees, isIll, outOfServiceKey } from './troubles-hands.ts'
import { aNode, insist, when, type Ground, type TroubleKind } from './trouble.ts'

type World = Ground['on']['world']

const mark: Taint = { key: 'remediation.medik8s.io/fence-agents-remediation', effect: 'NoSchedule' }
const sweep: Taint = { key: outOfServiceKey, value: 'nodeshutdown', effect: 'NoExecute' }
/** From its first deed to the next: an agent's run, a sweep of the controllers. */
const [runTakes, sweepTakes] = [4_000, 25_000]
/** Conditions of a node are looked at now and then. */
const looksEvery = 1_000

/** It begins as soon as the node is not well: its kubelet is silent to the API server, or to nobody but its own monitoring. */
function remedy(act: (world: World, node: string) => () => void): TroubleKind {
  return {
    class: 'remediator', waits: true,
    draw: (chance, scene) => ({ on: aNode(chance, scene) }),
    begin(ground, trouble) {
      const { world } = ground.on
      const node = ground.node(trouble)
      let end: (() => void) | undefined
      let over = false
      const callOff = when(world, () => isIll(world, node), () => {
        ground.strikes(trouble)
        world.truth.note('another remediator acts', { node, does: trouble.does })
        addTaint(world, node, mark)
        end = act(world, node)
      }, looksEvery)
      return () => {
        if (over) return
        over = true
        callOff()
        end?.()
        dropTaint(world, node, mark)
      }
    },
  }
}

/** Off by a way of its own, out-of-service while it is off, on again: the right order, so nobody's excuse. */
function fencesIt(world: World, node: string): () => void {
  const machine = world.nodes.get(node)?.machine
  machine?.powerOff()
  const steps = [
    world.clock.after(runTakes, () => {
      if (machine?.state() !== 'off') return
      frees(world, node)
      addTaint(world, node, sweep)
    }),
    world.clock.after(runTakes + sweepTakes, () => dropTaint(world, node, sweep)),
    world.clock.after(runTakes + sweepTakes + runTakes, () => world.powerOn(node)),
  ]
  return () => {
    for (const cancel of steps) cancel()
    dropTaint(world, node, sweep)
    world.powerOn(node)
  }
}

/** Exit 0 of a reboot, and then its pods are deleted by force: the machine has power again, and has not booted yet. */
function rebootsIt(world: World, node: string): () => void {
  const machine = world.nodes.get(node)?.machine
  machine?.powerOff()
  const cancel = world.clock.after(runTakes, () => {
    world.powerOn(node)
    deletePods(world, node)
  })
  return () => {
    cancel()
    world.powerOn(node)
  }
}

/** A watchdog must have fired by now: nobody has asked it. */
function assumesIt(world: World, node: string): () => void {
  const cancel = world.clock.after(runTakes, () => {
    frees(world, node)
    addTaint(world, node, sweep)
  })
  return () => {
    cancel()
    dropTaint(world, node, sweep)
  }
}

/** The machine is given back to its provider, and the Node goes with it. Another one of the name comes at the end. */
function deletesIt(world: World, node: string): () => void {
  world.nodes.get(node)?.machine.powerOff()
  const cancel = world.clock.after(runTakes, () => void insist(world, async () => {
    const gone = await world.api.remove(`/api/v1/nodes/${node}`)
    return gone.ok || gone.error.kind === 'notFound'
  }))
  return () => {
    cancel()
    world.powerOn(node)
  }
}

export const remediatorTroubles: Readonly<Record<string, TroubleKind>> = {
  'another remediator fences the node': remedy(fencesIt),
  'another remediator reboots the node': remedy(rebootsIt),
  'another remediator assumes the node dead': remedy(assumesIt),
  'another remediator deletes the Node': remedy(deletesIt),
}
