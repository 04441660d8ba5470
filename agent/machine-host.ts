// The agent's host on a machine: the kernel's own text files, UDP whispers, TLS links, a folder of its own for what it remembers.
import { randomBytes } from 'node:crypto'
import { access, mkdir, open, readFile, readdir, rename, writeFile } from 'node:fs/promises'
import { resolve4, resolve6 } from 'node:dns/promises'
import { connect, isIP } from 'node:net'
import { dirname, join } from 'node:path'
import type { Ms } from '../core/model.ts'
import { isOfCsi, readMounts } from '../core/mounts.ts'
import { machineClock, withDeadline, type Clock } from '../edge/clock.ts'
import type { Log } from '../edge/log.ts'
import { tlsDialer } from '../edge/tls-link.ts'
import { machineWhispers } from '../edge/whisper.ts'
import { freezeGroup } from './cgroups.ts'
import type { AgentHost, ApiAnswer, Disk, HostFile } from './host.ts'
import { bareStagings, hostChildren } from './host-children.ts'
import { httpsGet } from './https-get.ts'
import { placeOnHost } from './kubelet-root.ts'
import { readLoopDevices, readMountTables } from './proc-tables.ts'
import { machineRuntimes } from './runtimes.ts'
import type { AgentEnvironment } from './settings.ts'
import { connectUnix } from './unix-stream.ts'
import { vitalsAsker } from './vitals.ts'
import { machineWatchdog } from './watchdog.ts'

/** `byName`: addresses of what a list of names and ports means. */
export function machineHost(settings: AgentEnvironment, log: Log, byName = resolveAll): AgentHost {
  const clock = machineClock
  const { proc } = settings
  const files: Readonly<Record<HostFile, string>> = {
    'boot-id': `${proc}/sys/kernel/random/boot_id`, 'pid-1-stat': `${proc}/1/stat`, uptime: `${proc}/uptime`, mounts: `${proc}/1/mountinfo`,
    machine: settings.machineFile, token: settings.tokenFile, 'pressure-cpu': `${proc}/pressure/cpu`, 'pressure-memory': `${proc}/pressure/memory`, 'pressure-io': `${proc}/pressure/io`,
    panic: `${proc}/sys/kernel/panic`, cpuinfo: `${proc}/cpuinfo`,
  }
  const children = hostChildren(clock, settings.enter)
  const runtimes = machineRuntimes(clock, settings.runtimeSockets, proc)
  const onKubeletsDisk = oneByOne()
  let seenRoot: string | undefined
  return {
    clock, log,
    chance: Math.random,
    secret: (bytes) => randomBytes(bytes),
    dialer: tlsDialer({ clock, authorities: () => readFile(settings.authorityFile, 'utf8') }),
    whispers: machineWhispers(clock, settings.bind),
    disk: diskIn(settings.state),
    watchdog: machineWatchdog(settings.watchdog, settings.sys),
    // What cannot be read is undefined: whoever asked knows what that means for him.
    read: (file) => readFile(files[file], 'utf8').catch(() => undefined),
    containers: runtimes.containers,
    stopContainer: runtimes.stopContainer,
    runtimeHealth: runtimes.runtimeHealth,
    freezeContainer: ({ id }) => freezeGroup(settings.cgroups, clock, id),
    endLeftover: children.end,
    async bareStagings() {
      const [mounts, root] = await Promise.all([mountPaths(), asMounted(settings.kubeletRoot)])
      if (mounts === undefined || root === undefined) return undefined
      const spelled = (folder: string): string => moved(folder, settings.kubeletRoot, root)
      const bare = await onKubeletsDisk(() => bareStagings(settings.kubeletRoot, (folder) => mounts.has(spelled(folder))))
      return bare?.map(spelled)
    },
    asMounted,
    mountTables: () => readMountTables(proc),
    loopDevices: () => readLoopDevices(settings.sys),
    async csiVolume(path) {
      // Whoever asks has just been told of that path by the host's table: the root is known, and there may be hundreds of paths.
      const root = isOfCsi(path) ? seenRoot ?? await asMounted(settings.kubeletRoot) : undefined
      if (root === undefined) return undefined
      return onKubeletsDisk(() => readFile(join(dirname(moved(path, root, settings.kubeletRoot)), 'vol_data.json'), 'utf8').catch(() => undefined))
    },
    async places() {
      const [folder, root, runtime, gate] = await Promise.all([onKubeletsDisk(() => ifThere(settings.podsFolder)), asMounted(settings.kubeletRoot), runtimes.place(placeWithin), ifThere(settings.nriSocket)])
      return { kubelet: folder === undefined ? '' : root ?? '', runtime: asTheHost(runtime), gate: asTheHost(gate) }
    },
    async reachStorage(target, span) {
      if (!target.startsWith('/')) return await letsIn(target, span) ? 'reached' : 'unreached'
      const mounts = await mountPaths()
      // What is not mounted is a folder of the host, and that answers always.
      return mounts === undefined ? 'unknown' : mounts.has(target) ? await children.answers(target, span) : 'unreached'
    },
    vitals: settings.vitals === undefined ? async () => undefined : vitalsAsker(clock, settings.vitals, settings.kubeletRoot),
    connectNri: (span) => connectUnix(settings.nriSocket, span),
    podFolders: () => onKubeletsDisk(() => readdir(settings.podsFolder).catch(() => undefined)),
    kubeletHealth: (span) => askHealth(settings.kubeletHealth, span),
    askApi: (path, span) => askApi(clock, settings.api, path, span),
    resolveReplicas: async () => [...await withDeadline(clock, namesWithin, [], () => byName(settings.replicas)), ...await publishedIn(settings.authorityFile)],
  }

  /** Where this process has the pods elsewhere, the folder is set in the host's words already. */
  async function asMounted(folder: string): Promise<string | undefined> {
    seenRoot = settings.podsFolder.startsWith(`${folder}/`) ? await onKubeletsDisk(() => placeOnHost(folder, proc)) : folder
    return seenRoot
  }

  /** Where anything is mounted on the host. */
  async function mountPaths(): Promise<ReadonlySet<string> | undefined> {
    const table = readMounts(await readFile(files.mounts, 'utf8').catch(() => ''))
    return 'mounts' in table ? new Set(table.mounts.map(({ path }) => path)) : undefined
  }
}

