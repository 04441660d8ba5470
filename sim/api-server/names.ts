// How names, label keys and label values may look, in the real server's words.
export const subdomainRule = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
export const labelRule = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
const nameRule = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
const valueRule = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"

const subdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/
const label = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/
const part = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/

export function subdomainFault(name: string): string | undefined {
  if (name.length > 253) return 'must be no more than 253 bytes'
  return subdomain.test(name) ? undefined : subdomainRule
}

export function labelFault(name: string): string | undefined {
  if (name.length > 63) return 'must be no more than 63 bytes'
  return label.test(name) ? undefined : labelRule
}

/** No kind's name may be one of these, whatever else it may be. */
export function pathSegmentFault(name: string): string | undefined {
  if (name === '.' || name === '..') return `may not be '${name}'`
  const bad = ['/', '%'].find((letter) => name.includes(letter))
  return bad === undefined ? undefined : `may not contain '${bad}'`
}

export function qualifiedNameFault(key: string): string | undefined {
  const parts = key.split('/')
  const name = parts.pop() ?? ''
  if (parts.length > 1) return `a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`
  if (parts[0] === '') return 'prefix part must be non-empty'
  if (parts[0] !== undefined && !subdomain.test(parts[0])) return `prefix part ${subdomainRule}`
  if (name === '') return 'name part must be non-empty'
  if (name.length > 63) return 'name part must be no more than 63 bytes'
  return part.test(name) ? undefined : nameRule
}

export function labelValueFault(value: string): string | undefined {
  if (value.length > 63) return 'must be no more than 63 bytes'
  return value === '' || part.test(value) ? undefined : valueRule
}
