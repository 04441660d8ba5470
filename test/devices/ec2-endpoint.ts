// EC2's API as moto speaks it, in a network namespace of its own: fence_aws asks the metadata service at EC2's own address
// before it does anything. Nothing runs in its instances; the judge is boto3.
import { randomUUID } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { fileURLToPath } from 'node:url'
import type { Component } from '../control-plane/component.ts'
import type { Body } from './cluster.ts'
import { serveLines } from './lines.ts'
import { startNamespace } from './namespace.ts'
import { installed, secret, until, type Parameters, type Rack } from './rack.ts'

export interface Ec2Endpoint {
  readonly process: Component
  readonly instances: readonly [string, string]
  /** As a Node's kubelet names the instance, and where its beats come from. */
  node(instance: string): { readonly providerID: string; readonly address: string }
  /** A machine that lives for as long as boto3 reads that its instance runs. */
  body(instance: string): Promise<InstanceBody>
  /** From now on it knows keys, and what each may do: the rights that docs/fence-agents.md names, and those to read alone. */
  guard(): { readonly fencer: Parameters; readonly reader: Parameters }
  /** It may not be terminated, as its owner has it. */
  protect(instance: string): void
  /** As EC2 does it of one instance about an hour after it was terminated, moto does it of all. */
  forget(): void
  readonly ours: Parameters
  readonly theirs: Parameters
  state(instance: string): string
  /** A line of shell that prints on or off of the instance in $PLUG. */
  readonly stateCommand: string
}

export interface InstanceBody extends Body {
  /** Its kernel does nothing any more, whatever EC2 says of it. */
  hang(): void
}

const port = 5055
const url = `http://127.0.0.1:${port}`
const region = 'eu-west-1'

export async function startEc2Endpoint(rack: Rack): Promise<Ec2Endpoint> {
  const space = await startNamespace(rack, 'ec2')
  space.run('ip', 'link', 'set', 'lo', 'up')
  space.run('ip', 'addr', 'add', '169.254.169.254/32', 'dev', 'lo')
  const process = await rack.start('moto', space.command(join(installed('ec2'), 'bin/moto_server'), '-H', '127.0.0.1', '-p', String(port)))
  const python = join(installed('ec2'), 'bin/python')
  const keysFile = join(rack.folder, 'keys.json')
  const judgeBy = ([id, key]: Key) => writeFileSync(keysFile, JSON.stringify({ aws_access_key_id: id, aws_secret_access_key: key }))
  judgeBy(['AKIAX', 'y'])
  const client = ['import boto3, json, sys', `keys = json.load(open('${keysFile}'))`, `ec2 = boto3.client('ec2', region_name='${region}', endpoint_url='${url}', **keys)`]
  const boto = (line: string) => space.run(python, '-c', [...client, line].join('\n')).trim()
  const stateFile = join(rack.folder, 'state.py')
  writeFileSync(stateFile, [...client, `print(${told('sys.argv[1]')}["State"]["Name"])`, ''].join('\n'))
  const watchFile = join(rack.folder, 'watch.py')
  writeFileSync(watchFile, watching(client))
  await until('moto to answer', () => {
    try {
      return boto('print(len(ec2.describe_images()["Images"]))') !== '0'
    } catch {
      return false // not up yet
    }
  })
  const [own = '', one = '', two = ''] = boto('print(*[i["InstanceId"] for i in ec2.run_instances(ImageId=ec2.describe_images()["Images"][0]["ImageId"], MinCount=3, MaxCount=3, InstanceType="t3.micro")["Instances"]])').split(' ')
  await rack.start('metadata', space.command(execPath, fileURLToPath(new URL('instance-metadata.ts', import.meta.url)), own))
  const ours = fileURLToPath(new URL('../../fence-agents/aws/aws.ts', import.meta.url))
  space.wrap('aws', ['env', `AWS_ENDPOINT_URL_EC2=${url}`, execPath, ours])
  // It knows no parameter for the endpoint.
  space.wrap('fence_aws', ['env', `AWS_DATA_PATH=${endpointRules(rack)}`, '/usr/sbin/fence_aws'])
  const keys = { region, access_key: 'AKIAX', secret_key: secret }
  return {
    process, instances: [one, two], ours: { ...keys, endpoint: url }, theirs: keys,
    state: (instance) => space.run(python, stateFile, instance).trim(),
    node(instance) {
      const [zone = '', address = ''] = boto(`i = ${told(`'${instance}'`)}\nprint(i["Placement"]["AvailabilityZone"], i["PrivateIpAddress"])`).split(' ')
      return { providerID: `aws:///${zone}/${instance}`, address }
    },
    async body(instance) {
      const [uuid, boot] = [randomUUID(), randomUUID()]
      const last = { state: '', hangs: false }
      const socket = rack.keep(await serveLines(join(rack.folder, `${instance}.states`), async (lines) => {
        for await (const line of lines) last.state = line
      }))
      const watch = await rack.start(`${instance}-watch`, space.command(python, watchFile, socket.path, instance))
      await until(`boto3 to tell of ${instance}`, () => last.state === 'running')
      return {
        uuid, boots: [boot], lastWords: () => `boto3: ${last.state}; ${watch.lastWords()}`, hang: () => { last.hangs = true },
        state: () => (last.state === 'stopped' || last.state === 'terminated' ? 'off' : last.hangs ? 'hung' : 'beating'),
      }
    },
    protect: (instance) => void boto(`ec2.modify_instance_attribute(InstanceId='${instance}', DisableApiTermination={'Value': True})`),
    guard() {
      const [judge, fencer, reader] = JSON.parse(boto(guarding)) as readonly [Key, Key, Key] // printed there so
      judgeBy(judge)
      const pairOf = ([access_key, secret_key]: Key) => ({ access_key, secret_key })
      return { fencer: pairOf(fencer), reader: pairOf(reader) }
    },
    forget: () => void boto(`import urllib.request\nurllib.request.urlopen(urllib.request.Request('${url}/moto-api/reset', method='POST'))`),
    stateCommand: `${space.command(python, stateFile).join(' ')} "$PLUG" | sed 's/^running$/on/; s/^stopped$/off/'`,
  }
}

