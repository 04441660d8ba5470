// The page's own script: listens to the replica, and draws what it says.
import { draw, h } from './draw.js'
import { first } from './first.js'

let { state } = first
/** The replica's clock over this browser's. */
let ahead = first.now - Date.now()
let lost = false

const stream = new EventSource('/api/events')
stream.addEventListener('message', ({ data }) => {
  const news = JSON.parse(data)
  state = news.state
  ahead = news.now - Date.now()
  lost = false
  show()
})
stream.addEventListener('error', () => {
  lost = true
  show()
})
setInterval(show, 1_000)
// The rest of this file must be there before it can draw.
queueMicrotask(show)

document.addEventListener('click', async ({ target }) => {
  const button = target instanceof Element ? target.closest('button[data-lever]') : null
  if (button === null) return
  button.disabled = true
  const { node, lever } = button.dataset
  try {
    const answer = await fetch(`/world/${encodeURIComponent(node)}/${encodeURIComponent(lever)}`, { method: 'POST', headers: { 'x-holdfast-world': 'lever' } })
    if (!answer.ok) button.title = await answer.text()
  } finally {
    button.disabled = false
  }
})

function show() {
  const connection = document.getElementById('connection')
  connection.textContent = lost ? 'not connected' : 'live'
  connection.className = lost ? 'bad' : 'good'
  document.body.classList.toggle('stale', lost)
  draw(document.getElementById('replica'), h('b', {}, state.replica), state.leads ? ' leads ' : ' follows ', buttons(state.levers, 'replicas'))
  draw(document.getElementById('glance'), glance())
  draw(document.getElementById('nodes'), nodes())
  draw(document.getElementById('incidents'), incidents())
  document.title = `${glyphs[state.glance.is]} Holdfast`
}

const glyphs = { well: '✔', acting: '●', held: '‼', trouble: '▲', starting: '◌' }

function glance() {
  const { glance: { is, sentence }, counts, pause, policies } = state
  return h('div', { class: `glance is-${is}` },
    h('p.sentence', {}, h('span.glyph', { 'aria-hidden': 'true' }, glyphs[is]), ' ', sentence),
    pause !== undefined && h('p.paused', {}, h('b', {}, 'Paused'), ` by ${pause.by}: ${pause.reason}`),
    h('dl.counts', {},
      count('nodes', counts.nodes), count('alive', counts.alive, counts.alive === counts.nodes ? 'good' : ''), count('silent', counts.silent, counts.silent > 0 ? 'bad' : ''),
      count('fencing', counts.fencing, counts.fencing > 0 ? 'busy' : ''), count('quarantined', counts.quarantined, counts.quarantined > 0 ? 'warn' : ''),
      count('held', counts.held, counts.held > 0 ? 'warn' : ''),
      count('paths verified', `${counts.paths.verified}/${counts.paths.all}`, counts.paths.verified === counts.paths.all ? (counts.paths.all > 0 ? 'good' : 'warn') : 'warn')),
    h('p.policies', {}, policies.length === 0 ? 'No policy: nodes are only watched.' : policies.map((policy, index) => [
      index > 0 && ' · ', 'policy ', h('b', {}, policy.name), ` ${policy.profile}, ${policy.mode}, ${policy.nodeDownPodDeletionPolicy}`,
      policy.pause !== undefined && h('span.paused', {}, ', ', h('b', {}, 'paused'), ` by ${policy.pause.by}: ${policy.pause.reason}`),
    ])))
}

function count(name, value, tone = '') {
  return h('div', { class: `count ${tone}`.trim() }, h('dd', {}, value), h('dt', {}, name))
}

const probes = {
  answered: 'heard to answer', unanswered: 'does not answer: its silence proves nothing', unasked: 'not asked yet',
  nowhere: 'cannot be asked, the Node names no IP address: its silence proves nothing',
}
const percent = (share) => `${share} %`
const vitals = [['disk', percent], ['inodes', percent], ['memory', percent], ['temperature', (degrees) => `${degrees} °C`], ['load', (many) => `${many} a core`]]
const verdictGlyphs = { alive: '✔', unknown: '◌', ill: '◐', suspect: '◷', dead: '✖' }

