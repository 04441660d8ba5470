// No memory of ours, or of a fence program, is written to a disk by a crash: it holds the secrets of devices. Whoever we start
// inherits both of what is done here. The limit keeps the kernel from writing a core; Node has no call for it, so prlimit, which
// stands in the image for this, lowers it for the process that asks. A kernel that pipes its cores into a program
// (core_pattern with `|`) pays no heed to that limit, so what a core would hold is kept empty too.
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'

const filter = '/proc/self/coredump_filter'
const prlimit = '/usr/bin/prlimit'

/** What could not be had of it, each in a sentence. */
export function refuseCoreDumps(): readonly string[] {
  return [
    ...(isEmpty() ? [] : ['a core that is piped into a program may hold the memory of this process, secrets of devices included']),
    ...(isLimited() ? [] : ['a crash may write a core of this process: its limit could not be lowered']),
  ]
}

function isEmpty(): boolean {
  try {
    writeFileSync(filter, '0')
    return Number.parseInt(readFileSync(filter, 'utf8'), 16) === 0
  } catch {
    return false // no Linux, or a kernel that never writes cores
  }
}

function isLimited(): boolean {
  try {
    execFileSync(prlimit, ['--core=0:0', '--pid', String(process.pid)], { stdio: 'ignore' })
    return /^Max core file size +0 +0 /m.test(readFileSync('/proc/self/limits', 'utf8'))
  } catch {
    return false // no Linux, or no prlimit where it is run by hand
  }
}
