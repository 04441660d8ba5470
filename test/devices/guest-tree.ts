// What a machine has beyond the smallest system: a folder, laid over it in memory when it boots.
import { execFileSync, spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { installed } from './rack.ts'

/** A program with the libraries that it is linked with. */
export function place(tree: string, program: string, to: string): void {
  copyFileSync(program, to)
  for (const [library] of execFileSync('ldd', [program], { encoding: 'utf8' }).matchAll(/\/lib\S+/g)) {
    if (existsSync(join(tree, library))) continue
    mkdirSync(dirname(join(tree, library)), { recursive: true })
    copyFileSync(library, join(tree, library))
  }
}

export function pack(tree: string, initrd: string): void {
  const packed = spawnSync('sh', ['-c', `{ zcat ${join(installed('initrd'), 'initrd.gz')}; cd ${tree} && find . | cpio -o -H newc --quiet; } > ${initrd}`], { encoding: 'utf8' })
  if (packed.status !== 0) throw new Error(packed.stderr)
}
