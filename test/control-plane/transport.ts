// The product's own transport to a real API server, as whoever the control plane has signed for.
import { httpsTransport, type HttpsTransport } from '../../coordinator/https.ts'
import type { NodeUser } from './certificates.ts'
import type { ControlPlane } from './control-plane.ts'

export function transportTo(plane: Pick<ControlPlane, 'url' | 'ca' | 'credentials'>, user: 'admin' | NodeUser): HttpsTransport {
  const { cert, key } = plane.credentials(user)
  return httpsTransport({ url: plane.url, ca: plane.ca, credentials: async () => ({ cert, key }) })
}

export function bearerTransport({ url, ca }: Pick<ControlPlane, 'url' | 'ca'>, token: string): HttpsTransport {
  return httpsTransport({ url, ca, credentials: async () => ({ token }) })
}
