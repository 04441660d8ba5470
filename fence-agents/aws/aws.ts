#!/usr/bin/env node
// Power of EC2 instances. Off is StopInstances with Force and SkipOsShutdown, and done only when EC2 itself says stopped: an
// instance may stay stopping for minutes, and writes as long. One that hibernated says stopped too and goes on in its old boot
// when it is started, so it is unknown. A terminated one is off for ever. One that is not found may be in another account.
import { Failure, environment, runAgent, type AgentDescription, type DeviceWord, type Given, type Reason } from '../contract.ts'
import { excerpt, openWeb, reasonOf, textOf, webParameters, type Answer, type Web } from '../https.ts'
import { carryOut, orderParameters, patiently } from '../order.ts'
import { credentialsOf, endpointOf, instanceMetadata } from './credentials.ts'
import { signed, type Credentials } from './signature.ts'
import { elementsAt, parseXml, textAt, type Element } from './xml.ts'

export const agent: AgentDescription = {
  name: 'aws',
  says: 'Switches an instance of Amazon EC2. It needs ec2:DescribeInstances, ec2:StopInstances and ec2:StartInstances, and ec2:TerminateInstances where it is to terminate. EC2 tells no UUID of the machine, only its addresses.',
  vendor: 'https://aws.amazon.com/ec2/',
  parameters: [
    { name: 'plug', says: 'The instance: its id, or the whole spec.providerID of its node', type: 'string', required: true, obsoletes: 'port', short: 'n' },
    { name: 'region', says: 'Its region; else that of its providerID, AWS_REGION, or the one this program runs in', type: 'string', short: 'r' },
    { name: 'access_key', says: 'Access key; else what AWS gives to this pod or instance', type: 'string', short: 'a' },
    { name: 'secret_key', says: 'Secret key', type: 'string', short: 's' },
    { name: 'session_token', says: 'Session token, where the keys are temporary ones', type: 'string' },
    { name: 'terminate', says: 'Off is TerminateInstances, and done only when EC2 says terminated: the instance is gone for good, with every volume that goes with it, and no on brings it back', type: 'boolean' },
    { name: 'endpoint', says: 'Address of the EC2 API, where it is not the region\'s own', type: 'string' },
    ...webParameters,
    ...orderParameters,
  ],
  status: (given) => inRegion(given, (account) => patiently(given, async () => wordIn(given, await instance(account, given)))),
  off: (given) => inRegion(given, (account) => order(account, given, 'off')),
  on: (given) => inRegion(given, (account) => order(account, given, 'on')),
  check: (given) => void instanceId(given),
  list: (given) => inRegion(given, (account) => patiently(given, () => list(account))),
}

interface Account {
  readonly web: Web
  readonly endpoint: string
  readonly region: string
  readonly credentials: Credentials
}

async function inRegion<T>(given: Given, work: (account: Account) => Promise<T>): Promise<T> {
  const web = openWeb(given)
  try {
    const region = await regionOf(given, web)
    const endpoint = textOf(given.optional('endpoint')) ?? endpointOf('ec2', region)
    return await work({ web, endpoint, region, credentials: await patiently(given, () => credentialsOf(given, web, region)) })
  } finally {
    web.close()
  }
}

async function order(account: Account, given: Given, want: 'on' | 'off'): Promise<DeviceWord> {
  const ends = given.yes('terminate')
  if (ends && want === 'on') throw new Failure('config', 'terminate= ends an instance for good, and nothing is switched on by it')
  return carryOut(want, given, {
    look: () => instance(account, given),
    word: (told) => wordIn(given, told),
    async order(before) {
      const [state, word] = [stateOf(before), wordOf(before)]
      if (ends) {
        if (state !== 'shutting-down') await patiently(given, () => ec2(account, 'TerminateInstances', { 'InstanceId.1': instanceId(given), ...forced }))
        return
      }
      // What hibernated cannot be stopped any more (that is accepted, and does nothing), and to start it is to resume its old boot.
      if ((state === 'stopped' && word.state === 'unknown') || state === 'terminated') throw new Failure('device', word.evidence)
      if (state === 'shutting-down') return
      const parameters = { 'InstanceId.1': instanceId(given) }
      await patiently(given, () => want === 'off' ? ec2(account, 'StopInstances', { ...parameters, ...forced }) : ec2(account, 'StartInstances', parameters))
    },
  })
}