/** The same place below another folder. */
function moved(path: string, from: string, to: string): string {
  return path.startsWith(`${from}/`) ? `${to}${path.slice(from.length)}` : path
}

/** The host's own folders are mounted below /host. */
function asTheHost(path = ''): string {
  return path.replace(/^\/host(?=\/)/, '')
}

/** Whether anybody accepts a connection there. */
function letsIn(target: string, span: Ms): Promise<boolean> {
  const { hostname, port } = new URL(target)
  return new Promise((resolve) => {
    const socket = connect({ host: hostname.replace(/^\[(.*)\]$/, '$1'), port: Number(port) })
    const end = (is: boolean): void => {
      cancel()
      socket.destroy()
      resolve(is)
    }
    const cancel = machineClock.after(span, () => end(false))
    socket.on('connect', () => end(true))
    socket.on('error', () => end(false)) // refused or unreachable, which is all that was asked
  })
}

/** What tells a replica who we are waits for it. */
const placeWithin: Ms = 300

/** A name server that swallows what it is asked holds a call up for twenty seconds. What is published must not wait for that, nor
 *  be lost with it: whoever asked waits five. */
const namesWithin: Ms = 2_000

/** All that is asked of one disk, one after the other: a process has four threads for files, and what hangs keeps one for as long as it does. Were all of them
 *  taken, not even the token for the next link could be read. Who waits behind it has a deadline of his own. */
function oneByOne(): <T>(ask: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve()
  return (ask) => {
    const asked = last.then(ask)
    last = asked.catch(() => undefined) // whoever asked is told
    return asked
  }
}

/** What cannot be remembered by then is not, and the node does without. */
const loadWithin: Ms = 2_000

/** Whole or not at all: written beside and renamed, so that a power cut leaves the old text or the new one, and after `save` the new one: a mark
 *  of an older boot that came back would tell of an end that this one did not have. So the disk is waited for twice. One after the other: two at
 *  once would share the file beside, and the earlier text could come last. */
