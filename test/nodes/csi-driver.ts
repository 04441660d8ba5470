// The controller half of the lab's CSI driver (csi/controller.go), a process of its own beside the storage, and what an attacher asks of
// it: by gRPC over its socket, with the driver's own words where it refuses.
import { connect as connectHttp, type ClientHttp2Session } from 'node:http2'
import { connect } from 'node:net'
import { join } from 'node:path'
import { joined, bytesField, textField, wholeField } from '../../agent/protobuf.ts'
import type { CsiController, CsiVolume } from '../../sim/csi-controller.ts'
import { startComponent } from '../control-plane/component.ts'
import { binaries } from './cluster.ts'
import { driver } from './workload.ts'

export interface DriverProcess extends CsiController {
  stop(): Promise<void>
}

/** As the real attacher waits. */
const answersWithin = 15_000
/** CSI's access modes. */
const modes = { oneNodeWrites: 1, manyNodesWrite: 5 } as const
/** gRPC's, by number. */
const codes = ['OK', 'Canceled', 'Unknown', 'InvalidArgument', 'DeadlineExceeded', 'NotFound', 'AlreadyExists', 'PermissionDenied', 'ResourceExhausted', 'FailedPrecondition', 'Aborted', 'OutOfRange', 'Unimplemented', 'Internal', 'Unavailable', 'DataLoss', 'Unauthenticated']

/** `exclusive`: it gives to nobody what another node has or writes, and takes from nobody what he writes. Else it refuses nobody. */
export async function startDriver({ folder, storage }: { readonly folder: string; readonly storage: string }, exclusive: boolean): Promise<DriverProcess> {
  const socket = join(folder, 'csi-controller.sock')
  const process = await startComponent({
    name: 'csi controller', file: 'env', logFile: join(folder, 'logs', 'csi-controller.log'),
    args: [`DRIVER=${driver}`, `SAN=${storage}`, `ENDPOINT=${socket}`, `EXCLUSIVE=${exclusive ? 1 : 0}`, join(binaries(), 'csi-driver'), 'controller'],
  })
  return {
    publish: ({ handle, shared }: CsiVolume, node) => call(socket, 'ControllerPublishVolume', [textField(1, handle), textField(2, node), bytesField(3, capability(shared))]),
    unpublish: ({ handle }, node) => call(socket, 'ControllerUnpublishVolume', [textField(1, handle), textField(2, node)]),
    stop: () => process.stop(),
  }
}

/** {2 mount, 3 access mode {1 mode}}. */
function capability(shared: boolean): Uint8Array {
  return joined([bytesField(2, new Uint8Array()), bytesField(3, wholeField(1, shared ? modes.manyNodesWrite : modes.oneNodeWrites))])
}

/** Undefined: it did as it was asked. */
async function call(socket: string, method: string, fields: readonly Uint8Array[]): Promise<string | undefined> {
  const session = connectHttp('http://csi', { createConnection: () => connect(socket) })
  try {
    return await ask(session, method, joined(fields))
  } catch (error) {
    return `rpc error: code = Unavailable desc = ${String(error)}` // nobody listens there yet, or it ended: an attacher asks again
  } finally {
    session.destroy()
  }
}

function ask(session: ClientHttp2Session, method: string, message: Uint8Array): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const head = new Uint8Array(5)
    new DataView(head.buffer).setUint32(1, message.length)
    const request = session.request({ ':method': 'POST', ':path': `/csi.v1.Controller/${method}`, 'content-type': 'application/grpc', te: 'trailers' })
    // A refusal is all headers, an answer has them behind it.
    let status: Readonly<Record<string, unknown>> = {}
    for (const part of ['response', 'trailers'] as const) request.on(part, (headers: Readonly<Record<string, unknown>>) => { status = { ...status, ...headers } })
    session.on('error', reject)
    request.on('error', reject)
    request.setTimeout(answersWithin, () => reject(new Error(`no answer within ${answersWithin} ms`)))
    request.on('close', () => {
      const code = codes[Number(status['grpc-status'] ?? 2)] ?? 'Unknown'
      resolve(code === 'OK' ? undefined : `rpc error: code = ${code} desc = ${decodeURIComponent(String(status['grpc-message'] ?? ''))}`)
    })
    request.resume()
    request.end(joined([head, message]))
  })
}