/** What hangs is not asked to shut down first. */
const forced = { Force: 'true', SkipOsShutdown: 'true' }

/** Stopped is not what was asked for where the instance is to end: whoever starts it again would find it there. */
function wordIn(given: Given, told: Element): DeviceWord {
  const word = wordOf(told)
  return given.yes('terminate') && word.state === 'off' && stateOf(told) !== 'terminated' ? { ...word, state: 'unknown', evidence: `${word.evidence}, and not terminated`, reason: 'device' } : word
}

function stateOf(told: Element): string {
  return textAt(told, 'instanceState', 'name') ?? 'in no state'
}

/** The one that was asked for and no other: an answer about something else says nothing about it. */
async function instance(account: Account, given: Given): Promise<Element> {
  const id = instanceId(given)
  const answer = await ec2(account, 'DescribeInstances', { 'InstanceId.1': id })
  const [only, ...others] = elementsAt(answer, 'reservationSet', 'item', 'instancesSet', 'item')
  if (only === undefined || others.length > 0 || textAt(only, 'instanceId') !== id) throw new Failure('notfound', `EC2 in ${account.region} does not tell of ${id}`)
  return only
}

function wordOf(told: Element): DeviceWord {
  const id = textAt(told, 'instanceId') ?? 'the instance'
  const state = stateOf(told)
  const addresses = addressesOf(told)
  const word = (is: DeviceWord['state'], evidence: string): DeviceWord => ({ state: is, evidence, ...(is === 'unknown' ? { reason: 'device' } : {}), ...(addresses.length === 0 ? {} : { addresses }) })
  switch (state) {
    case 'running': return word('on', `${id} is running`)
    case 'terminated': return word('off', `${id} is terminated, and nothing can switch it on again`)
    case 'stopped': {
      const doubt = hibernation(told)
      return doubt === undefined ? word('off', `${id} is stopped`) : word('unknown', `${id} is stopped, but ${doubt}: start or terminate it`)
    }
    // pending, stopping, shutting-down, and whatever EC2 may yet think of: it runs, or may.
    default: return word('unknown', `${id} is ${excerpt(state)}`)
  }
}

/** Why a stopped instance may go on in its old boot. Where it could have hibernated only a stop by order is a plain one: a
 *  shutdown from inside, or by the spot market, may have been a hibernation. */
function hibernation(told: Element): string | undefined {
  const code = textAt(told, 'stateReason', 'code') ?? ''
  if (/hibernat/i.test(code)) return 'it hibernated'
  const could = textAt(told, 'hibernationOptions', 'configured') === 'true' || textAt(told, 'instanceLifecycle') === 'spot'
  return could && code !== 'Client.UserInitiatedShutdown' ? `it may have hibernated (${excerpt(code === '' ? 'EC2 gives no reason' : code)})` : undefined
}

function addressesOf(told: Element): readonly string[] {
  const interfaces = elementsAt(told, 'networkInterfaceSet', 'item')
  const found = [
    textAt(told, 'privateIpAddress'), textAt(told, 'ipv6Address'),
    ...interfaces.flatMap((one) => [textAt(one, 'privateIpAddress'), ...elementsAt(one, 'ipv6AddressesSet', 'item').map((address) => textAt(address, 'ipv6Address'))]),
  ]
  return [...new Set(found.filter((address) => address !== undefined))].slice(0, mostAddresses)
}

const mostAddresses = 16
const pageSize = 200
const mostPages = 25

async function list(account: Account): Promise<readonly { plug: string; name: string }[]> {
  const outlets: { plug: string; name: string }[] = []
  let next: string | undefined
  for (let page = 0; page < mostPages; page += 1) {
    const answer = await ec2(account, 'DescribeInstances', { MaxResults: String(pageSize), ...(next === undefined ? {} : { NextToken: next }) })
    for (const told of elementsAt(answer, 'reservationSet', 'item', 'instancesSet', 'item')) {
      const named = elementsAt(told, 'tagSet', 'item').find((tag) => textAt(tag, 'key') === 'Name')
      outlets.push({ plug: textAt(told, 'instanceId') ?? '', name: named === undefined ? '' : excerpt(textAt(named, 'value') ?? '') })
    }
    next = textAt(answer, 'nextToken')
    if (next === undefined) break
  }
  return outlets
}

