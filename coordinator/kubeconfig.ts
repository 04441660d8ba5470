// Which API server, and as whom: read by client-node from KUBECONFIG, ~/.kube/config or the pod's own service account, with
// all the ways of signing in that kubectl has (tokens, certificates, exec plugins, OIDC). Nothing else of client-node is
// used: its transport opens a connection a call, and its watches die silently. The deep import leaves its model classes out
// of reach of our code; a bundler then keeps a third of it.
import type { RequestOptions } from 'node:https'
import { KubeConfig } from '@kubernetes/client-node/dist/config.js'
import { httpsTransport, type Credentials, type HttpsTransport } from './https.ts'

export interface ClusterTransport extends HttpsTransport {
  readonly server: string
  /** The context's namespace, or in a pod its own. */
  readonly namespace: string
}

/** Throws with a sentence a person can act on: this is a start, and a bad one. */
export async function clusterTransport(file?: string, context?: string): Promise<ClusterTransport> {
  let config = load(file, context)
  const cluster = config.getCurrentCluster()
  if (!cluster) throw new Error(`the kubeconfig's current context ${JSON.stringify(config.currentContext)} names no cluster`)
  if (cluster.proxyUrl) throw new Error(`the cluster ${cluster.name} is reached through a proxy (${cluster.proxyUrl}), which is not supported`)
  const first = await means(config)
  const transport = httpsTransport({
    url: cluster.server,
    verify: first.rejectUnauthorized !== false,
    ...(first.ca === undefined ? {} : { ca: first.ca }),
    ...(first.servername === undefined ? {} : { servername: first.servername }),
    async credentials(renew) {
      // client-node caches file tokens for a minute and exec plugins' until they expire; after a 401 neither can be trusted.
      if (renew) config = load(file, context)
      return (await means(config)).credentials
    },
  })
  const namespace = config.getContextObject(config.currentContext)?.namespace?.trim() || 'default'
  return Object.assign(transport, { server: cluster.server, namespace })
}

function load(file?: string, context?: string): KubeConfig {
  const config = new KubeConfig()
  try {
    if (file === undefined) config.loadFromDefault()
    else config.loadFromFile(file)
  } catch (error) {
    throw new Error(`the kubeconfig cannot be read: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
  }
  // client-node refuses plain http unless told not to verify what is not there; https.ts allows it on this machine alone.
  config.clusters = config.clusters.map((cluster) => (cluster.server.startsWith('http://') ? { ...cluster, skipTLSVerify: true } : cluster))
  if (context !== undefined) {
    if (config.getContextObject(context) === null) {
      throw new Error(`the kubeconfig has no context ${JSON.stringify(context)}, only ${config.getContexts().map(({ name }) => name).join(', ')}`)
    }
    config.setCurrentContext(context)
  }
  // What client-node falls back to when it found nothing; nobody means it today.
  if (config.currentContext === 'loaded-context' && config.getCurrentCluster()?.server === 'http://localhost:8080') {
    throw new Error('no cluster: set KUBECONFIG, write ~/.kube/config, or run inside a pod with a service account')
  }
  return config
}

interface Means { ca?: string; servername?: string; rejectUnauthorized?: boolean; credentials: Credentials }

async function means(config: KubeConfig): Promise<Means> {
  const options: RequestOptions = { headers: {} }
  await config.applyToHTTPSOptions(options)
  // client-node always hands over a plain record here.
  const headers = options.headers as Record<string, string | undefined>
  const said = headers['Authorization'] ?? headers['authorization']
  const token = said?.startsWith('Bearer ') ? said.slice('Bearer '.length).trim() : undefined
  const ca = pem(options.ca)
  const cert = pem(options.cert)
  const key = pem(options.key)
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(options.servername === undefined ? {} : { servername: options.servername }),
    ...(options.rejectUnauthorized === undefined ? {} : { rejectUnauthorized: options.rejectUnauthorized }),
    credentials: {
      ...(token === undefined ? {} : { token }),
      ...(typeof options.auth === 'string' ? { basic: options.auth } : {}),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
    },
  }
}

function pem(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  return Buffer.isBuffer(value) ? value.toString('utf8') : undefined
}
