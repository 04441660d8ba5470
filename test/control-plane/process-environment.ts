// What a process of this machine was started with: by that a fence program is known by its attempt.
import { readFileSync } from 'node:fs'

export function environmentOf(pid: number): readonly string[] {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0')
  } catch {
    return [] // it has ended, or is not ours to look at
  }
}
