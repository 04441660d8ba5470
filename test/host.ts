// Runs test files one after the other in one process, and says before each which it is: test/run.ts counts behind those lines.
// Where several processes share the files, each takes those that no other has taken: by making a folder, which only one can.
// Files of one part of the product share what costs the most, its modules and the machine code they become.
import { mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { argv, env, stdout } from 'node:process'
import { pathToFileURL } from 'node:url'

/** What uvu keeps where every copy of it finds it: the suites that wait, and that somebody else will run them. */
const uvu = globalThis as typeof globalThis & { UVU_DEFER?: 1; UVU_QUEUE?: unknown[][] }
uvu.UVU_DEFER = 1
const { exec } = await import('uvu')

/** What one file could leave behind for the next to lean on, or to be silenced by. */
const surroundings = (): string => JSON.stringify([{ ...env }, ['uncaughtException', 'unhandledRejection'].map((what) => process.listenerCount(what))])

const [claims = '', ...files] = argv.slice(2)
for (const [index, file] of files.entries()) {
  try {
    mkdirSync(join(claims, String(index)))
  } catch {
    continue // another process has it
  }
  uvu.UVU_QUEUE = [[null]]
  const before = surroundings()
  stdout.write(`\n== ${file}\n`)
  await import(pathToFileURL(resolve(file)).href)
  await exec()
  if (surroundings() !== before) throw new Error(`${file} leaves the environment or the process's listeners changed`)
}
stdout.write('\n== end\n')
