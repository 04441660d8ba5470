#!/usr/bin/env node
// The command line: npm run holdfast, and installed as kubectl-holdfast. It reads the API server as kubectl does, with the
// rights of whoever runs it, and writes nothing but what it was asked to: a drill. What is installed here it tells without it.
import { parseArgs } from 'node:util'
import { createApi, type Api } from '../coordinator/api.ts'
import { clusterTransport } from '../coordinator/kubeconfig.ts'
import { machinePrograms } from '../coordinator/programs.ts'
import { machineClock } from '../edge/clock.ts'
import { check, checkLines, succeeded } from './check.ts'
import { leaseMoves, readCluster } from './cluster.ts'
import { carryOutDrill, drillOf } from './drill.ts'
import { describe, foldersOf, installedIn, programLines, wholeLines } from './fence-programs.ts'
import { paint, showsColours, showsUnicode, type Paint } from './paint.ts'
import { statusLines, statusOf } from './status.ts'

const usage = `kubectl holdfast status   is it well, and what is being done
kubectl holdfast check    would it work: one line for each thing that it rests on
kubectl holdfast test-fence NODE --off   a drill on a cordoned, drained node: its machine is switched off, and on again
kubectl holdfast fence-agents [NAME]     the fence programs installed here, and what each takes; asks no cluster

  --kubeconfig FILE   instead of KUBECONFIG and ~/.kube/config
  --context NAME      instead of the kubeconfig's own
  -n, --namespace NS  where the coordinator is (holdfast-system)
  --json              for programs
  --color auto|always|never
  --ascii             no glyphs
  -h, --help`

/** How many words stand behind each, at least and at most. */
const commands = { status: [0, 0], check: [0, 0], 'test-fence': [1, 1], 'fence-agents': [0, 1] } as const
type Command = keyof typeof commands
/** Longer than a leader may be away before another one takes over. */
const leaseWithin = 3_000

interface Wanted {
  readonly command: Command
  /** The node of a drill, or one fence program. */
  readonly name: string
  readonly kubeconfig?: string
  readonly context?: string
  readonly namespace: string
  readonly json: boolean
  readonly paint: Paint
}

/** What it speaks to. */
interface Terminal {
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly isTerminal: boolean
  print(line: string): void
  complain(line: string): void
}

if (import.meta.main) process.exit(await main(process.argv.slice(2), { environment: process.env, isTerminal: process.stdout.isTTY, print: console.log, complain: console.error }))

/** Its answer is the exit code. */
export async function main(input: readonly string[], terminal: Terminal): Promise<number> {
  const wanted = read(input, terminal)
  if (typeof wanted === 'string') {
    if (wanted === usage) terminal.print(wanted)
    else terminal.complain(wanted)
    return wanted === usage ? 0 : 2
  }
  if (wanted.command === 'fence-agents') return fenceAgents(wanted, terminal)
  try {
    const transport = await clusterTransport(wanted.kubeconfig, wanted.context)
    try {
      const api = createApi({ transport, clock: machineClock, userAgent: 'kubectl-holdfast' })
      switch (wanted.command) {
        case 'status': return await status(api, wanted, terminal)
        case 'check': return await checks(api, wanted, terminal)
        case 'test-fence': return await testFence(api, wanted, terminal)
      }
    } finally {
      transport.close()
    }
  } catch (error) {
    terminal.complain(error instanceof Error ? error.message : String(error)) // a kubeconfig that cannot be used says so in a sentence
    return 1
  }
}

async function status(api: Api, { namespace, json, paint: paints }: Wanted, { print }: Terminal): Promise<number> {
  const cluster = await readCluster(api, namespace)
  const wall = machineClock.wall()
  const found = statusOf(cluster, wall)
  if (json) print(JSON.stringify(found))
  else for (const line of statusLines(found, wall, paints)) print(line)
  return cluster.nodes.ok ? 0 : 1
}

async function checks(api: Api, { namespace, json, paint: paints }: Wanted, { print }: Terminal): Promise<number> {
  const cluster = await readCluster(api, namespace)
  const { lease } = cluster
  const moves = lease.ok && lease.value.holder !== '' && await leaseMoves(api, machineClock, namespace, lease.value, leaseWithin)
  const categories = check(cluster, moves, machineClock.wall())
  if (json) print(JSON.stringify({ success: succeeded(categories), categories }))
  else for (const line of checkLines(categories, paints)) print(line)
  return succeeded(categories) ? 0 : 1
}

async function testFence(api: Api, { namespace, name: node, json, paint: paints }: Wanted, { print }: Terminal): Promise<number> {
  const wished = drillOf(await readCluster(api, namespace), node)
  const tell = (line: string): void => { if (!json) print(line) }
  const { passed, because } = 'refused' in wished ? { passed: false, because: wished.refused } : await carryOutDrill(api, machineClock, wished.draft, tell)
  if (json) print(JSON.stringify({ passed, because }))
  else print(passed ? paints.good(`${paints.glyphs.well} ${because}`) : paints.bad(`${paints.glyphs.bad} ${because}`))
  return passed ? 0 : 1
}

/** Nothing of it is the cluster's affair: who asks for the coordinator's programs runs this where the coordinator runs. */
async function fenceAgents({ name, json, paint: paints }: Wanted, { environment, print, complain }: Terminal): Promise<number> {
  const folders = foldersOf(environment)
  const names = installedIn(folders).filter((one) => name === '' || one === name)
  if (names.length === 0) {
    complain(`there is no fence program${name === '' ? '' : ` ${name}`} in ${folders.join(', ')}`)
    return 1
  }
  const programs = machinePrograms({ folders, clock: machineClock })
  try {
    const all = await describe(names, folders, programs)
    if (json) print(JSON.stringify(all))
    else for (const line of name === '' ? programLines(all, paints) : all.flatMap((one) => wholeLines(one, paints))) print(line)
    return 0
  } finally {
    await programs.close()
  }
}

function read(input: readonly string[], { environment, isTerminal }: Terminal): Wanted | string {
  try {
    const { values, positionals: [word, ...more] } = parseArgs({
      args: [...input], allowPositionals: true,
      options: {
        kubeconfig: { type: 'string' }, context: { type: 'string' }, namespace: { type: 'string', short: 'n', default: 'holdfast-system' },
        json: { type: 'boolean', default: false }, color: { type: 'string', default: 'auto' }, ascii: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false }, off: { type: 'boolean', default: false },
      },
    })
    if (values.help || word === undefined) return usage
    if (!isCommand(word) || more.length < commands[word][0] || more.length > commands[word][1]) return `${[word, ...more].join(' ')}: no such command\n\n${usage}`
    const drills = word === 'test-fence'
    // Whoever means to look only must not switch a machine off.
    if (values.off !== drills) return `${drills ? 'test-fence NODE needs --off: the machine is switched off' : `${word} knows no --off`}\n\n${usage}`
    if (!['auto', 'always', 'never'].includes(values.color)) return `--color ${values.color}: auto, always or never`
    const colours = values.color === 'always' || (values.color === 'auto' && showsColours(environment, isTerminal))
    return {
      command: word, name: more[0] ?? '', namespace: values.namespace, json: values.json, paint: paint({ colours, unicode: !values.ascii && showsUnicode(environment) }),
      ...(values.kubeconfig === undefined ? {} : { kubeconfig: values.kubeconfig }),
      ...(values.context === undefined ? {} : { context: values.context }),
    }
  } catch (error) {
    return `${error instanceof Error ? error.message : String(error)}\n\n${usage}` // an option that is not known
  }
}

function isCommand(word: string): word is Command {
  return Object.hasOwn(commands, word)
}
