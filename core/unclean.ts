// A boot that follows one which was cut off. A reboot of two seconds is invisible to Kubernetes: Ready never flips, the pods go on where
// they were, and what the boot before left half done (a staging mount that kubelet forgot, a journal) is met by them. So such a boot is
// quarantined until its node was found clean, on its agent's own word; no incident is made of it.
//
// What stands for "seen already" is the boot in the NodeRecord: it is written once the taint is on, and not before. A leader that is
// killed between the two finds the same facts.
import type { Action } from './action.ts'
import type { Before } from './beat.ts'
import { handsOff } from './brake.ts'
import { hasTaint, quarantineKey } from './clear.ts'
import { othersHands } from './hands.ts'
import { isKubeletsWord, sameBoot, type Boot, type NodeSeen } from './model.ts'
import { policyOf, type Policy } from './policy.ts'
import { hold } from './situation.ts'
import type { Survey } from './survey.ts'

/** Its agent knows of shutdown marks, and found none of the boot that was the last that anybody had on record; and that was another one. */
export function isUnclean({ beat, record, uid }: NodeSeen): boolean {
  // Of five thousand nodes at each tick: what the beat says goes before what would have to be fetched.
  if (beat === undefined || beat.gate === undefined) return false
  // And what is true of nearly none goes before what is true of all.
  return record !== undefined && !sameBoot(record.boot, beat.boot) && record.nodeUid === uid && !isKubeletsWord(record.boot) && !endedWell(beat, record.boot)
}

/** A mark may be older than the boot on record: in that one the disk was full or read-only, or its power went before the disk had taken the
 *  mark. Nobody knows then how it ended, even if it did so in good order. An agent of before it told whose mark it is, is believed. */
function endedWell({ before, beforeBoot }: Before, last: Boot): boolean {
  return before === 'shut down' && (beforeBoot === undefined || sameBoot(beforeBoot, last))
}

/** Whether its owner wants more of us than to watch. A pause is over some day, and so is what others do with the node; then the boot is still what it was. */
export function isGuarded(node: Pick<NodeSeen, 'labels'>, policies: readonly Policy[]): boolean {
  const chosen = policyOf(node, policies)
  return 'policy' in chosen && chosen.policy.mode === 'enforce'
}

export function quarantineUnclean(on: Survey): Action[] {
  return [...on.unclean].flatMap((node): Action[] => {
    const { record, beat, name } = node
    const chosen = policyOf(node, on.policies)
    if (record === undefined || beat === undefined || !('policy' in chosen) || !isGuarded(node, on.policies)) return []
    if (hasTaint(node, quarantineKey)) {
      // Its paths were not asked in this boot yet, nor its port: what the record says of them is of the boots that it names.
      const { resourceVersion: _, probe: __, ...known } = record
      return [{ do: 'record', node: name, record: { ...known, boot: beat.boot, machine: node.machine } }]
    }
    if (on.open.has(name)) return [] // it quarantines the node itself, or ends and leaves that to the next tick
    const off = handsOff(on.seen.self, chosen.policy) ?? othersHands(node)
    return off === undefined ? [{ do: 'taint', node: name, outOfService: false }] : [hold(name, off)]
  })
}
