import { X509Certificate, createPrivateKey } from 'node:crypto'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { makeAuthority, makeServer } from '../../edge/certificate.ts'

const test = suite('certificate')

const from = Date.UTC(2026, 2, 1, 12)
const until = Date.UTC(2028, 2, 1, 12)
const name = 'an authority'
const authority = makeAuthority({ name, from, until })
const server = makeServer({ ...authority, name }, { name: 'a server', from, until, names: ['a.example', '10.1.2.3', '::1', 'fe80::1:2', '2001:db8:1:2:3:4:5:6', '::ffff:10.0.0.1'] })

test('an authority is one, signed by itself', () => {
  const read = new X509Certificate(authority.certificate)
  assert.ok(read.ca)
  assert.ok(read.verify(read.publicKey))
  assert.is(read.subject, `CN=${name}`)
  assert.is(read.issuer, `CN=${name}`)
  assert.ok(read.checkPrivateKey(createPrivateKey(authority.key)))
})

test('a server\'s certificate is issued by its authority and by no other of the same name', () => {
  const read = new X509Certificate(server.certificate)
  const other = new X509Certificate(makeAuthority({ name, from, until }).certificate)
  assert.ok(read.checkIssued(new X509Certificate(authority.certificate)))
  assert.ok(read.verify(new X509Certificate(authority.certificate).publicKey))
  assert.not.ok(read.checkIssued(other))
  assert.not.ok(read.verify(other.publicKey))
  assert.ok(read.checkPrivateKey(createPrivateKey(server.key)))
})

test('a server can sign nobody', () => {
  assert.not.ok(new X509Certificate(server.certificate).ca)
})

test('a server\'s certificate is good for its names and addresses and no others', () => {
  const read = new X509Certificate(server.certificate)
  assert.is(read.checkHost('a.example'), 'a.example')
  assert.is(read.checkHost('b.example'), undefined)
  for (const address of ['10.1.2.3', '::1', 'fe80::1:2', '2001:db8:1:2:3:4:5:6']) assert.is(read.checkIP(address), address)
  assert.is(read.checkIP('10.1.2.4'), undefined)
  assert.is(read.checkIP('::2'), undefined)
  assert.equal(read.keyUsage, ['1.3.6.1.5.5.7.3.1'])
})

test('validity is written as it was asked for, beyond 2049 too', () => {
  const read = new X509Certificate(authority.certificate)
  assert.is(read.validFromDate.getTime(), from)
  assert.is(read.validToDate.getTime(), until)
  const long = new X509Certificate(makeAuthority({ name, from, until: Date.UTC(2066, 0, 2, 3, 4, 5) }).certificate)
  assert.is(long.validToDate.getTime(), Date.UTC(2066, 0, 2, 3, 4, 5))
})

test('no two serial numbers are the same, and each is positive', () => {
  const serials = Array.from({ length: 50 }, () => new X509Certificate(makeAuthority({ name, from, until }).certificate).serialNumber)
  assert.is(new Set(serials).size, 50)
  assert.ok(serials.every((serial) => serial.length === 32 && Number.parseInt(serial.slice(0, 1), 16) < 8))
})

test('many names make a certificate that can still be read', () => {
  const names = Array.from({ length: 300 }, (_, index) => `name-${index}.of-a-rather-long-domain.example`)
  const read = new X509Certificate(makeServer({ ...authority, name }, { name: 's', from, until, names }).certificate)
  assert.is(read.checkHost(names[299] ?? ''), names[299])
})

test.run()
