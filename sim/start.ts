// npm start: the whole system in this one process, for a person to look at and to break. Nothing is written but into one
// folder below the machine's own for temporary files, and that goes with the process, however it ends.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { Ms } from '../core/model.ts'
import type { Embedded } from './embedded.ts'

const usage = `npm start                  the embedded world, with its page, until Ctrl-C
npm start -- --script      plays the story once and ends
  --fault power|freeze|partition   what befalls the node (power)
  --json                   the last line is one JSON object
  --within SECONDS         the story has come to its end by then, or has failed (60)
  --profile fast|balanced  of the policy (fast)
  --verbose                everything that happens in the world, line by line`

const faults = ['power', 'freeze', 'partition'] as const
const profiles = ['fast', 'balanced'] as const

await main()

async function main(): Promise<void> {
  const wanted = read()
  if (typeof wanted === 'string') {
    console.error(wanted)
    process.exit(wanted === usage ? 0 : 2)
  }
  // Before anything is loaded: a person who waits is told at once.
  console.log('Holdfast: three simulated machines, an API server, two replicas and three agents, all in this process')
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-'))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  let world: Promise<Embedded> | undefined
  let ending = false
  const end = async (code: number): Promise<never> => {
    // Whoever asks a second time does not want to wait: the programs and the folder go all the same, at exit.
    if (ending) process.exit(code === 0 ? 130 : code)
    ending = true
    try {
      await (await world)?.stop()
    } catch (error) {
      console.error(`it did not end in good order: ${error instanceof Error ? error.message : String(error)}`) // and ends now
    }
    process.exit(code)
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => void end(0))
  try {
    const { startEmbedded } = await import('./embedded.ts')
    world = startEmbedded({ folder, profile: wanted.profile, bootTime: wanted.script ? [4_500, 5_500] : [8_000, 10_000] })
    const embedded = await world
    if (ending) return
    const { greet, invite, narrate, narrateAll } = await import('./start-narration.ts')
    if (wanted.verbose) narrateAll(embedded)
    if (!wanted.script) {
      greet(embedded)
      narrate(embedded)
      await invite(embedded)
      return
    }
    const { playScript } = await import('./start-script.ts')
    const played = await playScript(embedded, wanted.fault, wanted.within, (line) => console.log(line))
    if (wanted.json) console.log(JSON.stringify(played))
    await end(played.reason === undefined ? 0 : 1)
  } catch (error) {
    // What keeps the world from starting is all that a person can use.
    console.error(error instanceof Error ? error.message : String(error))
    await end(1)
  }
}

interface Wanted {
  readonly script: boolean
  readonly json: boolean
  readonly verbose: boolean
  readonly fault: (typeof faults)[number]
  readonly profile: (typeof profiles)[number]
  /** Since the process began. */
  readonly within: Ms
}

function read(): Wanted | string {
  try {
    const { values } = parseArgs({
      options: {
        script: { type: 'boolean', default: false }, json: { type: 'boolean', default: false }, verbose: { type: 'boolean', default: false },
        fault: { type: 'string', default: 'power' }, profile: { type: 'string', default: 'fast' },
        within: { type: 'string', default: '60' }, help: { type: 'boolean', short: 'h', default: false },
      },
    })
    if (values.help) return usage
    if (values.json && !values.script) return '--json is for --script: npm start -- --script --json'
    const within = Number(/^\d{1,4}$/.exec(values.within)?.[0])
    if (!(within >= 60)) return `--within ${values.within}: whole seconds, 60 to 9999`
    const fault = faults.find((one) => one === values.fault)
    const profile = profiles.find((one) => one === values.profile)
    if (fault === undefined) return `--fault ${values.fault}: one of ${faults.join(', ')}`
    if (profile === undefined) return `--profile ${values.profile}: one of ${profiles.join(', ')}`
    return { script: values.script, json: values.json, verbose: values.verbose, fault, profile, within: within * 1_000 }
  } catch (error) {
    return `${error instanceof Error ? error.message : String(error)}\n${usage}` // an option that is not known
  }
}
