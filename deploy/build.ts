// `npm run build`: the programs as single files and the manifests as one, into dist/. What can be built is built; each thing
// that cannot is one plain line, and the end is 1. With `-- --images` also the image that the manifests name, with `-- --fence-agents` the second one, too.
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import process from 'node:process'
import { build } from 'esbuild'
import { customResourceDefinitions } from './crd.ts'
import { buildFenceImage } from './fence-image.ts'
import { buildImage } from './images.ts'
import { yamlOf } from './manifest.ts'
import { manifests } from './manifests.ts'
import { uninstallManifests } from './uninstall.ts'
import { usualValues } from './values.ts'

export interface Program {
  readonly from: string
  /** Below dist/. */
  readonly to: string
}

export interface Bundle {
  readonly bytes: number
  /** Every file that went into it. */
  readonly files: readonly string[]
}

const root = dirname(import.meta.dirname)
const oldestNode = 24

if (import.meta.main) process.exitCode = await main(process.argv.slice(2), (line) => console.log(line))

async function main(words: readonly string[], say: (line: string) => void): Promise<0 | 1 | 2> {
  if (words.some((word) => word !== '--images' && word !== '--fence-agents')) {
    say('npm run build -- [--images] [--fence-agents]')
    return 2
  }
  const dist = join(root, 'dist')
  const built = await buildAll(dist, say)
  if (built === 0 && words.length > 0) await buildImage(dist, say)
  if (built === 0 && words.includes('--fence-agents')) await buildFenceImage(dist, say)
  return built
}

export async function buildAll(dist: string, say: (line: string) => void): Promise<0 | 1> {
  rmSync(dist, { recursive: true, force: true })
  mkdirSync(dist, { recursive: true })
  let faults = 0
  for (const program of programs()) {
    const built = await bundle(program, dist)
    if ('missing' in built) faults += 1
    say('missing' in built ? `missing  ${program.to}: ${built.missing}` : `${size(built.bytes)}  ${program.to}`)
  }
  for (const [name, text] of Object.entries(files())) {
    writeFileSync(join(dist, name), text)
    say(`${size(text.length)}  ${name}`)
  }
  cpSync(join(root, 'deploy', 'examples'), join(dist, 'examples'), { recursive: true })
  // The coordinator looks for its page's files beside itself.
  cpSync(join(root, 'coordinator', 'page'), join(dist, 'page'), { recursive: true })
  say(faults === 0 ? 'build: whole' : `build: ${faults} missing`)
  return faults === 0 ? 0 : 1
}

export function programs(): readonly Program[] {
  // The device for tests is no fence: whoever installs it would have one that believes a file.
  const agents = globSync('fence-agents/*/*.ts', { cwd: root })
    .filter((file) => basename(file, '.ts') === basename(dirname(file)) && !file.includes('test-device')).toSorted()
  return [
    { from: 'agent/main.ts', to: 'agent.mjs' },
    // Beside the agent's, which starts it: what it holds must not be in there.
    { from: 'agent/vitals-program.ts', to: 'vitals-program.mjs' },
    // Copied onto nodes, where it keeps the gate until there is an agent.
    { from: 'agent/boot-gate.ts', to: 'boot-gate.mjs' },
    { from: 'coordinator/main.ts', to: 'coordinator.mjs' },
    { from: 'cli/main.ts', to: 'kubectl-holdfast.mjs' },
    ...['ipmi', 'redfish'].filter((name) => !agents.some((file) => basename(file, '.ts') === name)).map((name) => agentProgram(`fence-agents/${name}/${name}.ts`)),
    ...agents.map(agentProgram),
  ]
}

/** Under its own folder, which is where the runner looks for a program by its name. */
function agentProgram(from: string): Program {
  const name = basename(from, '.ts')
  return { from, to: `fence-agents/${name}/${name}.mjs` }
}

/** Only Node's own modules stay outside. `require` is there for packages that still ask for it. */
export async function bundle({ from, to }: Program, dist: string): Promise<Bundle | { readonly missing: string }> {
  if (!existsSync(join(root, from))) return { missing: `there is no ${from}` }
  try {
    const result = await build({
      absWorkingDir: root, entryPoints: [from], outfile: join(dist, to),
      bundle: true, platform: 'node', format: 'esm', target: `node${oldestNode}`, mainFields: ['module', 'main'], conditions: ['module-sync', 'node'],
      minifyWhitespace: true, minifySyntax: true, legalComments: 'eof', metafile: true, logLevel: 'silent',
      // Native helpers that their packages do without where they are not there.
      external: ['cpu-features', '*.node'],
      banner: { js: `import { createRequire as __createRequire } from 'node:module'; const require = __createRequire(import.meta.url);\n${oldNode(basename(to, '.mjs'))}` },
    })
    const inputs = Object.keys(result.metafile.inputs)
    const second = inputs.find((file) => file !== from && !file.includes('node_modules') && readFileSync(join(root, file), 'utf8').includes('import.meta.main'))
    // In one file there is one main: a second program inside would start with the first.
    if (second !== undefined) return { missing: `${second} is a program of its own and cannot be part of ${from}` }
    return { bytes: Object.values(result.metafile.outputs).reduce((sum, output) => sum + output.bytes, 0), files: inputs }
  } catch (error) {
    return { missing: `esbuild says ${error instanceof Error ? error.message.split('\n').slice(0, 3).join(' ') : String(error)}` }
  }
}

/** Before anything else of the program: an older Node ends somewhere in the midst of it, with a page of it in the terminal. */
function oldNode(name: string): string {
  return `if (Number.parseInt(process.versions.node, 10) < ${oldestNode}) { console.error('${name} needs Node ${oldestNode} or later, this is ' + process.version); process.exit(1); }`
}

function files(): Readonly<Record<string, string>> {
  return { 'holdfast.yaml': yamlOf(manifests(usualValues)), 'crds.yaml': yamlOf(customResourceDefinitions()), 'uninstall.yaml': yamlOf(uninstallManifests(usualValues)) }
}

function size(bytes: number): string {
  return `${(bytes / 1024).toFixed(0).padStart(6)} KiB`
}
