// A network of its own, for as long as the process lives that holds it.
import { execFileSync, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { writeFileSync } from 'node:fs'
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

/** `names` lead to this address there, and nowhere else do names lead anywhere. */
export async function startNamespace(rack: Rack, name: string, names?: Readonly<Record<string, string>>): Promise<Namespace> {
  // Where names are its own, so are its mounts: a file lies over the machine's list of hosts, and is seen from inside alone.
  const { pid } = await rack.start(name, ['unshare', '--net', ...(names === undefined ? [] : ['--mount']), 'sleep', 'infinity'])
  const holder = String(pid)
  // It is this machine's own network until unshare has begun, and what is done there by mistake is done to this machine.
  const kinds = names === undefined ? ['net'] : ['net', 'mnt']
  await until(`the network of ${name}`, () => kinds.every((kind) => !['', spaceOf('self', kind)].includes(spaceOf(holder, kind))))
  const command = (...words: string[]) => ['nsenter', '-t', holder, '-n', ...(names === undefined ? [] : ['-m']), ...words]
  const run = (...words: string[]) => {
    const [program = '', ...rest] = command(...words)
    return execFileSync(program, rest, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
  }
  if (names !== undefined) {
    const hosts = join(rack.folder, `${name}.hosts`)
    writeFileSync(hosts, ['127.0.0.1 localhost', ...Object.entries(names).map(([host, address]) => `${address} ${host}`), ''].join('\n'))
    run('mount', '--bind', hosts, '/etc/hosts')
  }
  return { holder, command, run, wrap: (program, words) => rack.wrap(program, command(...words)) }
}

function spaceOf(process: string, kind: string): string {
  return spawnSync('readlink', [`/proc/${process}/ns/${kind}`], { encoding: 'utf8' }).stdout
}
