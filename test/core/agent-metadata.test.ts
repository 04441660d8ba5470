import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { misfits, readMetadata } from '../../core/agent-metadata.ts'

const test = suite('agent metadata')

/** In the forms that occur: attributes in any order, a name of before beside a new one, content with and without options. */
const text = `<?xml version="1.0" ?>
<resource-agent name="fence_thing" shortdesc="Things" >
<parameters>
	<parameter name="action" unique="0" required="1"><content type="string" default="reboot"  /></parameter>
	<parameter name="ip" unique="0" required="1" obsoletes="ipaddr">
		<content type="string"  />
	</parameter>
	<parameter name="ipaddr" unique="0" required="1" deprecated="1"><content type="string"  /></parameter>
	<parameter required="0" name="ipport"><content type="integer" default="161" /></parameter>
	<parameter name="snmp_version" required="0"><content type="select"  >
		<option value="1"  />
		<option value="2c"  />
	</content></parameter>
	<parameter name="ssl_insecure" required="0" obsoletes="ssl-insecure"><content type="boolean"  /></parameter>
	<parameter name="power_timeout" required="0"><content type="second" default="20"  /></parameter>
	<parameter name="password" required="0"><content type="string"  /></parameter>
</parameters>
</resource-agent>`
const thing = readMetadata(text) ?? new Map()
const told = (parameters: Readonly<Record<string, string | undefined>>) => misfits(thing, parameters).map(({ key, says }) => `${key}: ${says}`)

test('what fits is not told: old names, other writings of a name, secrets', () => {
  assert.equal(told({ ip: 'x', ipport: '161', snmp_version: '2c', ssl_insecure: 'yes', power_timeout: '20' }), [])
  assert.equal(told({ ipaddr: 'x', 'ssl-insecure': '0', 'snmp-version': '1', power_timeout: '0.5' }), [])
  assert.equal(told({ ip: 'x', ipport: undefined, password: undefined, nodename: 'node-1' }), [])
})

test('what does not is, with its key and never its value', () => {
  assert.equal(told({ ip: 'hush' , colour: 'hush' }), ['colour: colour is not known to its program'])
  assert.equal(told({ ipport: 'hush', ip: 'x' }), ['ipport: ipport is no whole number'])
  assert.equal(told({ ip: 'x', snmp_version: 'hush' }), ['snmp_version: snmp_version is none of 1, 2c'])
  assert.equal(told({ ip: 'x', ssl_insecure: 'hush' }), ['ssl_insecure: ssl_insecure is neither yes nor no'])
  for (const wrong of ['hush', '20s', '1m', '-1']) assert.equal(told({ ip: 'x', power_timeout: wrong }), ['power_timeout: power_timeout is no number of seconds'], 'a unit is for times that are ours')
  for (const without of [{}, { ip: '' }, { ipaddr: '' }]) assert.equal(told({ ipport: '161', ...without }), ['ip: ip= is missing, and its program cannot do without'])
})

test('one parameter by both of its names is a fault: who reads one would ask another device than who reads the other', () => {
  assert.equal(told({ ip: 'hush', ipaddr: 'hush' }), ['ipaddr: ipaddr= is the old name of ip=, which is given as well'])
  assert.equal(told({ ip: undefined, IPADDR: undefined }), ['ipaddr: ipaddr= is the old name of ip=, which is given as well'], 'out of Secrets too')
  assert.equal(told({ ip: 'x', ssl_insecure: '1' }), [], 'a name that only stands there in another writing is none')
})

test('what is no metadata says nothing', () => {
  for (const none of ['', 'usage: thing', '<parameters></parameters>']) assert.is(readMetadata(none), undefined)
})

test.run()
