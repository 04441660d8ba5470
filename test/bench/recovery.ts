// How long until the volumes of a dead node are free, on a real control plane with Kubernetes' default timers and the product as
// real processes. Three spans of one run, so that the machine's mood divides out: what the control plane itself needs (taint
// and deletions by hand, at once), a power loss, a kernel freeze. Each begins with the fault and ends when the last
// VolumeAttachment of the node is gone; each cut comes at a random phase of the beat.
import type { Ms } from '../../core/model.ts'
import type { Flag } from './run.ts'
import { startLab } from '../control-plane/lab.ts'
import { startReplicas } from '../control-plane/lab-play.ts'
import { faults, floor, quantile, recovery, type Fault, type Run } from '../control-plane/lab-recovery.ts'

interface Figures {
  readonly fault: Fault
  readonly runs: number
  readonly p50: Ms
  readonly p99: Ms
  readonly max: Ms
  readonly all: readonly Ms[]
  readonly steps: Readonly<Record<string, Ms>>
}

const usualRuns = 10
const settings = { nodes: 4, zones: 2, bootTime: [1_000, 2_000], deviceStatus: 200, deviceOff: 2_000, detach: 500 } as const

export const flags: Readonly<Record<string, Flag>> = {
  runs: { wants: 'N', fits: /^[1-9]\d*$/ },
  only: { wants: `"${faults.join('"|"')}"`, fits: new RegExp(`^(${faults.join('|')})$`) },
  folder: { wants: 'PATH', fits: /^[^-]/ },
  log: { wants: 'LEVEL', fits: /^[a-z]+$/ },
}

export async function bench(json: boolean, options: ReadonlyMap<string, string>): Promise<void> {
  const runs = Number(options.get('runs') ?? usualRuns)
  const wanted = faults.filter((fault) => (options.get('only') ?? fault) === fault)
  const folder = options.get('folder')
  const lab = await startLab({ ...settings, logLevel: options.get('log') ?? 'info', ...(folder === undefined ? {} : { folder }) })
  const all: Run[] = []
  const told = (run: Run) => {
    all.push(run)
    if (!json) console.log(`${run.fault}: released ${seconds(run.released)}; ${Object.entries(run.steps).map(([what, at]) => `${what} ${seconds(at)}`).join(', ')}`)
  }
  try {
    await startReplicas(lab)
    for (const fault of wanted) {
      for (let run = 0; run < runs; run += 1) told(await (fault === 'floor' ? floor(lab) : recovery(lab, fault)))
    }
  } finally {
    await lab.stop()
  }
  const figures = wanted.map((fault) => figuresOf(fault, all.filter((run) => run.fault === fault)))
  for (const one of figures) console.log(`${one.fault}: p50 ${seconds(one.p50)}, p99 ${seconds(one.p99)}, max ${seconds(one.max)} of ${one.runs} runs`)
  if (json) console.log(JSON.stringify({ benchmark: 'recovery', kubernetes: process.env['HOLDFAST_KUBERNETES'] ?? '1.36.4', ...settings, figures }))
}

function figuresOf(fault: Fault, runs: readonly Run[]): Figures {
  const all = runs.map((run) => Math.round(run.released)).toSorted((one, other) => one - other)
  const names = [...new Set(runs.flatMap((run) => Object.keys(run.steps)))].filter((name) => !name.startsWith('held'))
  return {
    fault, runs: runs.length, p50: quantile(all, 0.5), p99: quantile(all, 0.99), max: all.at(-1) ?? 0, all,
    steps: Object.fromEntries(names.map((name) => [name, quantile(runs.flatMap((run) => run.steps[name] ?? []).toSorted((one, other) => one - other), 0.5)])),
  }
}

function seconds(span: Ms): string {
  return `${(span / 1_000).toFixed(2)} s`
}
