// One process of the product: a program of this package, run by this Node, with an environment of its own and nothing else of
// ours. It dies with us.
import process, { execPath } from 'node:process'
import { fileURLToPath } from 'node:url'
import { startComponent, type Component } from './component.ts'

export interface ProductProcess {
  readonly pid: number
  alive(): boolean
  lastWords(): string
  /** SIGTERM, and what comes of it. */
  stop(): Promise<void>
  kill(): Promise<void>
  /** As SIGSTOP: its sockets stay open and say nothing. */
  pause(): void
  resume(): void
  readonly ended: Promise<string>
}

export interface ProductProgram {
  readonly name: string
  /** From the package's root. */
  readonly program: string
  readonly environment: Readonly<Record<string, string>>
  readonly logFile: string
  /** Loaded before it, from this folder. */
  readonly preload?: string
}

const root = fileURLToPath(new URL('../../', import.meta.url))

export async function startProduct({ name, program, environment, logFile, preload }: ProductProgram): Promise<ProductProcess> {
  const set = Object.entries({ PATH: process.env['PATH'] ?? '', ...environment }).map(([key, value]) => `${key}=${value}`)
  const first = preload === undefined ? [] : ['--import', new URL(preload, import.meta.url).href]
  const component: Component = await startComponent({ name, file: '/usr/bin/env', args: ['-i', ...set, execPath, ...first, `${root}${program}`], logFile })
  const signal = (kind: NodeJS.Signals) => {
    if (component.end() === undefined) process.kill(component.pid, kind)
  }
  return {
    pid: component.pid, ended: component.ended, lastWords: component.lastWords,
    alive: () => component.end() === undefined,
    stop: component.stop,
    kill: component.crash,
    pause: () => signal('SIGSTOP'),
    resume: () => signal('SIGCONT'),
  }
}
