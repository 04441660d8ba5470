// How full and how hot this node is, by a program that runs for a second and ends: what it asks may hang on a disk or a sensor, and nothing
// in the agent's own process may. A child that does not end in its span is killed with all that it started; one that not even that ends is
// left behind, and no second one is sent after it.
import type { ChildProcess } from 'node:child_process'
import process from 'node:process'
import type { Ms } from '../core/model.ts'
import { vitalNames, type Vitals } from '../core/vitals.ts'
import type { Clock } from '../edge/clock.ts'

/** What it says is five numbers. */
const longestWord = 1_000

/** `program`: a file for Node. `folder`: whose file system is meant. */
export function vitalsAsker(clock: Clock, program: string, folder: string): (span: Ms) => Promise<Vitals | undefined> {
  let underWay = false
  return async (span) => {
    if (underWay) return undefined
    underWay = true
    const { spawn } = await import('node:child_process')
    const child = spawn(process.execPath, ['--max-old-space-size=48', program, folder], { detached: true, stdio: ['ignore', 'pipe', 'ignore'], env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' } })
    return new Promise((resolve) => {
      let said = ''
      const end = (vitals: Vitals | undefined): void => {
        late()
        resolve(vitals)
      }
      const late = clock.after(span, () => {
        killAll(child)
        child.unref()
        child.stdout.destroy()
        resolve(undefined)
      })
      child.stdout.on('data', (piece: Buffer) => { said = (said + piece.toString()).slice(0, longestWord) })
      child.on('error', () => {
        underWay = false
        end(undefined) // it could not be started
      })
      child.on('exit', () => { underWay = false })
      child.on('close', (code) => end(code === 0 ? readVitals(said) : undefined))
    })
  }
}

/** It leads a process group of its own. */
function killAll({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // it has just ended by itself
  }
}

/** What lies outside of what can be is not told. */
const bounds: Readonly<Record<keyof Vitals, readonly [number, number]>> = { disk: [0, 100], inodes: [0, 100], memory: [0, 100], temperature: [-50, 200], load: [0, 100_000] }

/** Undefined: nothing of it is a vital. */
export function readVitals(text: string): Vitals | undefined {
  const told: unknown = parsed(text)
  if (typeof told !== 'object' || told === null) return undefined
  const known = Object.entries(told).flatMap(([key, value]) => {
    const name = vitalNames.find((one) => one === key)
    if (name === undefined || typeof value !== 'number') return []
    const [least, most] = bounds[name]
    return value >= least && value <= most ? [[name, value] as const] : []
  })
  return known.length === 0 ? undefined : Object.fromEntries(known)
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined // cut short: it was killed, or is not ours
  }
}
