// Programs of the host, run in its own mount namespace, each in a child that can be left behind: a call that touches a file system whose
// disk or server is gone never comes back, and not even SIGKILL ends it. So nobody waits for it beyond its span, and nothing more is
// sent after the same thing while it hangs.
import { opendir, readdir, access } from 'node:fs/promises'
import { join } from 'node:path'
import type { StorageWord } from '../core/beat.ts'
import type { CleanUpStep } from '../core/clean-up.ts'
import type { Ms } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'

export type Ending = Exclude<CleanUpStep, { readonly do: 'stop' }>

/** Never lazily, never by force; without a look at the path itself, or a helper that would take one. */
const programs: Readonly<Record<Ending['do'], (step: Ending) => readonly string[]>> = {
  unmount: (step) => ['umount', '--no-canonicalize', '--internal-only', pathOf(step)],
  // And the folder around it, if that is empty too.
  remove: (step) => ['rmdir', '--ignore-fail-on-non-empty', pathOf(step), pathOf(step).slice(0, pathOf(step).lastIndexOf('/'))],
  detach: (step) => ['losetup', '--detach', `/dev/${step.do === 'detach' ? step.device : ''}`],
}

interface Failed {
  readonly hangs: boolean
  readonly fault: string
}

const mostHanging = 8
const longestWord = 300

export interface HostChildren {
  /** Undefined: it is done; else why it is not. */
  end(step: Ending, span: Ms): Promise<string | undefined>
  /** Whether the file system at the path answers. */
  answers(path: string, span: Ms): Promise<StorageWord>
}

/** `enter`: what comes before each program to bring it into the host's mount namespace; nothing where that is ours. */
export function hostChildren(clock: Clock, enter: readonly string[]): HostChildren {
  const hanging = new Set<string>()
  return {
    end: async (step, span) => (await run(programs[step.do](step), span))?.fault,
    async answers(path, span) {
      const failed = await run(['stat', '--file-system', '--format=%T', path], span)
      if (failed === undefined) return 'reached'
      // Where we may not enter the host nothing follows of its storage.
      return failed.hangs || failed.fault.startsWith('stat: ') ? 'unreached' : 'unknown'
    },
  }

  async function run(command: readonly string[], span: Ms): Promise<Failed | undefined> {
    const key = command.join(' ')
    if (hanging.has(key)) return { hangs: true, fault: 'an earlier child hangs at it' }
    if (hanging.size >= mostHanging) return { hangs: false, fault: `${hanging.size} children hang already` }
    hanging.add(key)
    // Where nothing was ever left over the module stays on the disk.
    const { spawn } = await import('node:child_process')
    const [program = '', ...input] = [...enter, ...command]
    return new Promise((resolve) => {
      let words = ''
      const child = spawn(program, input, { detached: true, stdio: ['ignore', 'ignore', 'pipe'], env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' } })
      const late = clock.after(span, () => {
        child.kill('SIGKILL')
        child.unref()
        child.stderr.destroy()
        resolve({ hangs: true, fault: `it did not end within ${span} ms` })
      })
      child.stderr.on('data', (piece: Buffer) => { words = (words + piece.toString()).slice(0, longestWord) })
      child.on('error', (error) => over(error.message))
      child.on('close', (code) => over(code === 0 ? undefined : words.trim().replaceAll(/\s+/g, ' ') || `it ended with ${code ?? 'a signal'}`))
      function over(fault: string | undefined): void {
        late()
        hanging.delete(key)
        resolve(fault === undefined ? undefined : { hangs: false, fault })
      }
    })
  }
}

function pathOf(step: Ending): string {
  return step.do === 'detach' ? '' : step.path
}

/** Folders for staging mounts that are empty and lack the file by which kubelet would know whose they are. Undefined: they cannot be read.
 *  `root`: kubelet's, as this process sees it. What is mounted on one is not looked into: whoever asked knows the mounts. */
export async function bareStagings(root: string, mounted: (folder: string) => boolean): Promise<readonly string[] | undefined> {
  const drivers = join(root, 'plugins', 'kubernetes.io', 'csi')
  try {
    const bare: string[] = []
    for (const driver of await readdir(drivers)) {
      for (const volume of await readdir(join(drivers, driver)).catch(() => [])) {
        const folder = join(drivers, driver, volume, 'globalmount')
        if (mounted(folder) || await access(join(drivers, driver, volume, 'vol_data.json')).then(() => true, () => false)) continue
        if (await isEmpty(folder)) bare.push(folder)
      }
    }
    return bare
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ENOENT' ? [] : undefined // without CSI there are none
  }
}

async function isEmpty(folder: string): Promise<boolean> {
  try {
    const entries = await opendir(folder)
    const first = await entries.read()
    await entries.close()
    return first === null
  } catch {
    return false // not there, or no folder
  }
}
