// How long until the volumes of a dead node are free, on a real control plane with Kubernetes' default timers and the product as
// real processes. Three spans of one run, so that the machine's mood divides out: what the control plane itself needs (taint
// and deletions by hand, at once), a power loss, a kernel freeze. Each begins with the fault and ends when the last
// VolumeAttachment of the node is gone; each cut comes at a random phase of the beat. What comes after the proof is ours alone: where
// that takes longer than the floor by more than is promised, the benchmark fails.
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
  /** From the proof to the end, and as a multiple of the floor where that was measured. */
  readonly sinceProof?: { readonly p50: Ms; readonly ratio?: number }
}

const usualRuns = 10
const promised = 1.5
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
  const of = (fault: Fault): readonly Run[] => all.filter((run) => run.fault === fault)
  const hand = wanted.includes('floor') ? median(of('floor').map(({ released }) => released)) : undefined
  const figures = wanted.map((fault) => figuresOf(fault, of(fault), hand))
  for (const { fault, p50, p99, max, runs: count, sinceProof } of figures) {
    console.log(`${fault}: p50 ${seconds(p50)}, p99 ${seconds(p99)}, max ${seconds(max)} of ${count} runs`)
    if (sinceProof !== undefined) console.log(`${fault}, from the proof on: p50 ${seconds(sinceProof.p50)}${toTheFloor(sinceProof.ratio)}`)
  }
  if (json) console.log(JSON.stringify({ benchmark: 'recovery', kubernetes: process.env['HOLDFAST_KUBERNETES'] ?? '1.36.4', ...settings, promised, figures }))
  if (figures.some(({ sinceProof: { ratio = 0 } = {} }) => ratio > promised)) process.exitCode = 1
}

function figuresOf(fault: Fault, runs: readonly Run[], hand: Ms | undefined): Figures {
  const all = runs.map((run) => Math.round(run.released)).toSorted((one, other) => one - other)
  const names = [...new Set(runs.flatMap((run) => Object.keys(run.steps)))].filter((name) => !name.startsWith('held'))
  return {
    fault, runs: runs.length, p50: quantile(all, 0.5), p99: quantile(all, 0.99), max: all.at(-1) ?? 0, all,
    steps: Object.fromEntries(names.map((name) => [name, median(runs.flatMap((run) => run.steps[name] ?? []))])),
    ...(fault === 'floor' ? {} : { sinceProof: sinceProofOf(runs, hand) }),
  }
}

/** A run whose proof nobody saw counts from its fault on. */
function sinceProofOf(runs: readonly Run[], hand: Ms | undefined): NonNullable<Figures['sinceProof']> {
  const p50 = Math.round(median(runs.map(({ released, steps: { proven = 0 } }) => released - proven)))
  return hand === undefined ? { p50 } : { p50, ratio: p50 / hand }
}

function toTheFloor(ratio: number | undefined): string {
  return ratio === undefined ? '' : `, ${ratio.toFixed(2)} of the floor; promised are ${promised}`
}

function median(spans: readonly Ms[]): Ms {
  return quantile(spans.toSorted((one, other) => one - other), 0.5)
}

function seconds(span: Ms): string {
  return `${(span / 1_000).toFixed(2)} s`
}
