// Two releases that differ: this one, and a next minor of it. That one is this tree with what a minor may add put into its text: a policy
// field, a field of a NodeFence's status and of a NodeRecord, a reason to hold, and on the wire fields, bytes and a word.
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { startAgent } from '../../agent/agent.ts'
import type { KubeObject } from '../../coordinator/api.ts'
import { startCoordinator } from '../../coordinator/coordinator.ts'
import { customResourceDefinitions } from '../../deploy/crd.ts'

export interface Release {
  readonly startCoordinator: typeof startCoordinator
  readonly startAgent: typeof startAgent
  readonly kinds: readonly KubeObject[]
}

export const thisRelease: Release = { startCoordinator, startAgent, kinds: customResourceDefinitions() as unknown as readonly KubeObject[] } // as a person would apply them

/** What the next one knows and this one does not. */
export const news = { hold: 'cooling', field: 'weather' } as const

interface Edit {
  readonly file: string
  readonly of: string
  readonly to: string
}

const edits: readonly Edit[] = [
  { file: 'coordinator/holdfast-policy.ts', of: 'export const policyFields = {', to: `export const policyFields = { ${added('In which one acts.')}` },
  { file: 'coordinator/holdfast-policy.ts', of: '    ...(pause === undefined ?', to: `    ...(policy.${news.field} === undefined ? {} : { ${news.field}: policy.${news.field} }),\n    ...(pause === undefined ?` },
  { file: 'coordinator/node-fence-status.ts', of: 'const reasons: Record<HoldReason, string> = {', to: `const reasons: Record<HoldReason, string> = { ${news.hold}: 'the machine is hot',` },
  { file: 'coordinator/node-record.ts', of: "    nodeUid: text('UID of the Node object.', 128),", to: `    ${added('What it was like there.')}\n    nodeUid: text('UID of the Node object.', 128),` },
  { file: 'coordinator/node-record.ts', of: '    nodeUid, boot, machine, summary:', to: `    ${news.field}: 'fine', nodeUid, boot, machine, summary:` },
  {
    file: 'core/decide.ts', of: 'for (const incident of on.open.values()) actions.push(...proceed(on, incident))',
    to: `for (const incident of on.open.values()) actions.push(...proceed(on, incident), hold(incident.nodeName, { because: '${news.hold}', detail: 'it is hot', lifts: 'a breeze' }, incident))`,
  },
  { file: 'core/timeline.ts', of: "at, 'adopted',", to: "at, 'taken over'," },
  { file: 'core/frame.ts', of: 'return beatFrame(word)', to: 'return Uint8Array.of(...beatFrame(word), 9)' },
  { file: 'core/frame.ts', of: 'return permitFrame(word)', to: 'return Uint8Array.of(...permitFrame(word), 9)' },
  { file: 'core/frame.ts', of: '  return utf8.encode(JSON.stringify(word))\n}\n\n/** As many frames as the word', to: `  return utf8.encode(JSON.stringify({ ...word, ${news.field}: 'fine' }))\n}\n\n/** As many frames as the word` },
  { file: 'agent/links.ts', of: '    opened(line)', to: `    link.send(new TextEncoder().encode('{"say":"${news.field}"}'))\n    opened(line)` },
]

function added(says: string): string {
  return `${news.field}: v.exactOptional(text('${says}', 20)),`
}

export async function nextRelease(): Promise<Release> {
  return releaseAt(nextTree())
}

/** A copy of what the product is made of, and of whatever else is named, with the additions in its text. Goes with this process. */
export function nextTree(...others: readonly string[]): string {
  const from = join(import.meta.dirname, '../..')
  const root = mkdtempSync(join(tmpdir(), 'holdfast-next-'))
  process.once('exit', () => rmSync(root, { recursive: true, force: true }))
  for (const part of ['core', 'edge', 'coordinator', 'agent', 'deploy', 'package.json', ...others]) cpSync(join(from, part), join(root, part), { recursive: true })
  symlinkSync(join(from, 'node_modules'), join(root, 'node_modules'))
  for (const { file, of, to } of edits) {
    const text = readFileSync(join(root, file), 'utf8')
    if (text.split(of).length !== 2) throw new Error(`${file} does not have once: ${of}`)
    writeFileSync(join(root, file), text.replace(of, () => to))
  }
  return root
}

/** Whatever tree has the product's folders. */
export async function releaseAt(root: string): Promise<Release> {
  const part = async (file: string): Promise<Partial<Release> & { readonly customResourceDefinitions?: () => readonly KubeObject[] }> => await import(pathToFileURL(join(root, file)).href) as object // what the file exports is asked for below
  const [coordinator, agent, deploy] = await Promise.all(['coordinator/coordinator.ts', 'agent/agent.ts', 'deploy/crd.ts'].map(part))
  if (coordinator?.startCoordinator === undefined || agent?.startAgent === undefined || deploy?.customResourceDefinitions === undefined) throw new Error(`${root} holds no release`)
  return { startCoordinator: coordinator.startCoordinator, startAgent: agent.startAgent, kinds: deploy.customResourceDefinitions() }
}