async function ec2({ web, endpoint, region, credentials }: Account, action: string, parameters: Readonly<Record<string, string>>): Promise<Element> {
  const request = {
    method: 'POST' as const, url: endpoint, headers: { 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' },
    body: new URLSearchParams({ Action: action, Version: '2016-11-15', ...parameters }).toString(),
  }
  const answer = await web.ask({ ...request, headers: signed(request, credentials, { region, service: 'ec2', at: Date.now() }) })
  const document = parseXml(answer.text)
  if (answer.status !== 200) throw failureOf(action, answer, document)
  if (document?.name !== `${action}Response`) throw new Failure('device', `${action}: what came back is no answer of EC2`)
  return document
}

const causes: readonly (readonly [RegExp, Reason, string])[] = [
  [/^(RequestExpired|RequestTimeTooSkewed)/, 'auth', 'is this machine\'s clock right?'],
  [/^(AuthFailure|InvalidClientTokenId|SignatureDoesNotMatch|IncompleteSignature|MissingAuthenticationToken|ExpiredToken|UnrecognizedClient|OptInRequired|Blocked)/, 'auth', 'check access_key=, secret_key= and the clock of this machine'],
  [/^OperationNotPermitted/, 'privilege', 'is the instance protected against being stopped, or terminated?'],
  [/^(UnauthorizedOperation|AccessDenied)/, 'privilege', 'the key needs ec2:DescribeInstances, ec2:StopInstances and ec2:StartInstances, and with terminate= ec2:TerminateInstances'],
  [/^InvalidInstanceID/, 'notfound', 'check plug=, region= and the account'],
  [/^(RequestLimitExceeded|Throttl|EC2ThrottledException|IncorrectInstanceState|InsufficientInstanceCapacity|ServiceUnavailable|Unavailable|InternalError|InternalFailure)/, 'busy', 'it is asked again'],
  [/^(UnsupportedOperation|Unsupported)/, 'config', 'an instance without an EBS root volume cannot be stopped'],
]

function failureOf(action: string, { status }: Answer, document: Element | undefined): Failure {
  const error = document === undefined ? undefined : elementsAt(document, 'Errors', 'Error')[0] ?? elementsAt(document, 'Error')[0]
  const code = error === undefined ? undefined : textAt(error, 'Code')
  if (error === undefined || code === undefined) return new Failure(reasonOf(status), `${action}: HTTP ${status}`)
  const said = excerpt(textAt(error, 'Message') ?? '')
  const cause = causes.find(([pattern]) => pattern.test(code))
  const advice = cause === undefined ? '' : ` (${cause[2]})`
  return new Failure(cause?.[1] ?? reasonOf(status), `${action}: ${excerpt(code)}: ${said}${advice}`)
}

const providerForm = /^aws:\/\/\/([a-z0-9-]+)\/(i-[0-9a-f]{8,17})$/
const idForm = /^i-[0-9a-f]{8,17}$/

function instanceId(given: Given): string {
  const plug = given.text('plug')
  const id = providerForm.exec(plug)?.[2] ?? plug
  if (!idForm.test(id)) throw new Failure('config', 'plug= is no id of an instance, as i-0123456789abcdef0')
  return id
}

const regionForm = /^[a-z]{2,5}(-[a-z]+)+-\d+$/

async function regionOf(given: Given, web: Web): Promise<string> {
  // A zone is its region and more: eu-west-1a, us-west-2-lax-1a.
  const ofZone = /^[a-z]{2,5}(?:-[a-z]+)+?-\d+/.exec(providerForm.exec(given.optional('plug') ?? '')?.[1] ?? '')?.[0]
  const known = textOf(given.optional('region')) ?? ofZone ?? textOf(environment()['AWS_REGION']) ?? textOf(environment()['AWS_DEFAULT_REGION'])
  const region = known ?? await instanceMetadata(web, '/latest/meta-data/placement/region').then(({ text }) => text.trim(), () => '')
  if (!regionForm.test(region)) throw new Failure('config', known === undefined ? 'region= is missing, and this machine does not know one' : 'region= is no region, as eu-west-1')
  return region
}

// Last, so that every constant above has its value when the program begins.
if (import.meta.main) await runAgent(agent)
