// What a person who started the world reads in the terminal: where to look, and what happens.
import { line } from './truth.ts'
import type { Embedded } from './embedded.ts'
import { allWell, incidentsOf } from './start-script.ts'

const lookEvery = 200

export function greet({ page, kubeconfig }: Embedded): void {
  console.log(`
  page      ${page}
  kubectl   export KUBECONFIG=${kubeconfig}
            kubectl get nodes
            kubectl get pods -A -o wide
            kubectl get nodefence -w

  Ctrl-C ends all of it and leaves nothing behind.
`)
}

/** Not before each fence path was read *on*: a device first read *off* in a boot proves nothing, and whoever cuts the power in
 *  the first second would look at an incident that is held, and has to be. */
export async function invite(embedded: Embedded): Promise<void> {
  await allWell(embedded)
  console.log(`  All is well, every fence path is verified. Cut the power of ${embedded.home} on the page and watch.\n`)
}

/** Each new moment of each incident, as it comes to stand on its NodeFence. */
export function narrate({ world }: Embedded): void {
  const told = new Map<string, number>()
  const look = (): void => {
    for (const { name, nodeName, status: { timeline } } of incidentsOf(world)) {
      const began = Date.parse(timeline[0]?.at ?? '')
      for (const { at, what, detail } of timeline.slice(told.get(name) ?? 0)) {
        console.log(`  ${nodeName}  ${seconds(Date.parse(at) - began)}  ${what.padEnd(16)}  ${detail}`)
      }
      told.set(name, timeline.length)
    }
    world.clock.after(lookEvery, look)
  }
  look()
}

export function narrateAll({ world }: Embedded): void {
  world.truth.listen((entry) => console.log(line(entry)))
}

export function seconds(span: number): string {
  return `${(span / 1_000).toFixed(1).padStart(5)} s`
}