type Key = readonly [id: string, key: string]

/** Three users with a key each, and nobody else is heard any more. */
const guarding = [
  'import urllib.request', `iam = boto3.client('iam', region_name='us-east-1', endpoint_url='${url}', **keys)`,
  'def key(name, actions):', '  iam.create_user(UserName=name)',
  '  document = json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": actions, "Resource": "*"}]})',
  '  iam.put_user_policy(UserName=name, PolicyName=name, PolicyDocument=document)',
  '  made = iam.create_access_key(UserName=name)["AccessKey"]', '  return [made["AccessKeyId"], made["SecretAccessKey"]]',
  'switching = ["ec2:DescribeInstances", "ec2:StopInstances", "ec2:StartInstances"]',
  'print(json.dumps([key("judge", ["*"]), key("fencer", switching), key("reader", switching[:1])]))',
  // Else what is sent is taken for a form.
  `urllib.request.urlopen(urllib.request.Request('${url}/moto-api/reset-auth', data=b'0', headers={'Content-Type': 'text/plain'}, method='POST'))`,
].join('\n')

/** What boto3 reads of an instance, whose id is written so in Python. */
function told(instance: string): string {
  return `ec2.describe_instances(InstanceIds=[${instance}])["Reservations"][0]["Instances"][0]`
}

/** Says a few times a second how boto3 reads an instance, or by which code EC2 does not tell of it. */
function watching(client: readonly string[]): string {
  return [
    ...client, 'import botocore.exceptions, socket, time', 'said = socket.socket(socket.AF_UNIX)', 'said.connect(sys.argv[1])',
    'while True:',
    '  try:', `    state = ${told('sys.argv[2]')}["State"]["Name"]`,
    '  except botocore.exceptions.ClientError as error:', '    state = error.response["Error"]["Code"]',
    '  said.sendall((state + "\\n").encode())', '  time.sleep(0.2)', '',
  ].join('\n')
}

/** Where boto3 1.26 learns which address serves EC2. */
function endpointRules(rack: Rack): string {
  const folder = join(rack.folder, 'rules/ec2/2016-11-15')
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'endpoint-rule-set-1.json'), JSON.stringify({
    version: '1.0',
    parameters: {
      Region: { builtIn: 'AWS::Region', required: false, type: 'String' }, Endpoint: { builtIn: 'SDK::Endpoint', required: false, type: 'String' },
      UseDualStack: { builtIn: 'AWS::UseDualStack', required: true, default: false, type: 'Boolean' }, UseFIPS: { builtIn: 'AWS::UseFIPS', required: true, default: false, type: 'Boolean' },
    },
    rules: [{ conditions: [], type: 'endpoint', endpoint: { url, properties: {}, headers: {} } }],
  }))
  return join(rack.folder, 'rules')
}
