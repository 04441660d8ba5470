// The agent's own description in the XML that Pacemaker and its tools read (fence-agents' metadata.rng).
import type { AgentDescription, ParameterDescription } from './contract.ts'

export function metadataOf(agent: Pick<AgentDescription, 'name' | 'says' | 'vendor' | 'parameters'>, actions: readonly string[]): string {
  const action: ParameterDescription = { name: 'action', says: 'What to do. There is no default.', type: 'string', required: true, short: 'o' }
  return [
    '<?xml version="1.0" ?>',
    `<resource-agent name="${escaped(agent.name)}" shortdesc="${escaped(firstSentence(agent.says))}" >`,
    `<longdesc>${escaped(agent.says)}</longdesc>`,
    `<vendor-url>${escaped(agent.vendor)}</vendor-url>`,
    '<parameters>',
    ...[action, ...agent.parameters].flatMap(parameterLines),
    '</parameters>',
    '<actions>',
    ...actions.map((name) => (name === 'on' ? '\t<action name="on" automatic="0"/>' : `\t<action name="${escaped(name)}" />`)),
    '</actions>',
    '</resource-agent>',
    '',
  ].join('\n')
}

function parameterLines(parameter: ParameterDescription): string[] {
  const { obsoletes } = parameter
  const now = lines(parameter, parameter.name, obsoletes === undefined ? '' : ` obsoletes="${escaped(obsoletes)}"`)
  return obsoletes === undefined ? now : [...now, ...lines(parameter, obsoletes, ' deprecated="1"')]
}

function lines(parameter: ParameterDescription, name: string, more: string): string[] {
  const long = `--${parameter.name.replaceAll('_', '-')}${parameter.type === 'boolean' ? '' : `=[${parameter.name}]`}`
  const mixed = parameter.short === undefined ? long : `-${parameter.short}, ${long}`
  const byDefault = parameter.default === undefined ? '' : ` default="${escaped(parameter.default)}"`
  return [
    `\t<parameter name="${escaped(name)}" unique="0" required="${parameter.required === true ? 1 : 0}"${more}>`,
    `\t\t<getopt mixed="${escaped(mixed)}" />`,
    `\t\t<content type="${parameter.type}"${byDefault}  />`,
    `\t\t<shortdesc lang="en">${escaped(parameter.says)}</shortdesc>`,
    '\t</parameter>',
  ]
}

function firstSentence(text: string): string {
  return text.split('. ')[0] ?? text
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}
