// A machine that really dies: a Debian kernel in qemu (TCG) that beats on its serial port with its boot id and its UUID. It
// runs while one of its feeds is on. Whether it is off is told by its process and its beats, never by a device.
import * as assert from 'uvu/assert'
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import type { Component } from '../control-plane/component.ts'
import { serveLines } from './lines.ts'
import { installed, pause, until, type Rack } from './rack.ts'

export interface Machine {
  readonly name: string
  readonly uuid: string
  readonly feeds: readonly Feed[]
  /** The first of them. */
  readonly feed: Feed
  readonly boots: readonly string[]
  /** The first beat of a boot that was not there before this call, or of the one that runs. */
  beats(within?: number): Promise<string>
  /** How it stands by its process and its beats: `hung` has power and has not beaten for so long. */
  state(silence: number): 'off' | 'starting' | 'beating' | 'hung'
  /** What its process said last, for whoever looks for a fault of the test. */
  lastWords(): string
  /** Types a line into its second serial port. */
  tell(command: string): void
  /** Likewise, and waits for its end: how that was, and what was printed. One at a time. */
  run(command: string): Promise<{ readonly code: number; readonly output: string }>
  /** Waits for three more beats of this boot: one may have been on its way. */
  mustBeatOn(boot: string): Promise<void>
  /** It has power and its process runs, and no beat comes any more. */
  mustHang(): Promise<void>
  /** Its process has gone, and no beat comes any more. */
  mustBeDead(): Promise<void>
}

/** A device's grip on a machine. `switchTo` is done when the machine is there. */
export interface Feed {
  on(): boolean
  switchTo(on: boolean): Promise<void>
}

/** What the machine is, where it is more than one that can beat. */
export interface Guest {
  readonly kernel: string
  readonly initrd: string
  readonly memory: string
  readonly devices: readonly string[]
}

const beatEvery = 200

export async function startMachine(rack: Rack, name: string, { feeds = 1, on = true, guest = smallest() }: { readonly feeds?: number; readonly on?: boolean; readonly guest?: Guest } = {}): Promise<Machine> {
  const uuid = randomUUID()
  const states = Array.from({ length: feeds }, () => on)
  const heard: { readonly boot: string; readonly machine: string }[] = []
  const boots: string[] = []
  const printed: string[] = []
  let asked = 0
  let heardAt = 0
  let startedAt = 0
  const beatsAt = rack.keep(await serveLines(join(rack.folder, `${name}.beats`), async (lines) => {
    for await (const line of lines) {
      const [, boot, machine] = /^BEAT \d+ ([0-9a-f-]{36}) ([0-9a-f-]{36})/.exec(line.trim()) ?? []
      if (boot === undefined || machine === undefined) continue
      if (boots.at(-1) !== boot) boots.push(boot)
      heard.push({ boot, machine })
      heardAt = performance.now()
    }
  }))
  const shell = rack.keep(await serveLines(join(rack.folder, `${name}.shell`), async (lines) => {
    for await (const line of lines) printed.push(line)
  }))
  let running: Component | undefined
  let turn: Promise<void> = Promise.resolve()
  const settle = async () => {
    const power = states.some((state) => state)
    if (power && (running === undefined || running.end() !== undefined)) {
      startedAt = performance.now()
      running = await rack.start(name, qemu(uuid, beatsAt.path, shell.path, guest))
    } else if (!power && running !== undefined) {
      await running.crash()
    }
  }
  const runs = () => running !== undefined && running.end() === undefined
  const settled = () => (turn = turn.then(settle))
  const feedAt = (index: number): Feed => ({
    on: () => states[index] === true,
    switchTo: (to) => {
      states[index] = to
      return settled()
    },
  })
  await settled()
  return {
    name, uuid, boots, feed: feedAt(0), feeds: states.map((_, index) => feedAt(index)),
    state(silence) {
      if (!runs()) return 'off'
      if (heardAt < startedAt) return 'starting'
      return performance.now() - heardAt < silence ? 'beating' : 'hung'
    },
    lastWords: () => running?.lastWords() ?? '',
    tell: (command) => shell.say(`${command}\n`),
    async run(command) {
      asked += 1
      const [from, end] = [printed.length, `ENDED ${asked} `]
      const at = () => printed.findIndex((line, index) => index >= from && line.startsWith(end))
      shell.say(`${command}; echo "${end}$?"\n`)
      await until(`the end of ${command} on ${name}`, () => at() !== -1)
      return { code: Number(printed[at()]?.slice(end.length)), output: printed.slice(from, at()).join('\n') }
    },
    async beats(within) {
      const before = heard.length
      await until(`a beat of ${name}`, () => {
        if (!runs()) throw new Error(`${name} does not run: ${running?.end() ?? 'it has no power'}\n${running?.lastWords() ?? ''}`)
        return heard.length > before
      }, within)
      const last = heard.at(-1)
      assert.is(last?.machine, uuid)
      return last?.boot ?? ''
    },
    async mustBeatOn(boot) {
      const before = heard.length
      await until(`three beats of ${name}`, () => heard.length >= before + 3)
      assert.equal([runs(), ...new Set(heard.slice(before).map((beat) => beat.boot))], [true, boot])
    },
    async mustHang() {
      await until(`${name} to fall silent`, async () => {
        const before = heard.length
        await pause(5 * beatEvery)
        return heard.length === before
      })
      assert.ok(runs(), `${name} has gone`)
    },
    async mustBeDead() {
      assert.is(runs(), false, `${name} still runs`)
      await pause(beatEvery) // what it said last is on its way
      const before = heard.length
      await pause(3 * beatEvery)
      assert.is(heard.length, before, `${name} still beats`)
    },
  }
}

/** Behind it nothing comes of an order, which `ordered` waits for. */
export function deaf(feed: Feed): { readonly feed: Feed; readonly ordered: Promise<void> } {
  const heard = Promise.withResolvers<void>()
  const switchTo = () => Promise.resolve(heard.resolve())
  return { feed: { on: feed.on, switchTo }, ordered: heard.promise }
}

/** What nothing hangs on. */
export function loose(): Feed {
  let power = true
  return {
    on: () => power,
    switchTo(on) {
      power = on
      return Promise.resolve()
    },
  }
}

function smallest(): Guest {
  return { kernel: join(installed('kernel'), 'vmlinuz'), initrd: join(installed('initrd'), 'initrd.gz'), memory: '128', devices: [] }
}

function qemu(uuid: string, beats: string, shell: string, { kernel, initrd, memory, devices }: Guest): readonly string[] {
  return [
    'qemu-system-x86_64', '-accel', 'tcg', '-m', memory, '-smp', '1', '-uuid', uuid, '-display', 'none', '-nodefaults', '-no-user-config',
    '-kernel', kernel, '-initrd', initrd, '-append', 'console=ttyS0 quiet panic=0', ...devices,
    '-chardev', `socket,id=beats,path=${beats}`, '-serial', 'chardev:beats', '-chardev', `socket,id=shell,path=${shell}`, '-serial', 'chardev:shell',
  ]
}
