// `node test/devices/conformance.ts [DEVICE...]`: which clauses of the contract our agents and Debian's keep, each at the same
// device, by the tool of `npm run agent-test`. The table goes into docs/fence-agents.md, between its two marks; where devices are
// named, only their rows are made anew.
import { execFileSync } from 'node:child_process'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { argv, exit } from 'node:process'
import type { ProgramRun } from '../../coordinator/host.ts'
import { linesOf, testOver } from '../fence-agents/agent-test.ts'
import { inStorage } from '../fence-agents/network-fences.ts'
import { honest, inPods } from '../fence-agents/pods.ts'
import { relay } from '../fence-agents/relay.ts'
import { startAzure } from './azure-endpoint.ts'
import { rewritten, tableOf, type Debian, type Tried } from './conformance-table.ts'
import { startEc2Endpoint } from './ec2-endpoint.ts'
import { startFcSwitch } from './fc-switch.ts'
import { instanceName, startComputeEngine } from './gce-endpoint.ts'
import { startHypervisor } from './hypervisor.ts'
import { startIpmiController } from './ipmi-controller.ts'
import { serveLines, type LineServer } from './lines.ts'
import { loose, type Feed } from './machine.ts'
import { startNetworkSwitch } from './network-switch.ts'
import { startOpenStack } from './openstack-endpoint.ts'
import { kinds, startPowerStrip } from './power-strip.ts'
import { inRack, type Parameters, type Rack } from './rack.ts'
import { startRedfishController } from './redfish-controller.ts'
import { startUpsServer } from './ups-server.ts'
import { machineName, startVCenter } from './vcenter-endpoint.ts'

interface Trial {
  readonly program: string
  readonly at: string
  /** As the tool reads them: parameters, and what it must know of the device. */
  readonly told: Parameters
  /** What the coordinator's own environment would bring. */
  readonly environment?: Readonly<Record<string, string>>
}

/** Stands while `use` is under way. */
type Device = (rack: Rack, use: (trials: readonly Trial[]) => Promise<void>) => Promise<void>

const devices = {
  ipmi: standing(management), redfish: standing(redfish), strips: standing(strips), switch: standing(networkSwitch), ups: standing(ups), ec2: standing(ec2), gce: standing(computeEngine),
  azure: standing(azure), vcenter: standing(vCenter), openstack: standing(openStack), 'fc-switch': standing(fcSwitch), script: standing(script), storage, pods, hypervisor: standing(hypervisor),
  file: standing(file),
} as const satisfies Readonly<Record<string, Device>>

export type DeviceName = keyof typeof devices
export const deviceNames = Object.keys(devices) as readonly DeviceName[] // all of its keys, and no other

/** One that stands until the rack is left. */
function standing(start: (rack: Rack) => Promise<readonly Trial[]>): Device {
  return async (rack, use) => use(await start(rack))
}

export async function tried(names: readonly DeviceName[], heard: (line: string) => void): Promise<readonly Tried[]> {
  const all: Tried[] = []
  for (const name of names) {
    await inRack((rack) => devices[name](rack, async (trials) => {
      for (const { program, at, told, environment = {} } of trials) {
        const programs = { run: (asked: ProgramRun) => rack.programs.run({ ...asked, environment: { ...asked.environment, ...environment } }) }
        const rows = await testOver(programs, program, linesOf(told), ({ clause, verdict }) => heard(`${program.padEnd(18)} ${verdict.padEnd(8)} ${clause}`))
        all.push({ program, at, rows })
      }
    }))
  }
  return all
}

type BackEnd = Pick<LineServer, 'vanish' | 'open'>

/** What the tool asks in a shell and the test knows: the truth of an outlet, and a back end that goes and comes. */
async function shellTo(rack: Rack, feeds: Readonly<Record<string, Pick<Feed, 'on'>>>, backEnd: BackEnd): Promise<Parameters> {
  const name = `truth-${Math.round(performance.now() * 1_000)}`
  const server = rack.keep(await serveLines(join(rack.folder, name), async (lines, say) => {
    for await (const line of lines) {
      if (line === 'gone') await backEnd.vanish()
      else if (line === 'back') await backEnd.open()
      else say(feeds[line]?.on() === true ? 'on\n' : 'off\n')
      return
    }
  }))
  const ask = (word: string) => `printf '%s\\n' ${word} | socat -t 10 - UNIX-CONNECT:${server.path}`
  return { truth: ask('"$PLUG"'), gone: ask('gone'), back: ask('back') }
}

/** What answers in front of it does so still, and says each time that it failed. */
function behind(front: { fault: unknown }): BackEnd {
  const is = (fault: 'broken' | undefined) => Promise.resolve(void (front.fault = fault))
  return { vanish: () => is('broken'), open: () => is(undefined) }
}

async function management(rack: Rack): Promise<readonly Trial[]> {
  const feed = loose()
  const { login, backEnd } = await startIpmiController(rack, 'controller', feed)
  const told = { ...login, ...await shellTo(rack, { '': feed }, backEnd), 'wrong.password': 'wrong' }
  const at = 'ipmi_sim'
  return [{ program: 'ipmi', at, told }, { program: 'fence_ipmilan', at, told: { ...told, lanplus: '1' } }]
}

