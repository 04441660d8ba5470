import { join } from 'node:path'

import type { Certificates, User } from './certificates.ts'
import type { Options } from './control-plane.ts'

export type Name = 'etcd' | 'kube-apiserver' | 'kube-controller-manager' | 'kube-scheduler'
export type Ports = Readonly<Record<'etcd' | 'etcdPeer' | 'apiServer' | 'controllerManager' | 'scheduler', number>>

type Invocation = Readonly<{
  args: readonly string[]
  /** Whose kubeconfig it needs on top, if it is a client of the apiserver. */
  clientOf?: User
}>

export function programOf(
  name: Name, ports: Ports, certificates: Certificates, dir: string, options: Options,
): Invocation {
  const invocation = ordinary(name, ports, certificates, dir, options)
  return { ...invocation, args: [...invocation.args, ...(options.flags?.[name] ?? [])] }
}

function ordinary(
  name: Name, ports: Ports, certificates: Certificates, dir: string, options: Options,
): Invocation {
  switch (name) {
    case 'etcd':
      return { args: etcdFlags(ports, dir) }
    case 'kube-apiserver':
      return { args: apiServerFlags(ports, certificates, options) }
    case 'kube-controller-manager':
      return { args: controllerManagerFlags(ports, certificates, options), clientOf: 'system:kube-controller-manager' }
    case 'kube-scheduler':
      return { args: [...servingFlags(ports.scheduler), '--leader-elect=false'], clientOf: 'system:kube-scheduler' }
  }
}

function etcdFlags(ports: Ports, dir: string): readonly string[] {
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

function apiServerFlags(ports: Ports, certificates: Certificates, options: Options): readonly string[] {
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
    ...tolerationFlags(options.tolerationMs),
  ]
}

function tolerationFlags(tolerationMs: number | undefined): readonly string[] {
  if (tolerationMs === undefined) return []
  const seconds = Math.round(tolerationMs / 1000)
  return [`--default-not-ready-toleration-seconds=${seconds}`, `--default-unreachable-toleration-seconds=${seconds}`]
}

function controllerManagerFlags(ports: Ports, certificates: Certificates, options: Options): readonly string[] {
  return [
    ...servingFlags(ports.controllerManager),
    '--leader-elect=false',
    '--use-service-account-credentials',
    `--service-account-private-key-file=${certificates.serviceAccountKeyFile}`,
    `--root-ca-file=${certificates.caFile}`,
    ...(options.gracePeriodMs === undefined ? [] : [`--node-monitor-grace-period=${options.gracePeriodMs}ms`]),
  ]
}

function servingFlags(port: number): readonly string[] {
  return ['--bind-address=127.0.0.1', `--secure-port=${port}`]
}

// Without TLS: it is reached on loopback only, and holds nothing but test data.
function etcdUrl(ports: Ports): string {
  return `http://127.0.0.1:${ports.etcd}`
}
