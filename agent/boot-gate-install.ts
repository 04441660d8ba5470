// Puts the gate of the boot onto a node: its bundle, a Node with the libraries that this very one has open, since a host may have none that fit,
// and, last, the shell shim in the runtime's plugin folder by which all of that begins. Each file is written beside and renamed; what
// stands there already as it should is left alone. Where the folder is taken away again the shim ends without a word.
import { chmod, copyFile, mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { nodeFlags } from './node-flags.ts'

export interface BootGateInstall {
  /** The bundle. */
  readonly program: string
  readonly node: string
  /** The agent's own on the host's disk, by the same path here and there. */
  readonly folder: string
  /** The runtime's plugin folder, as it is mounted here. */
  readonly plugins: string
  readonly exemptNamespaces: readonly string[]
  /** What this process has open; another one in tests. */
  readonly maps?: string
}

/** Its name is that of the agent's own plugin: a runtime that requires `holdfast` is content with either. By its number it is asked after that one, which knows
 *  more of why a gate is shut, and whose words a person reads. */
export const shimName = '06-holdfast'
const home = (folder: string): string => join(folder, 'boot-gate')
export const settingsFile = (folder: string): string => join(home(folder), 'settings.json')
/** It holds a few kilobytes. */
const bootFlags = [...nodeFlags, '--max-old-space-size=24', '--max-semi-space-size=1'].join(' ')

export async function installBootGate({ program, node, folder, plugins, exemptNamespaces, maps }: BootGateInstall): Promise<void> {
  const libraries = librariesIn(maps ?? await readFile('/proc/self/maps', 'utf8'))
  const loader = libraries.find((file) => basename(file).startsWith('ld-'))
  if (loader === undefined) throw new Error('this Node has no loader of its own open: it cannot be copied to another system')
  const to = home(folder)
  await mkdir(join(to, 'lib'), { recursive: true, mode: 0o755 })
  const sources = [node, ...libraries]
  const marks = JSON.stringify({ node: process.version, sizes: await Promise.all(sources.map(async (file) => (await stat(file)).size)) })
  if (await readFile(join(to, 'installed'), 'utf8').catch(() => undefined) !== marks) {
    await Promise.all(libraries.map((file) => put(file, join(to, file === loader ? 'ld.so' : join('lib', basename(file))), 0o755)))
    await put(node, join(to, 'node'), 0o755)
    await write(join(to, 'installed'), marks, 0o644)
  }
  await write(settingsFile(folder), JSON.stringify({ exemptNamespaces }), 0o644)
  await write(join(to, 'boot-gate.mjs'), await readFile(program, 'utf8'), 0o644)
  // Last, and under no name that a runtime would start while it is written.
  await write(join(plugins, shimName), shimOf(folder), 0o755, join(plugins, '.holdfast.new'))
}

/** What begins at each boot of the node then: nothing, once the folder is gone. */
export async function removeBootGate(folder: string): Promise<void> {
  await rm(home(folder), { recursive: true, force: true })
}

/** The runtime gives it no PATH. */
export function shimOf(folder: string): string {
  const to = home(folder)
  return `#!/bin/sh
# Holdfast's gate from the first second of a boot (agent/boot-gate.ts). Without its folder it was uninstalled.
[ -x ${to}/node ] && [ -x ${to}/ld.so ] && [ -f ${to}/boot-gate.mjs ] || exit 0
exec ${to}/ld.so --library-path ${to}/lib ${to}/node ${bootFlags} ${to}/boot-gate.mjs ${folder}
`
}

/** Shared objects that a process has mapped, the loader among them. */
function librariesIn(maps: string): readonly string[] {
  const files = maps.split('\n').map((line) => /^\S+ r-xp \S+ \S+ \d+\s+(\/.*)$/.exec(line)?.[1] ?? '')
  return [...new Set(files.filter((file) => /\.so(\.|$)/.test(basename(file))))]
}

async function put(from: string, to: string, mode: number): Promise<void> {
  await copyFile(from, `${to}.new`)
  await chmod(`${to}.new`, mode)
  await rename(`${to}.new`, to)
}

/** What stands there already is not written again. */
async function write(to: string, text: string, mode: number, beside = `${to}.new`): Promise<void> {
  if (await readFile(to, 'utf8').catch(() => undefined) === text) return
  await writeFile(beside, text, { mode })
  await chmod(beside, mode)
  await rename(beside, to)
}
