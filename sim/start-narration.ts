// What a person who started the world reads in the terminal: where to look, and what happens.
import { line } from './truth.ts'
import type { Embedded } from './embedded.ts'
import { incidentsOf } from './start-script.ts'

const lookEvery = 200

export function greet({ page, kubeconfig, home }: Embedded): void {
  console.log(`
  page      ${page}
  kubectl   export KUBECONFIG=${kubeconfig}
            kubectl get nodes
            kubectl get pods -A -o wide
            kubectl get nodefence -w

  Cut the power of ${home} on the page and watch. Ctrl-C ends all of it and leaves nothing behind.
`)
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
