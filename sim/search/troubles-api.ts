// An API server that is away, slow, refuses, loses its answers or its watches' news; controllers behind it that lag or start
// anew.
import type { Ms } from '../../core/model.ts'
import { lasting, type ApiFault, type Ground, type TroubleKind } from './trouble.ts'

type Call = Parameters<NonNullable<ApiFault['strikes']>>[0]

const coordinators = (call: Call): boolean => call.user.name.includes('coordinator')
const writes = (call: Call): boolean => coordinators(call) && call.method !== 'GET'

function everyOther(strikes: (call: Call) => boolean): (call: Call) => boolean {
  let count = 0
  return (call) => strikes(call) && (count += 1) % 2 === 0
}

/** So often of each path. */
function atFirst(times: number, strikes: (call: Call) => boolean): (call: Call) => boolean {
  const counts = new Map<string, number>()
  return (call) => {
    const count = (counts.get(call.path) ?? 0) + 1
    if (!strikes(call) || count > times) return false
    counts.set(call.path, count)
    return true
  }
}

/** Ended, the watches that it broke are taken up again by those who lost them. */
function faulty(fault: () => ApiFault, breaks = false): TroubleKind {
  return {
    class: 'api',
    draw: () => ({ on: '' }),
    begin(ground) {
      const end = ground.api.add(fault())
      if (breaks) ground.on.world.server?.faults.breakWatches()
      return end
    },
  }
}

const lags: Readonly<Record<string, Ms>> = { 'two seconds': 2_000, 'twenty seconds': 20_000 }

const lag: TroubleKind = {
  class: 'api',
  draw: (chance) => ({ on: '', how: chance.pick(Object.keys(lags)) }),
  begin({ on: { world } }, { how = '' }) {
    const set = (span: Ms) => Object.values(world.loops()?.caches ?? {}).forEach((cache) => cache.setLag(span))
    set(lags[how] ?? 0)
    return () => set(0)
  },
}

/** The rest of the world is seen at once, a taint that is gone is not: less than the half minute that is waited for that. */
const oldNodes: TroubleKind = {
  class: 'api',
  draw: (chance) => ({ on: '', how: String(chance.pick([5_000, 15_000, 25_000])) }),
  begin({ on: { world } }, { how }) {
    const set = (span: Ms) => world.loops()?.caches.nodes.setLag(span)
    set(Number(how))
    return () => set(0)
  },
}

/** The balancer gives those whom it strikes to a server whose watch cache is behind, and at the end back to one that is not. */
const behind: TroubleKind = {
  class: 'api', weight: 2,
  draw: (chance) => ({ on: '', how: `${chance.pick([3_000, 10_000, 30_000])} ${chance.pick(['everybody', 'coordinator', 'controllers'])}` }),
  begin(ground, { how = '' }) {
    const [by, whom = ''] = how.split(' ')
    const strikes = (call: Call): boolean => whom === 'everybody' || call.user.name.includes(whom === 'coordinator' ? 'coordinator' : 'controller')
    const { faults } = ground.on.world.server ?? {}
    // What it does not hold nobody can resume from: they list anew, and what they are shown may be older than what they have seen.
    const resumes = (call: Call): boolean => call.watch && call.query.has('resourceVersion') && strikes(call)
    const ends = [ground.api.add({ does: 'lag', by: Number(by), strikes }), ground.api.add({ does: 'answer', status: 410, strikes: atFirst(2, resumes) })]
    faults?.breakWatches(strikes)
    return () => {
      for (const end of ends) end()
      faults?.breakWatches(strikes)
    }
  },
}

function once(act: (ground: Ground) => void): TroubleKind {
  return {
    class: 'api',
    draw: () => ({ on: '' }),
    begin(ground) {
      act(ground)
      return lasting
    },
  }
}

export const apiTroubles: Readonly<Record<string, TroubleKind>> = {
  'the API server is away': faulty(() => ({ does: 'unreachable' }), true),
  'the API server is away for the coordinator': faulty(() => ({ does: 'unreachable', strikes: coordinators })),
  'the API server is slow': faulty(() => ({ does: 'slow', by: 1_500 })),
  'the API server is slow for the coordinator': faulty(() => ({ does: 'slow', by: 700, strikes: coordinators })),
  'every other write conflicts': faulty(() => ({ does: 'answer', status: 409, strikes: everyOther(writes) })),
  'every other request is too many': faulty(() => ({ does: 'answer', status: 429, retryAfterSeconds: 1, strikes: everyOther(coordinators) })),
  'every other request fails': faulty(() => ({ does: 'answer', status: 500, strikes: everyOther(coordinators) })),
  'every other answer is lost': faulty(() => ({ does: 'lose answer', strikes: everyOther(writes) })),
  'watches stall': faulty(() => ({ does: 'stall watch' })),
  'the coordinator\'s watches stall': faulty(() => ({ does: 'stall watch', strikes: coordinators })),
  'watches break': once(({ on }) => on.world.server?.faults.breakWatches()),
  'history is compacted': once(({ on }) => on.world.server?.faults.compact()),
  'the controllers start anew': once(({ on }) => on.world.restartControllers()),
  'the controllers lag': lag,
  'the API server lags behind': behind,
  'the controllers see the nodes late': oldNodes,
  'the API server is away for the controllers': faulty(() => ({ does: 'unreachable', strikes: ({ user }) => user.name === 'system:kube-controller-manager' })),
}
