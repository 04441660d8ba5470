// What each process below this one shows to whoever looks at it: its arguments, which everybody on the machine can read, and its
// environment, which its owner can.
import { readFileSync, readdirSync } from 'node:fs'

export interface Overheard {
  /** All that was seen. Ends the listening. */
  end(): readonly { readonly place: Place; readonly text: string }[]
  /** Of which programs argument lists were seen. */
  readonly programs: ReadonlySet<string>
}

type Place = 'argument list' | 'environment'

const lookEvery = 5
const files = [['argument list', 'cmdline'], ['environment', 'environ']] as const satisfies readonly (readonly [Place, string])[]

export function overhear(): Overheard {
  const seen = new Map<string, { readonly place: Place; readonly text: string }>()
  const programs = new Set<string>()
  const looks = setInterval(() => {
    for (const pid of below(process.pid)) {
      for (const [place, file] of files) {
        const words = read(`/proc/${pid}/${file}`)
        if (words === '') continue
        seen.set(`${place} ${words}`, { place, text: words.replaceAll('\0', ' ') })
        if (place === 'argument list') for (const word of words.split('\0')) programs.add(word.slice(word.lastIndexOf('/') + 1))
      }
    }
  }, lookEvery)
  return {
    programs,
    end() {
      clearInterval(looks)
      return [...seen.values()]
    },
  }
}

function below(pid: number): readonly number[] {
  const own = children(pid)
  return [...own, ...own.flatMap(below)]
}

function children(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((task) => read(`/proc/${pid}/task/${task}/children`).split(' ').filter((word) => word !== '').map(Number))
  } catch {
    return [] // it has just ended
  }
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return '' // likewise
  }
}
