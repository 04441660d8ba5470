// The CustomResourceDefinition itself: what is filled in and what is refused.
import { at, isObject, listAt, objectAt, textAt } from './json.ts'
import type { Resource } from './json.ts'
import type { Rules } from './kind.ts'
import { required, wrong } from './refusal.ts'
import type { Cause } from './refusal.ts'

export const customKindRules: Rules = {
  defaults(definition) {
    const spec = objectAt(definition, 'spec')
    const names = objectAt(spec, 'names')
    definition['spec'] = spec
    spec['names'] = names
    spec['conversion'] ??= { strategy: 'None' }
    if (textAt(names, 'kind') === '') return
    names['singular'] ??= textAt(names, 'kind').toLowerCase()
    names['listKind'] ??= `${textAt(names, 'kind')}List`
  },
  prepareCreate(definition, ground) {
    const now = ground.now()
    // The real server's controllers write this within a second of the create; here they have done it already.
    definition['status'] = {
      conditions: [
        { type: 'NamesAccepted', status: 'True', lastTransitionTime: now, reason: 'NoConflicts', message: 'no conflicts found' },
        { type: 'Established', status: 'True', lastTransitionTime: now, reason: 'InitialNamesAccepted', message: 'the initial names have been accepted' },
      ],
      acceptedNames: structuredClone(objectAt(definition, 'spec', 'names')),
      storedVersions: listAt(definition, 'spec', 'versions').flatMap((version) => (at(version, 'storage') === true ? [textAt(version, 'name')] : [])),
    }
    return undefined
  },
  prepareUpdate(next, old) {
    next['status'] = old['status']
  },
  prepareStatus(next, old) {
    next['spec'] = old['spec']
  },
  check: (next, old) => [...definitionFaults(next), ...(old === undefined ? [] : fixedFaults(next, old))],
}

function definitionFaults(definition: Resource): Cause[] {
  const spec = objectAt(definition, 'spec')
  const versions = listAt(spec, 'versions')
  const wanted = `${textAt(spec, 'names', 'plural')}.${textAt(spec, 'group')}`
  const scope = textAt(spec, 'scope')
  const stored = versions.filter((version) => at(version, 'storage') === true).length
  return [
    ...(definition.metadata.name === wanted ? [] : [wrong('metadata.name', definition.metadata.name ?? '', 'must be spec.names.plural+"."+spec.group')]),
    ...(['names.plural', 'names.kind', 'group'].flatMap((path) => (textAt(spec, ...path.split('.')) === '' ? [required(`spec.${path}`)] : []))),
    ...(scope === 'Cluster' || scope === 'Namespaced' ? [] : [scope === '' ? required('spec.scope') : wrong('spec.scope', scope, 'must be Cluster or Namespaced')]),
    ...(stored === 1 ? [] : [wrong('spec.versions', stored, 'must have exactly one version marked as storage version')]),
    ...versions.flatMap((version, index) => (isObject(at(version, 'schema', 'openAPIV3Schema')) ? [] : [required(`spec.versions[${index}].schema.openAPIV3Schema`, 'schemas are required')])),
  ]
}

function fixedFaults(next: Resource, old: Resource): Cause[] {
  return ['scope', 'group'].flatMap((field) => (at(next, 'spec', field) === at(old, 'spec', field) ? [] : [wrong(`spec.${field}`, at(next, 'spec', field), 'field is immutable')]))
}