function nodes() {
  const cards = state.nodes.map((node) => {
    const tone = node.incident !== undefined ? 'busy' : node.verdict === 'alive' ? (node.quarantine ? 'warn' : 'good') : node.verdict === 'dead' ? 'bad' : 'warn'
    return h('article', { key: node.name, class: `card ${tone}` },
      h('header', {},
        h('h3', {}, node.name), h('span.zone', {}, node.zone),
        h('span', { class: `pill ${node.verdict === 'alive' ? 'good' : node.verdict === 'dead' ? 'bad' : 'warn'}` }, `${verdictGlyphs[node.verdict]} ${node.verdict}`)),
      node.detail !== undefined && h('p.detail', {}, node.detail),
      h('ul.facts', {},
        fact('Ready', node.ready, node.ready === 'True' ? 'good' : 'warn'),
        node.silentSince !== undefined && fact('silent', `for ${span(now() - Date.parse(node.silentSince))}`, 'bad'),
        node.gaveUp && h('li.chip.bad', {}, 'gave up its workloads'),
        node.quarantine && h('li.chip.warn', {}, 'quarantine'),
        node.outOfService && h('li.chip.bad', {}, 'out-of-service'),
        node.gone && h('li.chip.bad', {}, 'Node object gone'),
        vitals.map(([name, of]) => node.vitals?.[name] !== undefined && fact(name, of(node.vitals[name]), node.strains.includes(name) ? 'warn' : '')),
        fact('policy', node.policy, node.policy === 'unselected' || node.policy === 'policy-conflict' ? 'warn' : '')),
      h('ul.paths', {},
        node.paths.length === 0 && h('li.warn', {}, '‼ no fence path'),
        node.paths.map((path) => h('li', { class: pathTone(path), title: path.evidence },
          `${path.state === 'verified' && path.identity === 'proven' ? '✔' : path.state === 'mismatch' || path.state === 'marked' ? '✖' : '‼'} `,
          h('b', {}, path.method), ` ${path.agent} · ${path.state}, identity ${path.identity}`)),
        h('li', { class: node.probe === 'answered' ? 'good' : 'warn' }, `${node.probe === 'answered' ? '✔' : '‼'} `, h('b', {}, 'kubelet port'), ` ${probes[node.probe]}`),
        node.faults.map((fault) => h('li.bad', {}, `✖ ${fault}`))),
      node.pods !== undefined && h('ul.pods', { 'aria-label': 'pods' },
        node.pods.length === 0 && h('li.none', {}, 'no pods'),
        node.pods.map((pod) => h('li', { key: pod.name, class: podTone(pod), title: `${pod.phase}${pod.terminating ? ', terminating' : ''}${pod.volumes ? ', with a volume' : ''}` },
          pod.volumes && h('span', { 'aria-hidden': 'true' }, '⛁ '), pod.name))),
      node.fates !== undefined && h('ul.pods', { 'aria-label': 'what became of its pods and volumes' },
        node.fates.map(({ is, key, name, fate }) => h('li', { key, class: fate === 'freed' || fate === 'released' ? 'good' : 'warn' },
          is === 'volume' && h('span', { 'aria-hidden': 'true' }, '⛁ '), `${name} ${fate}`))),
      node.volumes.length > 0 && h('p.volumes', {}, `${node.volumes.length} ${node.volumes.length === 1 ? 'volume' : 'volumes'} attached`),
      node.holds.map(hold),
      node.levers !== undefined && node.levers.length > 0 && h('p.levers', {}, buttons(node.levers, node.name)))
  })
  return [
    h('div.cards', {}, cards),
    state.nodesLeft > 0 && h('p.empty', {}, `${state.nodesLeft} more nodes are well and not shown.`),
  ]
}

function buttons(levers, node) {
  return (levers ?? []).map((lever) => h('button', { type: 'button', key: lever.name, 'data-lever': lever.name, 'data-node': node }, lever.label))
}

function fact(name, value, tone = '') {
  return h('li', { class: `chip ${tone}`.trim() }, h('span', {}, `${name} `), value)
}

function pathTone({ state: audit, identity }) {
  if (audit === 'mismatch' || audit === 'marked' || identity === 'mismatch') return 'bad'
  return audit === 'verified' && identity === 'proven' ? 'good' : 'warn'
}

function podTone({ phase, terminating }) {
  if (terminating || phase === 'Failed') return 'bad'
  return phase === 'Running' ? 'good' : 'warn'
}

function hold({ because, detail, lifts, since, stuck }) {
  return h('div', { class: stuck ? 'hold' : 'hold busy' },
    h('p', {}, h('b', {}, stuck ? `‼ held: ${because}` : `◷ ${because.replaceAll('-', ' ')}`), since !== undefined && ` for ${span(now() - Date.parse(since))}`),
    h('p', {}, `${detail}.`), h('p', {}, h('span.muted', {}, 'Lifted by: '), lifts))
}

/** The way through an incident, by the words of its timeline. */
const steps = [
  ['opened', ({ what }) => what === 'opened'],
  ['ordered off', ({ what }) => what === 'ordered off'],
  ['proven', ({ what }) => what === 'proven'],
  ['tainted', ({ what }) => what === 'tainted'],
  ['pods freed', ({ what }) => what === 'freed'],
  ['volumes released', ({ what }) => what === 'volumes released'],
  ['taint off', ({ what, detail }) => what === 'untainted' && detail.startsWith('node.kubernetes.io/out-of-service')],
  ['ordered on', ({ what }) => what === 'ordered on'],
  ['quarantine lifted', ({ what, detail }) => what === 'untainted' && detail.startsWith('holdfast.dev/quarantine')],
  ['closed', ({ what }) => what === 'closed'],
]

