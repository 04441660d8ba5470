import type { Credentials, User } from './certificates.ts'

/** A kubeconfig that holds everything inside itself, so it may be copied anywhere. JSON is YAML too. */
export function kubeconfigText(user: User, url: string, credentials: Credentials): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'holdfast', cluster: { server: url, 'certificate-authority-data': base64(credentials.ca) } }],
    users: [
      {
        name: user,
        user: {
          'client-certificate-data': base64(credentials.cert),
          'client-key-data': base64(credentials.key),
        },
      },
    ],
    contexts: [{ name: 'holdfast', context: { cluster: 'holdfast', user } }],
    'current-context': 'holdfast',
  }, null, 2)
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64')
}
