// Files out of Debian's packages, without installing any: fetched by the machine's own apt-get, which checks their signatures.
import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { env } from 'node:process'

/** The packages with all that they depend on, but for what `leftOut` names and what only that needs. */
export function closureOf(packages: readonly string[], leftOut: ReadonlySet<string>): readonly string[] {
  const found = new Set<string>()
  for (let next = packages; next.length > 0;) {
    for (const name of next) found.add(name)
    const told = execFileSync('apt-cache', ['depends', '--no-recommends', '--no-suggests', '--no-conflicts', '--no-breaks', '--no-replaces', '--no-enhances', ...next], { encoding: 'utf8' })
    // Of a choice all are taken. What stands in angle brackets is no package, and whoever needs one of those that provide it names that one.
    const wanted = told.split('\n').flatMap((line) => /^ +\|?(?:Pre)?Depends: ([a-z0-9][^\s:]*)/.exec(line)?.[1] ?? [])
    next = [...new Set(wanted)].filter((name) => !found.has(name) && !leftOut.has(name))
  }
  return [...found].toSorted()
}

/** The folder into which the packages were unpacked, each with all of its files. Kept: the next build finds them there. */
export function unpackedPackages(packages: readonly string[], into = 'root'): string {
  const folder = join(env['HOLDFAST_CACHE'] || join(homedir(), '.cache', 'holdfast'), 'debian')
  const root = join(folder, into)
  mkdirSync(root, { recursive: true })
  const missing = packages.filter((name) => archiveOf(folder, name) === undefined)
  if (missing.length > 0) fetchInto(folder, missing)
  for (const name of packages) {
    const archive = archiveOf(folder, name)
    if (archive === undefined) throw new Error(`apt-get did not fetch ${name}`)
    execFileSync('dpkg-deb', ['-x', join(folder, archive), root], { stdio: 'pipe' })
  }
  return root
}

/** Lists of a while ago name archives that are gone. */
function fetchInto(folder: string, packages: readonly string[]): void {
  const apt = (...words: readonly string[]): unknown => execFileSync('apt-get', words, { cwd: folder, stdio: 'pipe' })
  try {
    apt('download', ...packages)
  } catch {
    apt('update')
    apt('download', ...packages)
  }
}

function archiveOf(folder: string, name: string): string | undefined {
  return readdirSync(folder).find((file) => file.startsWith(`${name}_`) && file.endsWith('.deb'))
}
