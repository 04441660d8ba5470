// Where the lab lives: namespaces that test/nodes/run.ts has made for it, a folder that goes with them, and a name for its control
// groups. Outside of a room nothing here may start: it would change the network of this computer.
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { env } from 'node:process'

export interface Room {
  readonly folder: string
  readonly lab: string
}

export const roomVariable = 'HOLDFAST_NODES_ROOM'

export function room(): Room | undefined {
  const told = env[roomVariable]
  return told === undefined ? undefined : JSON.parse(told) as Room // written by run.ts alone
}

export function theRoom(): Room {
  const here = room()
  if (here === undefined) throw new Error('real nodes run in a room of their own: npm run test:nodes -- FILE')
  return here
}

const toldIn = (folder: string): string => join(folder, 'told')

/** A line that is shown though every test passes: a time that was measured. */
export function say(line: string): void {
  console.log(line)
  appendFileSync(toldIn(theRoom().folder), `${line}\n`)
}

/** All that was said so far. */
export function said(): string {
  const file = toldIn(theRoom().folder)
  return existsSync(file) ? readFileSync(file, 'utf8') : ''
}
