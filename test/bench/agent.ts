// What the agent costs its node. The gate under load, by replayed frames of NRI, anywhere; and on a real node with 110 pods and some 500 mounts, after
// ten minutes, its memory, its share of a processor and its start, where real nodes can be (test/nodes/README.md).
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { fileURLToPath } from 'node:url'
import { bundle } from '../../deploy/build.ts'
import { buildNodes, hindrance } from '../nodes/enter.ts'
import { weighBootGate } from './agent/boot-gate.ts'
import { loadGate } from './agent/gate.ts'
import type { NodeFigures } from './agent/node.ts'
import type { Flag } from './run.ts'

export const flags: Readonly<Record<string, Flag>> = {
  minutes: { wants: 'N, on the real node; 0 leaves it out', fits: /^\d{1,3}$/ },
  sandboxes: { wants: 'N a minute, through the gate', fits: /^[1-9]\d{0,5}$/ },
  seconds: { wants: 'N, of load on the gate', fits: /^[1-9]\d{0,3}$/ },
}

/** The limit that its own manifest sets (deployment/node-problem-detector.yaml of kubernetes/node-problem-detector), not measured here. */
const beside = 'node-problem-detector: 80 Mi, the memory limit of its published manifest'

export async function bench(json: boolean, options: ReadonlyMap<string, string>): Promise<void> {
  const tell = (text: string): void => (json ? console.error(text) : console.log(text))
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-bench-'))
  try {
    const built = await bundle({ from: 'agent/main.ts', to: 'agent.mjs' }, folder)
    if ('missing' in built) throw new Error(built.missing)
    const gate = await loadGate(join(folder, 'agent.mjs'), Number(options.get('sandboxes') ?? 2_000), Number(options.get('seconds') ?? 60))
    tell(`gate: ${gate.sandboxesPerMinute} sandboxes a minute, ${gate.calls} calls: p50 ${gate.p50Ms} ms, p99 ${gate.p99Ms} ms, worst ${gate.worstMs} ms; ${gate.refused} refused, ${gate.unanswered} not answered in time`)
    const bootBuilt = await bundle({ from: 'agent/boot-gate.ts', to: 'boot-gate.mjs' }, folder)
    if ('missing' in bootBuilt) throw new Error(bootBuilt.missing)
    const bootGate = await weighBootGate(join(folder, 'boot-gate.mjs'), folder)
    tell(`the gate of the boot, apart: RSS ${bootGate.rssMiB} MiB, RssAnon ${bootGate.rssAnonMiB} MiB`)
    const node = onNode(options.get('minutes') ?? '10')
    if ('skipped' in node) tell(`the real node was left out: ${node.skipped}`)
    else {
      tell(`node: ${node.pods} pods, ${node.mounts} mounts, after ${node.minutes} min: RSS ${node.rssMiB} MiB, RssAnon ${node.rssAnonMiB} MiB, ${node.cpuPercent} % of a core, started in ${node.startMs} ms, mount table read in ${node.mountsReadMs} ms; ${node.apiRequests} API requests, ${node.apiWrites} of them to write`)
      tell(`beside it: a bare Node ${node.bare.rssMiB} and ${node.bare.rssAnonMiB} MiB, ${node.bare.cpuPercent} %; the vitals' child ${node.vitals.peakRssMiB} MiB at most, ${node.vitals.cpuPercent} %, ${node.vitals.looks} looks; ${beside}`)
    }
    if (json) console.log(JSON.stringify({ gateP99Ms: gate.p99Ms, gate, bootGate, ...node, beside }))
    if (gate.unanswered > 0) fail(`${gate.unanswered} of the gate's calls were not answered in time`)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** When all figures are told. */
function fail(because: string): void {
  console.error(because)
  process.exitCode = 1
}

function onNode(minutes: string): NodeFigures | { readonly skipped: string } {
  if (minutes === '0') return { skipped: '--minutes 0' }
  const cannot = hindrance()
  if (cannot !== undefined) return { skipped: `it needs Linux, root and cgroup v1: ${cannot}` }
  const lacking = buildNodes(false)
  if (lacking !== undefined && 'skipped' in lacking) return lacking
  if (lacking !== undefined) throw new Error(lacking.failed)
  // Its room is process 1 of namespaces of its own, whose output is read here.
  const entered = spawnSync(execPath, [fileURLToPath(new URL('agent/enter.ts', import.meta.url)), minutes], { stdio: ['ignore', 'pipe', 'inherit'], encoding: 'utf8' })
  const last = entered.stdout.trim().split('\n').at(-1) ?? ''
  if (entered.status !== 0) throw new Error(`the real node ended with ${entered.status}: ${last}`)
  return JSON.parse(last) as NodeFigures // written by agent/node.ts alone
}
