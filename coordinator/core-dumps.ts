// No memory of ours, or of a fence program, is written to a disk by a crash: it holds the secrets of devices. Node has no call for
// RLIMIT_CORE, and the image has no shell that could set it; but what a core may hold is this process's own to say, and whoever
// it starts inherits that.
import { readFileSync, writeFileSync } from 'node:fs'

const filter = '/proc/self/coredump_filter'

/** Whether it is so now. */
export function withoutCoreDumps(): boolean {
  try {
    writeFileSync(filter, '0')
    return Number.parseInt(readFileSync(filter, 'utf8'), 16) === 0
  } catch {
    return false // no Linux, or a kernel that never writes cores
  }
}
