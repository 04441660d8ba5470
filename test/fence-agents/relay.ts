// A person's script that switches two relays, which are files: a good one, or one that breaks where a test says.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Relay {
  readonly at: Readonly<Record<string, string>>
  /** The same, and what agent-test must know of it. */
  readonly params: Readonly<Record<string, string>>
  readonly environment: Readonly<Record<string, string>>
  /** What the script was told, run after run. */
  told(): string
  power(plug: string): string
}

/** Two relays in files. `off` and `status` are lines of shell in the place of the honest ones. */
export function relay({ folder }: { readonly folder: string }, { off = 'echo off > "$outlet"', status = 'case $(cat "$outlet") in on) exit 0 ;; off) exit 2 ;; *) exit 1 ;; esac' } = {}): Relay {
  const scripts = join(folder, 'scripts')
  mkdirSync(scripts, { mode: 0o755 })
  const program = join(scripts, 'relay')
  writeFileSync(program, [
    '#!/bin/sh', `folder=${folder}`, 'action= plug= password=', '[ $# -eq 0 ] || exit 1', `[ -e ${folder}/gone ] && { echo "no board" >&2; exit 1; }`,
    `while IFS= read -r line; do echo "$line" >> ${folder}/told; case $line in action=*) action=\${line#*=} ;; plug=*) plug=\${line#*=} ;; password=*) password=\${line#*=} ;; esac; done`,
    'outlet=$folder/outlet-$plug', '[ "$password" = "hush hush" ] || { echo "wrong password: $password" >&2; exit 1; }', '[ -e "$outlet" ] || { echo "no such relay" >&2; exit 1; }',
    'case $action in', 'on) echo on > "$outlet" ;;', `off) ${off} ;;`, `status) ${status} ;;`, '*) exit 1 ;;', 'esac', '',
  ].join('\n'), { mode: 0o755 })
  for (const plug of ['1', '2']) writeFileSync(join(folder, `outlet-${plug}`), 'on\n')
  const allowed = join(folder, 'allowed')
  writeFileSync(allowed, `# what may be run\n${program}\n`, { mode: 0o644 })
  const at = { program, plug: '1', password: 'hush hush', parameters: 'board=2 invert=0' }
  return {
    at, environment: { HOLDFAST_EXEC_ALLOWED: allowed },
    params: { ...at, other: '2', unknown: '9', 'wrong.password': 'guess', truth: `cat ${folder}/outlet-$PLUG`, gone: `touch ${folder}/gone`, back: `rm ${folder}/gone` },
    told: () => readFileSync(join(folder, 'told'), 'utf8'),
    power: (plug) => readFileSync(join(folder, `outlet-${plug}`), 'utf8').trim(),
  }
}
