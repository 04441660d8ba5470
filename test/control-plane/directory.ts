import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export type Directory = Readonly<{ path: string; release(): Promise<void> }>

/** The caller's own directory, which stays; or a temporary one, which goes when released or when we die. */
export async function claimDirectory(wanted: string | undefined): Promise<Directory> {
  if (wanted === undefined) return temporary()
  mkdirSync(wanted, { recursive: true, mode: 0o700 })
  // Old data would meet new certificates and a new service account key, and fail in strange ways.
  if (readdirSync(wanted).length > 0) throw new Error(`${wanted} is not empty`)
  return { path: wanted, release: async () => {} }
}

// A child that waits for the end of its input, which comes when we close it and also when we are killed: etcd
// alone leaves 60 MB behind. It tries twice because the programs that write here are dying at the same moment.
const REMOVE = 'cd /; read -r nothing; rm -rf "$0" || { sleep 1; rm -rf "$0"; }'

async function temporary(): Promise<Directory> {
  const path = mkdtempSync(join(tmpdir(), 'holdfast-control-plane-'))
  // A session of its own, or Ctrl-C would end it before its work.
  const remover = spawn('sh', ['-c', REMOVE, path], { stdio: ['pipe', 'ignore', 'ignore'], detached: true })
  await once(remover, 'spawn')
  const { stdin } = remover
  assert(stdin !== null, 'its input is a pipe')
  const gone = once(remover, 'exit')
  const release = async (): Promise<void> => {
    stdin.end()
    await gone
  }
  return { path, release }
}
