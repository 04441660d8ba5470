// The agent's host on a machine: the kernel's own text files, UDP whispers, TLS links, a folder of its own for what it remembers.
import { mkdir, readFile, readdir, rename, writeFile } from 'node:fs/promises'
import { resolve4, resolve6 } from 'node:dns/promises'
import { get } from 'node:http'
import { isIP } from 'node:net'
import { join } from 'node:path'
import type { Ms } from '../core/model.ts'
import { machineClock } from '../edge/clock.ts'
import type { Log } from '../edge/log.ts'
import { tlsDialer } from '../edge/tls-link.ts'
import { machineWhispers } from '../edge/whisper.ts'
import type { AgentHost, Disk, HostFile } from './host.ts'
import type { AgentEnvironment } from './settings.ts'

export function machineHost(settings: AgentEnvironment, log: Log): AgentHost {
  const clock = machineClock
  const { proc } = settings
  const files: Readonly<Record<HostFile, string>> = {
    'boot-id': `${proc}/sys/kernel/random/boot_id`, 'pid-1-stat': `${proc}/1/stat`, uptime: `${proc}/uptime`, mounts: `${proc}/1/mountinfo`,
    machine: settings.machineFile, token: settings.tokenFile,
  }
  return {
    clock, log,
    chance: Math.random,
    dialer: tlsDialer({ clock, authorities: () => readFile(settings.authorityFile, 'utf8') }),
    whispers: machineWhispers(clock, settings.bind),
    disk: diskIn(settings.state),
    // What cannot be read is undefined: whoever asked knows what that means for him.
    read: (file) => readFile(files[file], 'utf8').catch(() => undefined),
    podFolders: () => readdir(settings.podsFolder).catch(() => undefined),
    kubeletHealth: (span) => askHealth(settings.kubeletHealth, span),
    resolveReplicas: () => resolveAll(settings.replicas),
  }
}

/** Whole or not at all: written beside and renamed, so that a power cut leaves the old text or the new one. */
function diskIn(folder: string): Disk {
  return {
    load: (name) => readFile(join(folder, name), 'utf8').catch(() => undefined),
    async save(name, text) {
      await mkdir(folder, { recursive: true })
      const beside = join(folder, `${name}.new`)
      await writeFile(beside, text, { mode: 0o600 })
      await rename(beside, join(folder, name))
    },
  }
}

function askHealth(url: string, span: Ms): Promise<'ok' | 'ill' | 'unknown'> {
  return new Promise((resolve) => {
    const request = get(url, { agent: false }, (response) => {
      response.resume()
      end(response.statusCode === 200 ? 'ok' : 'ill')
    })
    const cancel = machineClock.after(span, () => end('ill'))
    const end = (word: 'ok' | 'ill'): void => {
      cancel()
      request.destroy()
      resolve(word)
    }
    // Refused: nothing listens where kubelet tells its health; it may be set up otherwise, and nothing follows from it.
    request.on('error', (error) => {
      cancel()
      resolve('code' in error && error.code === 'ECONNREFUSED' ? 'unknown' : 'ill')
    })
  })
}

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