function diskIn(folder: string): Disk {
  const onDisk = oneByOne()
  return {
    load: (name) => withDeadline(machineClock, loadWithin, undefined, () => onDisk(() => readFile(join(folder, name), 'utf8').catch(() => undefined))),
    save: (name, text) => onDisk(() => write(name, text)),
  }

  async function write(name: string, text: string): Promise<void> {
    await mkdir(folder, { recursive: true })
    const beside = join(folder, `${name}.new`)
    await writeFile(beside, text, { mode: 0o600, flush: true })
    await rename(beside, join(folder, name))
    const opened = await open(folder)
    await opened.sync().finally(() => opened.close())
  }
}

/** A GET by hand: node:http alone would cost the agent eight megabytes, and kubelet's answer is one line. */
function askHealth(url: string, span: Ms): Promise<'ok' | 'ill' | 'unknown'> {
  const { hostname, port, pathname } = new URL(url)
  return new Promise((resolve) => {
    let answer = ''
    const socket = connect({ host: hostname.replace(/^\[(.*)\]$/, '$1'), port: port === '' ? 80 : Number(port) })
    const end = (word: 'ok' | 'ill' | 'unknown'): void => {
      cancel()
      socket.destroy()
      resolve(word)
    }
    const cancel = machineClock.after(span, () => end('ill'))
    socket.setEncoding('latin1')
    socket.on('connect', () => socket.write(`GET ${pathname} HTTP/1.0\r\nHost: ${hostname}\r\n\r\n`))
    socket.on('data', (piece) => {
      answer += String(piece)
      // The status line is all; whoever sends so much without one is no kubelet.
      if (answer.includes('\n') || answer.length > longestStatusLine) end(/^HTTP\/1\.[01] 200 /.test(answer) ? 'ok' : 'ill')
    })
    socket.on('end', () => end('ill'))
    // Refused: nothing listens where kubelet tells its health; it may be set up otherwise, and nothing follows from it.
    socket.on('error', (error) => end('code' in error && error.code === 'ECONNREFUSED' ? 'unknown' : 'ill'))
  })
}

/** Token and authority are read for each question: kubelet renews them. */
async function askApi(clock: Clock, api: AgentEnvironment['api'], path: string, span: Ms): Promise<ApiAnswer> {
  if (api === undefined) return { failed: 'no API server is known here' }
  try {
    const [token, authority] = await Promise.all(['token', 'ca.crt'].map((name) => readFile(join(api.folder, name), 'utf8')))
    return await httpsGet(clock, { host: api.host, port: api.port, token: (token ?? '').trim(), authority: authority ?? '' }, path, span)
  } catch (error) {
    return { failed: String(error).slice(0, 200) } // no token there, or an authority that is none
  }
}

function ifThere(path: string): Promise<string | undefined> {
  return access(path).then(() => path, () => undefined)
}

const longestStatusLine = 1_000

/** Every address behind the name, with the port. Names that do not resolve now are asked again later. */
async function resolveAll(replicas: string): Promise<readonly string[]> {
  const all = await Promise.all(replicas.split(',').map(async (one) => {
    const at = one.lastIndexOf(':')
    const [host, port] = [one.slice(0, at).replace(/^\[(.*)\]$/, '$1'), one.slice(at + 1)]
    if (isIP(host) !== 0) return [one]
    const found = await Promise.all([resolve4(host).catch(() => []), resolve6(host).catch(() => [])])
    return found.flat().map((address) => (isIP(address) === 6 ? `[${address}]:${port}` : `${address}:${port}`))
  }))
  return all.flat()
}

/** The addresses that the replicas keep beside the certificates to believe: kubelet brought them, no name server is needed. */
async function publishedIn(authorityFile: string): Promise<readonly string[]> {
  try {
    const published: unknown = JSON.parse(await readFile(join(dirname(authorityFile), 'replicas'), 'utf8'))
    return Array.isArray(published) ? published.flatMap(addressOf) : []
  } catch {
    return [] // not there yet, or not whole: the name and the permits tell too
  }
}

function addressOf(replica: unknown): readonly string[] {
  return typeof replica === 'object' && replica !== null && 'address' in replica && typeof replica.address === 'string' ? [replica.address] : []
}
