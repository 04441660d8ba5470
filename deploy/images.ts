// `npm run build -- --images`: the product's image, without a container engine. What is in it stands in one folder, dist/image/root,
// from which deploy/Dockerfile makes the same: the programs that `npm run build` has bundled, Node as npm brings it, and the
// libraries that Node asks for, out of Debian's packages; nsenter, by which an agent that cleans up reaches the programs of its host; and
// prlimit, by which a coordinator refuses core dumps. Nothing else: no shell, no package manager.
import { execFileSync } from 'node:child_process'
import { chmodSync, copyFileSync, existsSync, globSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { arch } from 'node:process'
import { unpackedPackages } from './debian.ts'
import { writeImage } from './image.ts'
import { usualValues } from './values.ts'

export interface Architecture {
  readonly name: 'amd64' | 'arm64'
  readonly libraries: string
  /** What the kernel looks for to start Node at all. */
  readonly loader: string
}

export const architectures: Readonly<Record<string, Architecture>> = {
  x64: { name: 'amd64', libraries: '/lib/x86_64-linux-gnu', loader: '/lib64/ld-linux-x86-64.so.2' },
  arm64: { name: 'arm64', libraries: '/lib/aarch64-linux-gnu', loader: '/lib/ld-linux-aarch64.so.1' },
}

const packages = ['libc6', 'libstdc++6', 'libgcc-s1', 'libatomic1', 'util-linux', 'libselinux1', 'libpcre2-8-0', 'libsmartcols1']
const libraries = ['libc.so.6', 'libm.so.6', 'libdl.so.2', 'libpthread.so.0', 'libstdc++.so.6', 'libgcc_s.so.1', 'libatomic.so.1', 'libselinux.so.1', 'libpcre2-8.so.0', 'libsmartcols.so.1']

const tools = ['nsenter', 'prlimit']

/** The path is also where fence programs look for the tools of others that the second image brings, and Debian's packages put those into the usual folders. */
export const settings = { entrypoint: ['/holdfast/node'], user: '65532:65532', path: '/holdfast:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' }

/** What a runtime takes the short name in the manifests for. */
export const fullName = (image: string): string => `docker.io/library/${image}`

export const imageArchive = (dist: string): string => join(dist, 'image', 'holdfast.tar')

/** From what `npm run build` left in dist. */
export async function buildImage(dist: string, say: (line: string) => void): Promise<void> {
  const architecture = architectures[arch]
  if (architecture === undefined) throw new Error(`there is no image for ${arch}: only for ${Object.keys(architectures).join(' and ')}`)
  const root = join(dist, 'image', 'root')
  rmSync(join(dist, 'image'), { recursive: true, force: true })
  layOut(root, dist, architecture)
  mustStart(root, architecture)
  const digest = await writeImage(root, imageArchive(dist), { ...settings, name: fullName(usualValues.image), architecture: architecture.name })
  say(`image    ${fullName(usualValues.image)} ${digest}`)
}

/** What stands in dist/image already, once more under another name: what serves as another release. */
export async function renameImage(dist: string, image: string, archive: string): Promise<void> {
  await writeImage(join(dist, 'image', 'root'), archive, { ...settings, name: fullName(image), architecture: architectures[arch]?.name ?? 'amd64' })
}

function layOut(root: string, dist: string, { libraries: folder, loader }: Architecture): void {
  const node = join(dirname(import.meta.dirname), 'node_modules', `node-linux-${arch}`, 'bin', 'node')
  if (!existsSync(node)) throw new Error(`there is no ${node}: npm brings it as an optional dependency`)
  put(node, join(root, 'holdfast', 'node'), 0o755)
  for (const program of [...globSync(join(dist, '*.mjs')), ...globSync(join(dist, 'fence-agents', '*', '*.mjs'))]) {
    put(program, join(root, 'holdfast', program.slice(dist.length)), 0o644)
  }
  for (const file of globSync(join(dist, 'page', '*'))) put(file, join(root, 'holdfast', 'page', basename(file)), 0o644)
  const debian = unpackedPackages(packages)
  for (const library of libraries) put(found(debian, library), join(root, folder, library), 0o644)
  put(found(debian, basename(loader)), join(root, loader), 0o755)
  for (const tool of tools) put(found(debian, tool, '{bin,usr/bin}'), join(root, 'usr', 'bin', tool), 0o755)
  mkdirSync(join(root, 'etc'), { recursive: true })
  // Node asks who it is when it is asked for a home; without the line it has no answer.
  writeFileSync(join(root, 'etc', 'passwd'), 'root:x:0:0:root:/:/\nholdfast:x:65532:65532:holdfast:/:/\n', { mode: 0o644 })
  mkdirSync(join(root, 'tmp'))
  chmodSync(join(root, 'tmp'), 0o1777)
}

/** Links are followed: in the image each library is one file under the name that is asked for. */
function put(from: string, to: string, mode: number): void {
  mkdirSync(dirname(to), { recursive: true, mode: 0o755 })
  copyFileSync(from, to)
  chmodSync(to, mode)
}

function found(debian: string, name: string, folders = '{lib,lib64,usr/lib,usr/lib64}/**'): string {
  const file = globSync(`${debian}/${folders}/${name}`)[0]
  if (file === undefined) throw new Error(`none of the packages ${packages.join(', ')} holds ${name}`)
  return file
}

/** With the image's own loader and libraries alone, as it will be in a container. */
function mustStart(root: string, { libraries: folder, loader }: Architecture): void {
  const start = join(root, loader)
  for (const program of [join(root, 'holdfast', 'node'), ...tools.map((tool) => join(root, 'usr', 'bin', tool))]) {
    const asked = execFileSync(start, ['--library-path', join(root, folder), '--list', program], { encoding: 'utf8' })
    const outside = asked.split('\n').flatMap((line) => / => (\S+)/.exec(line)?.[1] ?? []).filter((file) => !file.startsWith(root) && basename(file) !== basename(loader))
    if (outside.length > 0) throw new Error(`${basename(program)} asks for what is not in the image: ${outside.join(', ')}`)
    execFileSync(start, ['--library-path', join(root, folder), program, '--version'], { stdio: 'pipe' })
  }
}
