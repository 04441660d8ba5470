// Files out of Debian's packages, without installing any: fetched by the machine's own apt-get, which checks their signatures.
import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { env } from 'node:process'

/** The folder into which the packages were unpacked, each with all of its files. Kept: the next build finds them there. */
export function unpackedPackages(packages: readonly string[]): string {
  const folder = join(env['HOLDFAST_CACHE'] || join(homedir(), '.cache', 'holdfast'), 'debian')
  const root = join(folder, 'root')
  mkdirSync(root, { recursive: true })
  for (const name of packages) {
    const there = archiveOf(folder, name)
    if (there === undefined) execFileSync('apt-get', ['download', name], { cwd: folder, stdio: 'pipe' })
    const archive = there ?? archiveOf(folder, name)
    if (archive === undefined) throw new Error(`apt-get did not fetch ${name}`)
    execFileSync('dpkg-deb', ['-x', join(folder, archive), root], { stdio: 'pipe' })
  }
  return root
}

function archiveOf(folder: string, name: string): string | undefined {
  return readdirSync(folder).find((file) => file.startsWith(`${name}_`) && file.endsWith('.deb'))
}
