import { join } from 'node:path'

import type { Certificates, User } from './certificates.ts'

export type Name = 'etcd' | 'kube-apiserver' | 'kube-controller-manager' | 'kube-scheduler'
export type Ports = Readonly<Record<'etcd' | 'etcdPeer' | 'apiServer' | 'controllerManager' | 'scheduler', number>>

export type Settings = Readonly<{
  /** How long a node may be silent before it is NotReady. Real kubelets renew every ten seconds: below 20 s flaps. */
  gracePeriodMs?: number
  /** How long a pod tolerates a node that is not ready or unreachable, where it does not say itself. */
  tolerationMs?: number
  /** Added to a program's own flags; the later of two wins. */
  flags?: Readonly<Partial<Record<Name, readonly string[]>>>
}>

/** What the programs of one control plane share. */
export type Site = Readonly<{ dir: string; ports: Ports; certificates: Certificates; settings: Settings }>

export function flagsOf(name: Name, site: Site): readonly string[] {
  return [...ownFlags(name, site), ...(site.settings.flags?.[name] ?? [])]
}

/** Who a program is to the apiserver, if it is a client of it. */
export function clientOf(name: Name): User | undefined {
  if (name === 'kube-controller-manager' || name === 'kube-scheduler') return `system:${name}`
  return undefined
}

function ownFlags(name: Name, site: Site): readonly string[] {
  switch (name) {
    case 'etcd':
      return etcdFlags(site)
    case 'kube-apiserver':
      return apiServerFlags(site)
    case 'kube-controller-manager':
      return controllerManagerFlags(site)
    case 'kube-scheduler':
      return [...servingFlags(site.ports.scheduler), '--leader-elect=false']
  }
}

function etcdFlags({ ports, dir }: Site): readonly string[] {
  const client = etcdUrl(ports)
  const peer = `http://127.0.0.1:${ports.etcdPeer}`
  return [
    `--data-dir=${join(dir, 'etcd')}`,
    `--listen-client-urls=${client}`,
    `--advertise-client-urls=${client}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=default=${peer}`,
    // The data dies with the run, so nothing is gained by waiting for the disk.
    '--unsafe-no-fsync',
    '--log-level=warn',
  ]
}

function apiServerFlags({ ports, certificates, settings }: Site): readonly string[] {
  return [
    ...servingFlags(ports.apiServer),
    '--advertise-address=127.0.0.1',
    `--etcd-servers=${etcdUrl(ports)}`,
    `--tls-cert-file=${certificates.servingCertFile}`,
    `--tls-private-key-file=${certificates.servingKeyFile}`,
    `--client-ca-file=${certificates.caFile}`,
    '--authorization-mode=Node,RBAC',
    '--enable-admission-plugins=NodeRestriction',
    '--allow-privileged=true',
    '--service-cluster-ip-range=10.0.0.0/24',
    '--service-account-issuer=https://kubernetes.default.svc',
    `--service-account-key-file=${certificates.serviceAccountKeyFile}`,
    `--service-account-signing-key-file=${certificates.serviceAccountKeyFile}`,
    ...tolerationFlags(settings.tolerationMs),
  ]
}

function tolerationFlags(tolerationMs: number | undefined): readonly string[] {
  if (tolerationMs === undefined) return []
  const seconds = Math.round(tolerationMs / 1000)
  return [`--default-not-ready-toleration-seconds=${seconds}`, `--default-unreachable-toleration-seconds=${seconds}`]
}

function controllerManagerFlags({ ports, certificates, settings }: Site): readonly string[] {
  return [
    ...servingFlags(ports.controllerManager),
    '--leader-elect=false',
    '--use-service-account-credentials',
    `--service-account-private-key-file=${certificates.serviceAccountKeyFile}`,
    `--root-ca-file=${certificates.caFile}`,
    ...(settings.gracePeriodMs === undefined ? [] : [`--node-monitor-grace-period=${settings.gracePeriodMs}ms`]),
  ]
}

function servingFlags(port: number): readonly string[] {
  return ['--bind-address=127.0.0.1', `--secure-port=${port}`]
}

// Without TLS: it is reached on loopback only, and holds nothing but test data.
function etcdUrl(ports: Ports): string {
  return `http://127.0.0.1:${ports.etcd}`
}
