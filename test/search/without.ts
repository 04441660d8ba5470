// Runs one file of tests against a product that lacks a defence: `node test/search/without.ts NAME FILE`.
import { resolve } from 'node:path'
import { argv } from 'node:process'
import { pathToFileURL } from 'node:url'
import { cutOut } from '../../sim/search/cut.ts'

const uvu = globalThis as typeof globalThis & { UVU_DEFER?: 1; UVU_QUEUE?: unknown[][] } // where every copy of it finds them
uvu.UVU_DEFER = 1
uvu.UVU_QUEUE = [[null]]
const [name = '', file = ''] = argv.slice(2)
const sure = cutOut(name)
const { exec } = await import('uvu')
await import(pathToFileURL(resolve(file)).href)
// A file that imports nothing of what was cut would tell of the product as it is.
sure()
await exec()