function uuid(index: number): string {
  return `00000000-0000-4000-8000-00000000000${index}`
}

async function redfish(rack: Rack): Promise<readonly Trial[]> {
  const systems = [1, 2].map((index) => ({ machine: { name: `system-${index}`, uuid: uuid(index) }, feed: loose() }))
  const { login, pin, backEnd } = await startRedfishController(rack, systems)
  const [one] = systems
  const feeds = Object.fromEntries(systems.flatMap(({ machine, feed }) => [[machine.uuid, feed], ...(machine === one?.machine ? [['', feed]] : [])]))
  const common = { ...login, 'wrong.password': 'wrong', ...await shellTo(rack, feeds, backEnd) }
  const at = 'sushy-tools'
  return [
    { program: 'redfish', at, told: { ...common, ...pin, plug: uuid(1), other: uuid(2), unknown: uuid(9) } },
    { program: 'fence_redfish', at, told: { ...common, ssl_insecure: '1', systems_uri: `/redfish/v1/Systems/${uuid(1)}` } },
  ]
}

async function strips(rack: Rack): Promise<readonly Trial[]> {
  const trials: Trial[] = []
  for (const { kind, is, programs, nameOf = String } of spoken) {
    const feeds = { 3: loose(), 4: loose() }
    const { v2c, backEnd } = await startPowerStrip(rack, kind, feeds, kinds[kind])
    const named = Object.fromEntries(Object.entries(feeds).map(([outlet, feed]) => [nameOf(outlet), feed]))
    const told = { ...v2c, plug: nameOf('3'), other: nameOf('4'), unknown: nameOf('99'), 'wrong.community': 'wrong', ...await shellTo(rack, named, backEnd) }
    for (const program of programs) trials.push({ program, at: `snmpd, ${is}`, told })
  }
  return trials
}

interface Spoken {
  readonly kind: keyof typeof kinds
  readonly is: string
  readonly programs: readonly string[]
  /** Where an outlet has another name than its number. */
  readonly nameOf?: (outlet: string) => string
}

/** Who speaks to a kind of strip. */
const spoken: readonly Spoken[] = [
  { kind: 'apc', is: 'a strip of APC', programs: ['pdu-snmp', 'fence_apc_snmp'] },
  { kind: 'eaton', is: 'a strip of Eaton', programs: ['pdu-snmp', 'fence_eaton_snmp'] },
  { kind: 'tripplite', is: 'a strip of Tripp Lite', programs: ['fence_tripplite_snmp'] },
  { kind: 'ibm', is: 'a strip of IBM', programs: ['fence_ipdu'] },
  { kind: 'emerson', is: 'a strip of Emerson', programs: ['fence_emerson'], nameOf: (outlet) => `1.1.${outlet}` },
  { kind: 'ibmBlades', is: 'a blade chassis of IBM', programs: ['fence_ibmblade'] },
  { kind: 'intel', is: 'a chassis of Intel', programs: ['fence_intelmodular'] },
  { kind: 'cisco', is: 'a Fibre Channel switch of Cisco', programs: ['fence_cisco_mds'], nameOf: (outlet) => `fc1/${outlet}` },
]

async function networkSwitch(rack: Rack): Promise<readonly Trial[]> {
  const { v2c, stateCommand } = await startNetworkSwitch(rack)
  const told = { ...v2c, plug: 'p1', other: 'p2', unknown: '99', 'wrong.community': 'wrong', truth: stateCommand }
  return ['switch-snmp', 'fence_ifmib'].map((program) => ({ program, at: 'snmpd, a bridge of Linux', told }))
}

async function ups(rack: Rack): Promise<readonly Trial[]> {
  const { login, stateCommand, backEnd } = await startUpsServer(rack)
  const told = { ...login, plug: '1', other: '2', unknown: '99', 'wrong.password': 'wrong', ...await shellTo(rack, {}, backEnd), truth: stateCommand }
  return [{ program: 'nut', at: 'upsd', told }]
}

async function ec2(rack: Rack): Promise<readonly Trial[]> {
  const { ours, theirs, instances: [plug, other], stateCommand, process: moto, guard } = await startEc2Endpoint(rack)
  const stalled = { gone: `kill -STOP ${moto.pid}`, back: `kill -CONT ${moto.pid}` }
  const told = { ...guard().fencer, plug, other, unknown: 'i-0123456789abcdef0', 'wrong.secret_key': 'wrong', truth: stateCommand, ...stalled }
  return [{ program: 'aws', at: 'moto', told: { ...ours, ...told } }, { program: 'fence_aws', at: 'moto', told: { ...theirs, ...told } }]
}

async function computeEngine(rack: Rack): Promise<readonly Trial[]> {
  const feed = loose()
  const { login, wrong, front } = await startComputeEngine(rack, feed)
  const told = { ...login, unknown: 'node-9', 'wrong.serviceaccount': wrong['serviceaccount'] ?? '', ...await shellTo(rack, { [instanceName]: feed }, behind(front)) }
  const at = 'a Compute Engine of ours'
  return [{ program: 'gce', at, told }, { program: 'fence_gce', at, told: { ...told, retries: '0' } }]
}

