// The installed fence programs as the command line tells of them: stand-ins in a folder, and one of ours as it is.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { main } from '../../cli/main.ts'
import type { FenceProgram, Undescribed } from '../../cli/fence-programs.ts'

const test = suite('fence programs')

interface Place {
  readonly folder: string
  write(name: string, script: string, mode?: number): void
  run(...input: string[]): Promise<{ readonly code: number; readonly out: string; readonly err: string }>
}

/** Two folders: all of one, and of the other only what begins with fence_. */
async function inPlace(work: (place: Place) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'fence-programs-test-'))
  for (const name of ['own', 'sbin']) mkdirSync(join(folder, name))
  const said = { out: '', err: '' }
  try {
    await work({
      folder,
      write(name, script, mode = 0o755) {
        writeFileSync(join(folder, name), `#!/bin/sh\ninput=$(cat); echo "$input" >> ${folder}/asked\n${script}`)
        chmodSync(join(folder, name), mode)
      },
      async run(...input) {
        Object.assign(said, { out: '', err: '' })
        const code = await main(['fence-agents', ...input], {
          environment: { LC_ALL: 'C.UTF-8', HOLDFAST_FENCE_AGENTS: `${folder}/own:${folder}/sbin/fence_*` }, isTerminal: false,
          print: (line) => void (said.out += `${line}\n`), complain: (line) => void (said.err += `${line}\n`),
        })
        return { code, ...said }
      },
    })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const parameter = (name: string, more = '', type = 'string', says = '') => `<parameter name="${name}" ${more}><content type="${type}" /><shortdesc lang="en">${says}</shortdesc></parameter>`

const strip = [
  "cat <<'XML'", '<resource-agent name="fence_strip" shortdesc="A strip &amp; its', 'outlets" >',
  parameter('action', 'required="1"'), parameter('plug', 'required="1" obsoletes="port"', 'string', 'Which \u001B[31moutlet'), parameter('port', 'required="1" deprecated="1"'),
  parameter('password', 'required="0"'), parameter('identity_file', 'required="0"'), parameter('version', 'required="0"', 'boolean'), parameter('password_script', 'required="0"'),
  '<actions><action name="on" automatic="0"/><action name="off" /></actions></resource-agent>', 'XML', '',
].join('\n')

const bare = { kind: 'string', options: [], says: '', required: false, secret: false, file: false, refused: false }

test('each is told with its version, actions and parameters, by what it says of itself; nothing but metadata and version was asked of it', () => inPlace(async ({ folder, write, run }) => {
  write('sbin/fence_strip', `case $input in action=metadata) ${strip} ;; "action=monitor\nversion=1") echo 9.8.7 ;; *) exit 1 ;; esac\n`)
  const { code, out } = await run('--json')
  const told = JSON.parse(out) as readonly (FenceProgram | Undescribed)[]
  assert.equal([code, told], [0, [{
    name: 'fence_strip', file: `${folder}/sbin/fence_strip`, version: '9.8.7', says: 'A strip & its outlets', actions: ['on', 'off'],
    parameters: [
      { ...bare, name: 'plug', required: true, says: 'Which [31moutlet' }, { ...bare, name: 'password', secret: true }, { ...bare, name: 'identity_file', file: true },
      { ...bare, name: 'version', kind: 'boolean', refused: true }, { ...bare, name: 'password_script', secret: true, refused: true },
    ],
  }]])
  assert.equal(readFileSync(join(folder, 'asked'), 'utf8'), 'action=metadata\naction=monitor\nversion=1\n')
}))

test('a daemon that stands among them is not started', () => inPlace(async ({ folder, write, run }) => {
  for (const name of ['fence_virtd', 'fence_sanlockd']) write(`sbin/${name}`, 'exit 0\n')
  write('sbin/fence_strip', `[ "$input" = action=metadata ] || exit 1\n${strip}`)
  const { out } = await run('--json')
  assert.equal((JSON.parse(out) as readonly FenceProgram[]).map(({ name }) => name), ['fence_strip'])
  assert.equal(readFileSync(join(folder, 'asked'), 'utf8').split('\n').filter((line) => line === 'action=metadata').length, 1)
}))

test('for people: a program in two lines, and by its name with each parameter', () => inPlace(async ({ folder, write, run }) => {
  write('own/relay', `[ "$input" = action=metadata ] || exit 1\n${strip}`)
  assert.is((await run()).out, 'relay   A strip & its outlets\n    on off; needs plug; secret password; 5 parameters\n')
  assert.is((await run('relay')).out, [
    'relay   A strip & its outlets', '    on off; needs plug; secret password; 5 parameters', `    ${folder}/own/relay`, '    plug             string   required        Which [31moutlet',
    '    password         string   secret', '    identity_file    string   file', '    version          boolean  refused', '    password_script  string   secret refused', '',
  ].join('\n'))
}))

test('what cannot be run and what may not be is not listed; one that does not say what it is is, with the reason', () => inPlace(async ({ write, run }) => {
  write('own/notes', 'echo', 0o644)
  write('sbin/reboot', strip)
  write('own/mute', 'echo "no module named pexpect" >&2; exit 1')
  write('own/terse', 'echo hello')
  const { code, out } = await run()
  assert.equal([code, out], [0, '‼ mute   does not say what it is: exit 1: no module named pexpect\n‼ terse   does not say what it is: what it says of itself has no parameters\n'])
}))

test('where there is none, or none of that name, it says where it looked', () => inPlace(async ({ folder, write, run }) => {
  assert.equal(await run(), { code: 1, out: '', err: `there is no fence program in ${folder}/own, ${folder}/sbin/fence_*\n` })
  write('own/relay', strip)
  assert.match((await run('rely')).err, /^there is no fence program rely in /)
  assert.is((await run('relay', 'more')).code, 2)
}))

test('one of ours bears the version of the product, and is found beside the command', async () => {
  const lines: string[] = []
  const code = await main(['fence-agents', 'nut', '--json'], { environment: {}, isTerminal: false, print: (line) => void lines.push(line), complain: (line) => void lines.push(line) })
  const [nut] = JSON.parse(lines.join('')) as readonly FenceProgram[]
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }
  assert.equal([code, nut?.name, nut?.version, nut?.actions.includes('list-status')], [0, 'nut', version, true])
  assert.equal(nut?.parameters.filter(({ secret }) => secret).map(({ name }) => name), ['password'])
})

test.run()
