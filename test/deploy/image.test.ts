import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { writeImage, type ImageSettings } from '../../deploy/image.ts'

const test = suite('image')
const settings: ImageSettings = { name: 'example.test/thing:7', architecture: 'amd64', entrypoint: ['/thing'], user: '65532:65532', path: '/' }

async function inFolder(run: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-image-'))
  try {
    await run(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function rootIn(folder: string): string {
  const root = join(folder, 'root')
  mkdirSync(join(root, 'bin'), { recursive: true })
  writeFileSync(join(root, 'bin', 'thing'), 'a program', { mode: 0o755 })
  symlinkSync('thing', join(root, 'bin', 'other'))
  return root
}

interface Descriptor { readonly digest: string; readonly size: number; readonly annotations?: Readonly<Record<string, string>> }

test('from the index every blob is found under its own digest, in its own size', () => inFolder(async (folder) => {
  const archive = join(folder, 'deep', 'thing.tar')
  const digest = await writeImage(rootIn(folder), archive, settings)
  const layout = join(folder, 'layout')
  mkdirSync(layout)
  execFileSync('tar', ['-xf', archive, '-C', layout])
  const blob = ({ digest: name, size }: Descriptor): string => {
    const file = join(layout, 'blobs', 'sha256', name.replace('sha256:', ''))
    const bytes = readFileSync(file)
    assert.is(`sha256:${createHash('sha256').update(bytes).digest('hex')}`, name)
    assert.is(bytes.length, size)
    return file
  }
  const { manifests: [first] } = JSON.parse(readFileSync(join(layout, 'index.json'), 'utf8')) as { manifests: Descriptor[] }
  if (first === undefined) return assert.unreachable('no manifest')
  assert.is(first.digest, digest)
  assert.is(first.annotations?.['io.containerd.image.name'], 'example.test/thing:7')
  assert.is(first.annotations?.['org.opencontainers.image.ref.name'], '7')
  const manifest = JSON.parse(readFileSync(blob(first), 'utf8')) as { config: Descriptor; layers: [Descriptor] }
  const config = JSON.parse(readFileSync(blob(manifest.config), 'utf8')) as { rootfs: { diff_ids: string[] }; config: Record<string, unknown> }
  assert.equal(config.rootfs.diff_ids, [manifest.layers[0].digest])
  assert.equal(config.config, { Entrypoint: ['/thing'], User: '65532:65532', Env: ['PATH=/'], WorkingDir: '/' })
  const listed = execFileSync('tar', ['-tvf', blob(manifest.layers[0]), '--numeric-owner'], { encoding: 'utf8' })
  assert.match(listed, /^-rwxr-xr-x 0\/0 .* \.\/bin\/thing$/m)
  assert.match(listed, /^lrwxrwxrwx 0\/0 .* \.\/bin\/other -> thing$/m)
  assert.equal(readdirSync(join(folder, 'deep')), ['thing.tar'])
}))

test('the same files give the same digest, whenever they were written', () => inFolder(async (folder) => {
  const root = rootIn(folder)
  const first = await writeImage(root, join(folder, 'one.tar'), settings)
  utimesSync(join(root, 'bin', 'thing'), 1_000, 1_000)
  assert.is(await writeImage(root, join(folder, 'two.tar'), settings), first)
  assert.ok(readFileSync(join(folder, 'one.tar')).equals(readFileSync(join(folder, 'two.tar'))))
  writeFileSync(join(root, 'bin', 'thing'), 'b program')
  assert.is.not(await writeImage(root, join(folder, 'three.tar'), settings), first)
}))

test.run()
