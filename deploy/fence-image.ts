// The second image: the product, and beside it the fence programs of ClusterLabs with their Python, and the tools of others that programs of ours call (ipmitool). For
// the coordinator alone, and only where one of these is wanted: it is several times as large, and none of it is ours.
import { execFileSync } from 'node:child_process'
import { existsSync, globSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { arch } from 'node:process'
import { closureOf, unpackedPackages } from './debian.ts'
import { writeImage } from './image.ts'
import { architectures, fullName, settings, type Architecture } from './images.ts'

export const fenceImage = 'holdfast-fence-agents:0.1.0'

const wanted = ['fence-agents', 'python3', 'ipmitool', 'snmp', 'openssh-client', 'inetutils-telnet', 'sg3-utils', 'ca-certificates', 'dash']
/** What only an installation asks for, and Perl, in which none of these programs is written. */
const leftOut = new Set(['adduser', 'cdebconf', 'debconf', 'debianutils', 'dpkg', 'init-system-helpers', 'install-info', 'netbase', 'passwd', 'perl', 'perl-base', 'libperl5.36', 'libfile-find-rule-perl', 'usrmerge', 'usr-is-merged', 'tar'])
const unread = ['doc', 'man', 'locale', 'lintian', 'bug', 'info', 'perl5', 'applications', 'pixmaps']

export const fenceArchive = (dist: string): string => join(dist, 'fence-image', 'holdfast-fence-agents.tar')

/** From what `buildImage` has laid out. */
export async function buildFenceImage(dist: string, say: (line: string) => void): Promise<void> {
  const architecture = architectures[arch]
  if (architecture === undefined) throw new Error(`there is no image for ${arch}: only for ${Object.keys(architectures).join(' and ')}`)
  const root = join(dist, 'fence-image', 'root')
  rmSync(join(dist, 'fence-image'), { recursive: true, force: true })
  mkdirSync(root, { recursive: true })
  layOver(join(dist, 'image', 'root'), root)
  layOver(unpackedPackages(closureOf(wanted, leftOut), 'fence-agents'), root)
  for (const folder of unread) rmSync(join(root, 'usr/share', folder), { recursive: true, force: true })
  finish(root)
  mustRun(root, architecture)
  const digest = await writeImage(root, fenceArchive(dist), { ...settings, name: fullName(fenceImage), architecture: architecture.name })
  say(`image    ${fullName(fenceImage)} ${digest}`)
}

function layOver(from: string, root: string): void {
  execFileSync('cp', ['--archive', '--remove-destination', `${from}/.`, root], { stdio: 'pipe' })
}

/** What the packages' own scripts would have done, were they installed. */
function finish(root: string): void {
  const link = (to: string, at: string): void => {
    if (!existsSync(join(root, at))) symlinkSync(to, join(root, at))
  }
  mkdirSync(join(root, 'bin'), { recursive: true })
  link('dash', 'bin/sh')
  link('inetutils-telnet', 'usr/bin/telnet')
  const authorities = globSync(join(root, 'usr/share/ca-certificates/**/*.crt')).toSorted()
  mkdirSync(join(root, 'etc/ssl/certs'), { recursive: true })
  writeFileSync(join(root, 'etc/ssl/certs/ca-certificates.crt'), authorities.map((file) => readFileSync(file, 'utf8')).join(''), { mode: 0o644 })
}

/** Called by name, by our programs and by theirs. */
export const fenceTools = ['ipmitool', 'snmpget', 'ssh']

/** With the image's own loader, libraries and Python alone, as it will be in a container. */
function mustRun(root: string, { loader, libraries }: Architecture): void {
  const start = (words: readonly string[], environment: Readonly<Record<string, string>> = {}): string => (
    execFileSync(join(root, loader), ['--library-path', [libraries, join('/usr', libraries)].map((folder) => join(root, folder)).join(':'), ...words], { encoding: 'utf8', env: environment, stdio: ['ignore', 'pipe', 'pipe'] })
  )
  for (const tool of fenceTools) {
    const program = settings.path.split(':').map((folder) => join(root, folder, tool)).find(existsSync)
    if (program === undefined) throw new Error(`${tool} is in no folder of ${settings.path}, where programs look for it`)
    start([program, '-V'])
  }
  const python = { PYTHONHOME: join(root, 'usr'), PYTHONPATH: join(root, 'usr/share/fence'), PYTHONDONTWRITEBYTECODE: '1' }
  for (const program of ['fence_ipmilan', 'fence_redfish', 'fence_apc_snmp', 'fence_aws']) {
    const said = start([join(root, 'usr/bin/python3'), join(root, 'usr/sbin', program), '-o', 'metadata'], python)
    if (!said.includes('<resource-agent')) throw new Error(`${program} does not run in the image: ${said.slice(0, 200)}`)
  }
}
