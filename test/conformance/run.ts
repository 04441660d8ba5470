// Runs the cases against whatever API server the driver leads to.
import type { Transport } from '../../coordinator/transport.ts'
import { createCases } from './cases/create.ts'
import { customCases } from './cases/custom.ts'
import { deletionCases } from './cases/deletion.ts'
import { evictionCases } from './cases/eviction.ts'
import { identityCases } from './cases/identity.ts'
import { listCases } from './cases/list.ts'
import { nodeCases } from './cases/node.ts'
import { patchCases } from './cases/patch.ts'
import { podCases } from './cases/pod.ts'
import { recordCases } from './cases/record.ts'
import { storageCases } from './cases/storage.ts'
import { surfaceCases } from './cases/surface.ts'
import { updateCases } from './cases/update.ts'
import { watchCases } from './cases/watch.ts'
import { buoyDefinition } from './buoy.ts'
import { callerOf } from './world.ts'
import type { Caller, Case, Driver, World } from './world.ts'

export const allCases: readonly Case[] = [
  ...createCases, ...updateCases, ...patchCases, ...deletionCases, ...listCases, ...watchCases, ...nodeCases, ...podCases, ...evictionCases,
  ...storageCases, ...recordCases, ...customCases, ...identityCases, ...surfaceCases,
]

export interface Result { readonly name: string; readonly fault?: string }

export interface Ground {
  run(one: Case): Promise<Result>
  close(): Promise<void>
}

/** Every case once, in order. */
export async function runConformance(driver: Driver, report: (result: Result) => void, cases: readonly Case[] = allCases): Promise<readonly Result[]> {
  const ground = await openGround(driver)
  const results: Result[] = []
  try {
    for (const one of cases) {
      const result = await ground.run(one)
      results.push(result)
      report(result)
    }
  } finally {
    await ground.close()
  }
  return results
}

/** The namespace and the custom kind that all cases share. */
export async function openGround(driver: Driver): Promise<Ground> {
  const admin = callerOf(driver.admin, driver.clock)
  const namespace = `${driver.prefix}-cases`
  const group = `${driver.prefix}.conformance.holdfast.dev`
  const definition = buoyDefinition(group)
  const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
  const eventually = eventuallyOn(driver)
  await admin.post('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } })
  await admin.post(definitions, definition)
  await eventually('the default ServiceAccount', async () => (await admin.get(`/api/v1/namespaces/${namespace}/serviceaccounts/default`)).status === 200)
  const buoys = `/apis/${group}/v1/buoys`
  await eventually('the custom kind', async () => (await admin.get(buoys)).status === 200)
  let count = 0
  return {
    async run(one) {
      count += 1
      const made: string[] = []
      const world: World = {
        ...admin, namespace, group, buoys, driver, clock: driver.clock, eventually,
        as: (transport: Transport) => callerOf(transport, driver.clock),
        name: (hint) => `${driver.prefix}-${count}-${hint}`,
        made(path) {
          made.push(path)
          return path
        },
      }
      try {
        await one.run(world)
        return { name: one.name }
      } catch (cause) {
        // The case's own verdict; the suite goes on.
        return { name: one.name, fault: cause instanceof Error ? cause.message : String(cause) }
      } finally {
        for (const path of made.toReversed()) await clean(admin, path)
      }
    },
    async close() {
      await admin.remove(`${definitions}/${definition.metadata.name}`)
      await admin.remove(`/api/v1/namespaces/${namespace}`)
    },
  }
}

async function clean(admin: Caller, path: string): Promise<void> {
  await admin.merge(path, { metadata: { finalizers: null } })
  await admin.remove(path, { gracePeriodSeconds: 0 })
}

const patience = 30_000

function eventuallyOn(driver: Driver): World['eventually'] {
  return async (what, holds) => {
    const deadline = driver.clock.now() + patience
    while (!(await holds())) {
      if (driver.clock.now() > deadline) throw new Error(`waited in vain for ${what}`)
      await driver.clock.wait(50)
    }
  }
}