async function azure(rack: Rack): Promise<readonly Trial[]> {
  const feed = loose()
  const { login, front } = await startAzure(rack, { uuid: uuid(1), feed })
  const told = { ...login, unknown: 'node-9', 'wrong.password': 'wrong', ...await shellTo(rack, { [login['plug'] ?? '']: feed }, behind(front)) }
  return ['azure', 'fence_azure_arm'].map((program) => ({ program, at: 'a resource manager of ours', told }))
}

async function vCenter(rack: Rack): Promise<readonly Trial[]> {
  const feed = loose()
  const { ours, theirs, others, front } = await startVCenter(rack, { uuid: uuid(1), feed })
  const other = { name: 'node-2', uuid: uuid(2), feed: loose() }
  others.push(other)
  const common = { other: other.name, unknown: 'node-9', 'wrong.password': 'wrong', ...await shellTo(rack, { [machineName]: feed, [other.name]: other.feed }, behind(front)) }
  const at = 'a vCenter of ours'
  return [{ program: 'vmware', at, told: { ...ours, ...common } }, { program: 'fence_vmware_rest', at, told: { ...theirs, ...common } }]
}

async function openStack(rack: Rack): Promise<readonly Trial[]> {
  const feed = loose()
  const nova = await startOpenStack(rack, { uuid: uuid(1), name: 'one', feed })
  const told = { ...nova.login, unknown: uuid(9), 'wrong.password': 'wrong', ...await shellTo(rack, { [uuid(1)]: feed }, behind(nova)) }
  return ['openstack', 'fence_openstack'].map((program) => ({ program, at: 'a Nova of ours', told }))
}

async function fcSwitch(rack: Rack): Promise<readonly Trial[]> {
  const { ours, theirs, about } = await startFcSwitch(rack)
  const at = 'a Fabric OS of ours'
  return [{ program: 'fc-switch', at, told: { ...ours, ...about } }, { program: 'fence_brocade', at, told: { ...theirs, ...about } }]
}

function script(rack: Rack): Promise<readonly Trial[]> {
  const { params, environment } = relay(rack)
  return Promise.resolve([{ program: 'exec', at: 'a script in shell', told: params, environment }])
}

function storage(_rack: Rack, use: (trials: readonly Trial[]) => Promise<void>): Promise<void> {
  return inStorage(({ params }) => use([{ program: 'storage', at: 'a csi-addons of ours', told: params }]))
}

function pods(_rack: Rack, use: (trials: readonly Trial[]) => Promise<void>): Promise<void> {
  return inPods(honest, ({ params }) => use([{ program: 'job', at: 'a Job controller of ours', told: params }]))
}

async function hypervisor(rack: Rack): Promise<readonly Trial[]> {
  const { ours, theirs, machines: [plug, other], isOn, backEnd } = await startHypervisor(rack)
  const feeds = Object.fromEntries([plug, other].map((one) => [one, { on: () => isOn(one) }]))
  const [told, at] = [{ plug, other, unknown: uuid(9), ...await shellTo(rack, feeds, backEnd) }, 'libvirtd']
  return [{ program: 'libvirt', at, told: { ...ours, ...told } }, { program: 'fence_virsh', at, told: { ...theirs, ...told, 'wrong.password': 'wrong' } }]
}

/** The one that others try their clusters with. */
function file(rack: Rack): Promise<readonly Trial[]> {
  const status_file = join(rack.folder, 'status')
  writeFileSync(status_file, 'on')
  const told = { status_file, truth: `cat ${status_file}`, gone: `mv ${status_file} ${status_file}.away`, back: `mv ${status_file}.away ${status_file}` }
  return Promise.resolve([{ program: 'fence_dummy', at: 'a file', told }])
}

const document = 'docs/fence-agents.md'

function debian(): Debian {
  const version = execFileSync('dpkg-query', ['-W', '-f', '${source:Upstream-Version}', 'fence-agents'], { encoding: 'utf8' })
  return { version, programs: new Map(globSync('/usr/sbin/fence_*').map((path) => [basename(path), readFileSync(path, 'latin1')])) }
}

async function main(words: readonly string[]): Promise<number> {
  const names = deviceNames.filter((name) => words.length === 0 || words.includes(name))
  if (names.length < words.length) {
    console.error(`node test/devices/conformance.ts [DEVICE...]: DEVICE is one of ${deviceNames.join(', ')}`)
    return 2
  }
  execFileSync('bash', ['test/devices/install.sh', 'all'], { stdio: 'inherit' })
  const all = await tried(names, (line) => console.error(line))
  console.log(tableOf(all))
  writeFileSync(document, rewritten(readFileSync(document, 'utf8'), all, words.length === 0, debian()))
  return 0
}

// Last, so that every constant above has its value when the program begins.
if (import.meta.main) exit(await main(argv.slice(2)))
