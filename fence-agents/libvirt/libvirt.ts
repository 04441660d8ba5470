#!/usr/bin/env node
// Power of a virtual machine of libvirt, through virsh. Off is that libvirt itself says `shut off` for a reason that ends the
// machine, and keeps no image of its memory: what was saved goes on in its old boot when it is started, and what was migrated
// goes on elsewhere. Programs elsewhere take all that is not running for off, a crashed or sleeping machine too.
import { Failure, pollUntil, runAgent, type AgentDescription, type DeviceWord, type Given, type Reason } from '../contract.ts'
import { lastLine } from '../last-word.ts'
import { runTool } from '../tool.ts'

export const agent: AgentDescription = {
  name: 'libvirt',
  says: 'Switches a virtual machine of libvirt, by virsh (which must be installed). Tells the UUID of the machine, so that the path can be proven to end at it.',
  vendor: 'https://libvirt.org',
  parameters: [
    { name: 'uri', says: 'The hypervisor, as qemu+ssh://root@HOST/system?keyfile=/FILE, qemu+tls://HOST/system or qemu:///system', type: 'string', required: true },
    { name: 'plug', says: 'The machine: its UUID, or its name', type: 'string', required: true, obsoletes: 'port', short: 'n' },
    { name: 'never_moved', says: 'Machines of this hypervisor are never migrated: then one that is shut off for a reason that libvirt has forgotten is off too', type: 'boolean' },
    { name: 'shell_timeout', says: 'For each answer of virsh, the login on the hypervisor\'s host included', type: 'second', default: '8' },
    { name: 'power_timeout', says: 'From the order until the power must have changed. libvirt itself gives qemu 15 s before it uses force', type: 'second', default: '20' },
  ],
  check(given) {
    uriOf(given)
    plugOf(given)
  },
  status: async (given) => wordOf(await domainOf(given), given),
  off: (given) => order(given, 'off'),
  on: (given) => order(given, 'on'),
  list,
}

interface Domain {
  readonly uuid: string
  /** As `virsh domstate --reason` says it. */
  readonly state: string
  readonly reason: string
  readonly saved: 'yes' | 'no' | 'unknown'
}

async function order(given: Given, want: 'on' | 'off'): Promise<DeviceWord> {
  const before = await domainOf(given)
  const word = wordOf(before, given)
  if (word.state === want) return word
  // A start of what was saved would not boot it but wake it, in its old boot.
  if (want === 'on' && word.state !== 'off') throw new Failure('device', `${word.evidence}: ${before.reason === 'migrated' || before.reason === 'unknown' ? 'it may run elsewhere' : 'that is not started, but woken'}`)
  // libvirt answers when it has done it, or has lost its patience with qemu.
  await virsh(given, want === 'off' ? ['destroy', before.uuid] : ['start', before.uuid], given.ms('shell_timeout') + given.ms('power_timeout'))
  return pollUntil(want, given, given.ms('power_timeout'), async () => {
    try {
      return wordOf(await domainOf(given), given)
    } catch (error) {
      // One lost answer while the machine changes its power is common; the poll ends by its own time.
      return { state: 'unknown', evidence: error instanceof Error ? error.message : 'no answer' }
    }
  })
}

async function domainOf(given: Given): Promise<Domain> {
  const uuid = await uuidOf(given)
  const [, state = '', reason = ''] = /^([a-z ]+?)(?: \(([a-z ]+)\))?$/.exec((await virsh(given, ['domstate', '--reason', uuid])).trim()) ?? []
  const info = await virsh(given, ['dominfo', uuid])
  const told = new Map(info.split('\n').map((line) => [line.slice(0, line.indexOf(':')).trim(), line.slice(line.indexOf(':') + 1).trim()]))
  if (told.get('UUID')?.toLowerCase() !== uuid) throw new Failure('device', 'virsh tells of another machine than it was asked for')
  const saved = told.get('Managed save')
  return { uuid, state, reason, saved: saved === 'yes' || saved === 'no' ? saved : 'unknown' }
}

const uuidForm = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** A machine of this name is only asked for once: a name may be given to another one, a UUID may not. */
async function uuidOf(given: Given): Promise<string> {
  const plug = plugOf(given)
  if (uuidForm.test(plug.toLowerCase())) return plug.toLowerCase()
  const uuid = (await virsh(given, ['domuuid', plug])).trim().toLowerCase()
  if (!uuidForm.test(uuid)) throw new Failure('device', `virsh tells no UUID for ${JSON.stringify(plug)}`)
  return uuid
}

/** What `shut off` may be for. Not *saved* and *migrated*; and *unknown*, which libvirt says of all that it finds when it starts
 *  anew, may have been either. */