function incidents() {
  if (state.incidents.length === 0) return h('p.empty', {}, 'None. When a node falls silent, everything that is done about it, and why, stands here.')
  return [
    state.incidents.map((incident) => {
      const over = incident.phase === 'Final'
      const [begin] = incident.timeline
      const began = begin === undefined ? now() : Date.parse(begin.at)
      const last = incident.timeline.at(-1)
      const tone = over ? (incident.outcome === 'Void' ? 'bad' : 'good') : incident.holds.some(({ stuck }) => stuck) ? 'warn' : 'busy'
      return h('article', { key: incident.name, class: `incident ${tone}` },
        h('header', {},
          h('h3', {}, incident.node), h('span', { class: `pill ${tone}` }, over ? `${incident.outcome ?? 'Final'}` : `${incident.phase}: ${incident.step}`),
          h('span.muted', {}, `${incident.cause} · ${over ? `took ${span(Date.parse(last?.at ?? '') - began)}` : `for ${span(now() - began)}`} · policy ${incident.policy} (${incident.profile})`),
          h('code.muted', {}, incident.name)),
        way(incident, began),
        incident.proof !== undefined && h('div.proof', {},
          h('p', {}, h('b', {}, `✔ proven: ${incident.proof.kind}`), ` at ${offset(incident.proof.at, began)}${byLevel(incident.proof)}`),
          h('ul', {}, incident.proof.evidence.map((one) => h('li', {}, h('span.muted', {}, one.source), ` ${one.word}`)))),
        incident.voided.map((voided) => h('div.hold.bad', {}, h('p', {}, h('b', {}, voided.how === 'lapsed' ? '✖ a proof has lapsed' : '✖ a proof was shown false'), ` ${offset(voided.at, began)}: ${voided.evidence}`))),
        incident.holds.map(hold),
        h('div.columns', {},
          list('Attempts', incident.attempts, (attempt) => h('li', { key: attempt.id }, h('b', {}, `${attempt.method} ${attempt.action}`), ` ${attempt.result}`, attempt.endedAt !== undefined && ` in ${span(Date.parse(attempt.endedAt) - Date.parse(attempt.startedAt))}`,
            attempt.reason !== undefined && h('span.muted', {}, ` ${attempt.reason}`))),
          list('Pods', incident.pods, (pod) => h('li', { key: pod.uid }, `${pod.namespace}/${pod.name} `, h('span', { class: pod.fate === 'freed' ? 'good' : 'muted' }, pod.fate))),
          list('Volumes', incident.volumes, (volume) => h('li', { key: volume.attachment }, `${volume.volume} `, h('span', { class: volume.fate === 'released' ? 'good' : 'warn' }, volume.fate)))),
        h('details', { key: 'timeline', open: over ? undefined : true }, h('summary', {}, `Timeline, ${incident.timeline.length} moments`),
          h('ol.timeline', {}, incident.timeline.map((moment, index) => h('li', { key: `${index} ${moment.at}` },
            h('time', { datetime: moment.at, title: moment.at }, offset(moment.at, began)), h('b', {}, moment.what), h('span', {}, moment.detail))))))
    }),
    state.incidentsLeft > 0 && h('p.empty', {}, `${state.incidentsLeft} older ones: kubectl get nodefence`),
  ]
}

/** A person's word, a crash kernel's, a watchdog and a driver prove without any level. */
function byLevel({ level, methods }) {
  return level < 0 ? '' : `, level ${level + 1} (${methods.join(', ')})`
}

function way({ timeline }, began) {
  const found = steps.map(([name, is]) => ({ name, moment: timeline.find(is) }))
  const over = timeline.some(({ what }) => what === 'closed')
  const done = found.filter(({ moment }) => moment !== undefined).toSorted((one, other) => timeline.indexOf(one.moment) - timeline.indexOf(other.moment))
  // What was not needed is not ahead any more.
  const left = over ? [] : found.filter(({ moment }) => moment === undefined)
  return h('ol.way', {}, [...done, ...left].map(({ name, moment }) =>
    h('li', { key: name, class: moment === undefined ? 'ahead' : 'done' }, h('span', {}, name), h('time', {}, moment === undefined ? '' : offset(moment.at, began)))))
}

function list(title, items, item) {
  return items.length > 0 && h('div', {}, h('h4', {}, title), h('ul', {}, items.map(item)))
}

function now() {
  return Date.now() + ahead
}

function offset(at, began) {
  const seconds = (Date.parse(at) - began) / 1_000
  return `${seconds < 0 ? '−' : '+'}${Math.abs(seconds).toFixed(1)} s`
}

function span(milliseconds) {
  const seconds = Math.max(0, milliseconds / 1_000)
  if (!Number.isFinite(seconds)) return ''
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`
  return `${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} min`
}
