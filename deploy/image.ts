// An OCI image from one root folder, without a container engine: one layer, a configuration, an index, as one archive that
// `ctr images import`, `skopeo copy oci-archive:` and `podman load` read. The same folder gives the same bytes, so a digest
// names what is inside and not when it was built.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { createReadStream, mkdirSync, mkdtempSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

export interface ImageSettings {
  /** In full, with its registry and tag, as the runtime will look for it: `docker.io/library/holdfast:0.1.0`. */
  readonly name: string
  readonly architecture: 'amd64' | 'arm64'
  readonly entrypoint: readonly string[]
  /** Uid and gid, where a pod does not say. */
  readonly user: string
  readonly path: string
}

/** Writes the archive, and answers with the image's digest. */
export async function writeImage(root: string, archive: string, settings: ImageSettings): Promise<string> {
  mkdirSync(dirname(archive), { recursive: true })
  const layout = mkdtempSync(`${archive}-`)
  try {
    const blobs = join(layout, 'blobs', 'sha256')
    mkdirSync(blobs, { recursive: true })
    const layer = await storeLayer(root, blobs)
    const { architecture, entrypoint, user, path } = settings
    const config = storeText(blobs, {
      architecture, os: 'linux', rootfs: { type: 'layers', diff_ids: [layer.digest] },
      config: { Entrypoint: entrypoint, User: user, Env: [`PATH=${path}`], WorkingDir: '/' },
    })
    const manifest = storeText(blobs, {
      schemaVersion: 2, mediaType: `${media}.image.manifest.v1+json`,
      config: { mediaType: `${media}.image.config.v1+json`, ...config }, layers: [{ mediaType: `${media}.image.layer.v1.tar`, ...layer }],
    })
    writeFileSync(join(layout, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }))
    writeFileSync(join(layout, 'index.json'), JSON.stringify({
      schemaVersion: 2, mediaType: `${media}.image.index.v1+json`,
      manifests: [{
        mediaType: `${media}.image.manifest.v1+json`, ...manifest, platform: { architecture, os: 'linux' },
        annotations: { 'io.containerd.image.name': settings.name, 'org.opencontainers.image.ref.name': settings.name.slice(settings.name.lastIndexOf(':') + 1) },
      }],
    }))
    pack(layout, `${archive}.new`)
    // A rename is whole or not at all: nobody ever imports half an image.
    renameSync(`${archive}.new`, archive)
    return manifest.digest
  } finally {
    rmSync(layout, { recursive: true, force: true })
  }
}

const media = 'application/vnd.oci'

interface Blob {
  readonly digest: string
  readonly size: number
}

async function storeLayer(root: string, blobs: string): Promise<Blob> {
  const file = join(blobs, 'layer')
  pack(root, file)
  const hash = createHash('sha256')
  for await (const piece of createReadStream(file)) hash.update(piece as Buffer) // without an encoding a stream of a file gives buffers
  const digest = hash.digest('hex')
  renameSync(file, join(blobs, digest))
  return { digest: `sha256:${digest}`, size: statSync(join(blobs, digest)).size }
}

function storeText(blobs: string, value: object): Blob {
  const text = JSON.stringify(value)
  const digest = createHash('sha256').update(text).digest('hex')
  writeFileSync(join(blobs, digest), text)
  return { digest: `sha256:${digest}`, size: Buffer.byteLength(text) }
}

/** Everything root's and of one age, in one order. */
function pack(folder: string, file: string): void {
  execFileSync('tar', ['--create', '--file', file, '--directory', folder, '--sort=name', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner', '--format=ustar', '.'], { stdio: 'pipe' })
}
