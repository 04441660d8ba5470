// Hands what comes to the API server's service address on to where it listens, as kube-proxy would by a rule of the kernel. A
// process of its own: the tests' own must be free to be busy without the cluster noticing.
//
//   node service-address.ts ADDRESS PORT
import { connect, createServer } from 'node:net'
import { argv } from 'node:process'

const [address = '', port = ''] = argv.slice(2)
const httpsPort = 443

createServer({ noDelay: true }, (client) => {
  const server = connect({ host: '127.0.0.1', port: Number(port), noDelay: true })
  for (const [one, other] of [[client, server], [server, client]] as const) {
    one.pipe(other)
    // Either end is gone: so is the connection, and whoever used it dials again.
    one.on('error', () => other.destroy())
    one.on('close', () => other.destroy())
  }
}).listen(httpsPort, address)
