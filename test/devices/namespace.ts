// A network of its own, for as long as the process lives that holds it.
import { execFileSync, spawnSync } from 'node:child_process'
import { until, type Rack } from './rack.ts'

export interface Namespace {
  readonly holder: string
  /** The same command, run inside. */
  command(...words: string[]): readonly string[]
  /** Answers what it said. */
  run(...words: string[]): string
  /** Whoever asks the rack for this program gets it run inside. */
  wrap(program: string, command: readonly string[]): void
}

export async function startNamespace(rack: Rack, name: string): Promise<Namespace> {
  const { pid } = await rack.start(name, ['unshare', '--net', 'sleep', 'infinity'])
  const holder = String(pid)
  // It is this machine's own network until unshare has begun, and what is done there by mistake is done to this machine.
  await until(`the network of ${name}`, () => !['', networkOf('self')].includes(networkOf(holder)))
  const command = (...words: string[]) => ['nsenter', '-t', holder, '-n', ...words]
  return {
    holder, command,
    run(...words) {
      const [program = '', ...rest] = command(...words)
      return execFileSync(program, rest, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
    },
    wrap: (program, words) => rack.wrap(program, command(...words)),
  }
}

function networkOf(process: string): string {
  return spawnSync('readlink', [`/proc/${process}/ns/net`], { encoding: 'utf8' }).stdout
}
