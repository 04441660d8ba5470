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
}