const ends: ReadonlySet<string> = new Set(['destroyed', 'shutdown', 'failed', 'crashed'])

function wordOf({ uuid, state, reason, saved }: Domain, given: Given): DeviceWord {
  const evidence = `${state === '' ? 'no state' : state}${reason === '' ? '' : ` (${reason})`}${saved === 'no' ? '' : `, managed save: ${saved}`}, UUID ${uuid}`
  const of = { evidence, machine: uuid }
  if (state === 'running' || state === 'idle' || state === 'blocked') return { state: 'on', ...of }
  const ended = ends.has(reason) || (reason === 'unknown' && given.yes('never_moved'))
  if (state === 'shut off' && ended && saved === 'no') return { state: 'off', ...of }
  return { state: 'unknown', reason: state === 'in shutdown' ? 'busy' : 'device', ...of }
}

async function list(given: Given): Promise<readonly { plug: string; name: string }[]> {
  const rows = (await virsh(given, ['list', '--all', '--uuid', '--name'])).split('\n').map((row) => row.trim()).filter((row) => row !== '')
  return rows.map((row) => ({ plug: row.split(/\s+/)[0] ?? '', name: row.split(/\s+/).slice(1).join(' ') }))
}

const uriForm = /^qemu(\+(ssh|libssh2?|tls|unix))?:\/\/[^\s]*$/
/** With these a URI names a program to run, or lets anybody answer for the hypervisor. */
const refusedInUri: readonly (readonly [string, RegExp])[] = [['command', /^/], ['netcat', /^/], ['no_verify', /[^0]/], ['known_hosts_verify', /^(?!normal$)/]]

function uriOf(given: Given): string {
  const text = given.text('uri')
  const url = uriForm.test(text) ? URL.parse(text) : null
  if (url === null) throw new Failure('config', 'uri= is not of the form qemu+ssh://USER@HOST/system')
  for (const [key, wrong] of refusedInUri) {
    if ([...url.searchParams].some(([name, value]) => name.toLowerCase() === key && wrong.test(value))) throw new Failure('config', `uri= has ${key}=, which is not taken`)
  }
  // virsh takes the URI as an argument, and everybody on this machine may read those.
  if (url.password !== '') throw new Failure('config', 'uri= has a password in it: libvirt takes it from a file, authfile=')
  if (/^-|%2d/i.test(url.hostname) || /^(-|%2d)/i.test(url.username)) throw new Failure('config', 'uri= names a host or a user that looks like an option')
  if (!/^qemu\+(ssh|libssh2?):/.test(text) || url.searchParams.has('no_tty')) return text
  // Else a password is asked for, where nobody sits.
  return `${text}${text.includes('?') ? '&' : '?'}no_tty=1`
}

function plugOf(given: Given): string {
  const plug = given.text('plug')
  // virsh takes a bare number for the number of a running machine, which is another one tomorrow.
  if (!/^[A-Za-z0-9][A-Za-z0-9_.+:@-]{0,254}$/.test(plug) || /^\d+$/.test(plug)) throw new Failure('config', 'plug= is neither a UUID nor a name of a machine')
  return plug
}

async function virsh(given: Given, words: readonly string[], patience = given.ms('shell_timeout')): Promise<string> {
  const end = await runTool('virsh', { words: ['-q', '-c', uriOf(given), ...words], within: Math.max(1, Math.min(patience, given.left())) })
  if (end.code === 0) return end.output
  const said = lastError(end.errors)
  const [, reason] = causes.find(([pattern]) => pattern.test(end.errors)) ?? []
  throw new Failure(reason ?? 'device', `virsh ${words[0] ?? ''}: ${said === '' ? `ended with ${end.code ?? 'a signal'} and no reason` : said}`)
}

function lastError(errors: string): string {
  return lastLine(errors.split('\n').filter((line) => line.startsWith('error:')).join('\n')) || lastLine(errors)
}

const causes: readonly (readonly [RegExp, Reason])[] = [
  [/Host key verification failed|certificate/i, 'config'],
  [/Permission denied|authentication failed/i, 'auth'],
  [/failed to get domain|Domain not found|no domain with matching/i, 'notfound'],
  [/access denied|operation .* forbidden|read only access/i, 'privilege'],
  [/Connection refused|Connection reset|timed out|No route to host|Could not resolve|unable to connect|failed to connect|End of file|Cannot recv data|No such file or directory/i, 'unreachable'],
  [/cannot acquire state change lock|Resource temporarily unavailable/i, 'busy'],
]

// Last, so that every constant above has its value when the program begins.
if (import.meta.main) await runAgent(agent)
