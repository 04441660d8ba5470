// Our `azure` and Debian's fence_azure_arm, with Microsoft's own libraries in it, at a resource manager of ours under Microsoft's own
// names, and the machine as the judge of both.
import { randomUUID } from 'node:crypto'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { startAzure, type AzureEndpoint } from './azure-endpoint.ts'
import { saysOf, sameClaims, type CloudAtTest } from './cloud-claims.ts'
import { loose } from './machine.ts'
import { inRack } from './rack.ts'

const test = suite('azure')

function atTest({ front, login }: AzureEndpoint): CloudAtTest {
  return { program: 'azure', front, login, wrong: { password: 'wrong' }, unknown: { plug: 'node-9' }, others: ['fence_azure_arm', login] }
}

sameClaims(test, 'fence_azure_arm', async (rack, machine) => atTest(await startAzure(rack, machine)))

test('it tells the UUID of the machine, and what hibernated is not off, whatever fence_azure_arm says', () => inRack(async (rack) => {
  const uuid = randomUUID()
  const azure = await startAzure(rack, { uuid, feed: loose() })
  assert.is((await rack.ask('azure', 'status', azure.login)).machine, uuid)
  azure.says = ['PowerState/deallocated', 'HibernationState/Hibernated']
  assert.equal(await saysOf(rack, atTest(azure)), { ours: 'unknown', theirs: 'off' })
  azure.says = ['PowerState/stopping']
  assert.equal(await saysOf(rack, atTest(azure)), { ours: 'unknown', theirs: 'on' })
}))

test.run()
