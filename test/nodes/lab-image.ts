// The one image of the lab beside the product's: busybox under all its names, for writers and for the sandboxes of pods, and the
// CSI driver, of which a pod runs the node half.
import { copyFileSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { arch } from 'node:process'
import { writeImage } from '../../deploy/image.ts'
import { command } from './command.ts'

export const labImage = 'holdfast.test/lab:1'

export async function writeLabImage(binaries: string, folder: string, archive: string): Promise<void> {
  const root = join(folder, 'lab-image')
  const bin = join(root, 'bin')
  for (const one of ['bin', 'tmp', 'proc', 'sys', 'dev', 'etc']) mkdirSync(join(root, one), { recursive: true })
  for (const program of ['busybox', 'csi-driver']) copyFileSync(join(binaries, program), join(bin, program))
  const applets = (await command(join(binaries, 'busybox'), ['--list'])).split('\n').filter((name) => name !== '' && name !== 'busybox')
  for (const applet of applets) symlinkSync('busybox', join(bin, applet))
  // A sandbox only has to be there.
  await writeImage(root, archive, { name: labImage, architecture: arch === 'arm64' ? 'arm64' : 'amd64', entrypoint: ['/bin/sleep', 'infinity'], user: '0:0', path: '/bin' })
}
