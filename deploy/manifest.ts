// A Kubernetes object as we hand it over, and a set of them as one file.
import { stringify } from 'yaml'

export interface Manifest {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly labels?: Readonly<Record<string, string>>; readonly annotations?: Readonly<Record<string, string>> }
  readonly [field: string]: unknown
}

/** One YAML file, `---` between. kubectl reads YAML 1.1, in which a bare `off` is false. Long lines stay whole: a folded CEL
 *  rule is hard to read and harder to search. */
export function yamlOf(manifests: readonly Manifest[]): string {
  return manifests.map((manifest) => stringify(manifest, { version: '1.1', lineWidth: 0, aliasDuplicateObjects: false })).join('---\n')
}
