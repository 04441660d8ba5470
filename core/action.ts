// What the core may answer. Looks ask for what the next decision needs and change nothing; deeds change the world; a hold
// is a decision not to act, with its reason. Every deed is safe to repeat: it says what shall be, not what to do next.
import type { Attempt, Cause, DrillSeen, Evidence, HoldReason, IdentitySeen, Outcome, PodFate, Taken } from './incident.ts'
import type { Boot, Method, NodeName, NodeRecord, PodSeen, VolumeSeen } from './model.ts'
import type { Policy } from './policy.ts'
import type { Proof } from './proof.ts'

export type Action = Look | Deed | HoldAction

export type Look =
  /** `again`: beside one that was asked before the first *off* was read, because only words after it count. */
  | { readonly do: 'probe'; readonly node: NodeName; readonly again: boolean }
  | { readonly do: 'askWitnesses'; readonly node: NodeName; readonly witnesses: readonly Witness[]; readonly again: boolean }
  | { readonly do: 'readLease'; readonly node: NodeName }
  | { readonly do: 'readNode'; readonly node: NodeName }
  | { readonly do: 'listPods'; readonly node: NodeName }
  | { readonly do: 'askDevice'; readonly node: NodeName; readonly method: Method; readonly purpose: 'audit' | 'incident' }
  | { readonly do: 'challenge'; readonly node: NodeName }
  /** Ask the agent for a fresh clean report, telling it which pods belong. */
  | { readonly do: 'askClean'; readonly node: NodeName; /** And to stop at once what runs of pods that do not belong. */ readonly stop?: true; /** And to end what is left over of them, in its time. */ readonly cleanUp?: true }

export interface Witness {
  readonly name: string
  readonly kind: 'agent' | 'replica'
}

export type Deed =
  | {
    readonly do: 'open'; readonly node: NodeName; readonly name: string; readonly boot: Boot; readonly cause: Cause
    readonly policy: Policy; readonly evidence: readonly Evidence[]
  }
  /** Write our term on an open incident: from here on an older leader's writes meet a 409. */
  | { readonly do: 'adopt'; readonly node: NodeName; readonly incident: string }
  /** What a person who fences by hand need not write. */
  | { readonly do: 'complete'; readonly node: NodeName; readonly incident: string; readonly taken: Taken }
  /** `alive`: it is meant of a node that is heard, which the record of its incident does not say. */
  | { readonly do: 'fence'; readonly node: NodeName; readonly incident: string; readonly method: Method; readonly level: number; readonly round: number; readonly alive?: true }
  | { readonly do: 'restore'; readonly node: NodeName; readonly incident: string; readonly method: Method; readonly level: number; readonly round: number }
  /** An attempt whose program is not running here and whose span is over: its end is unknown. */
  | { readonly do: 'settle'; readonly node: NodeName; readonly incident: string; readonly attempt: string }
  | { readonly do: 'prove'; readonly node: NodeName; readonly incident: string; readonly proof: Proof }
  /** Nobody permits its boot any more, so that its own watchdog ends it. */
  | { readonly do: 'revoke'; readonly node: NodeName; readonly incident: string }
  /** A crash kernel was heard: whoever leads next waits for its dump as well. */
  | { readonly do: 'announce'; readonly node: NodeName; readonly incident: string; readonly from: string; readonly afterSilence: boolean }
  /** Paths that were off at first: whoever leads next takes what they say on after that for no word of its boot either. */
  | { readonly do: 'noteOff'; readonly node: NodeName; readonly incident: string; readonly methods: readonly Pick<Method, 'name' | 'digest'>[] }
  | { readonly do: 'void'; readonly node: NodeName; readonly incident: string; readonly evidence: string }
  /** The proof is set aside, since nobody can tell any more whether it is so; what it rests on may prove anew, and so may the next level. */
  | { readonly do: 'lapse'; readonly node: NodeName; readonly incident: string; readonly evidence: string }
  /** Without an incident: quarantine alone. */
  | { readonly do: 'taint'; readonly node: NodeName; readonly incident?: string; readonly outOfService: boolean; readonly proof?: Proof }
  /** `recovers`: with this taint the clear ends, and what follows brings the node back. `left`: pods that the clear spared, and why. `cordons`: in the same write. */
  | {
    readonly do: 'untaint'; readonly node: NodeName; readonly incident?: string; readonly key: string; readonly because: string; readonly recovers: boolean
    readonly left?: readonly PodFate[]; readonly cordons?: true
  }
  /** Pods of a node that answers are asked to go in good order; their disruption budgets may say no. */
  | { readonly do: 'evict'; readonly node: NodeName; readonly incident: string; readonly pods: readonly PodSeen[] }
  /** Nothing is asked to go in good order any more: what is left goes with the node. */
  | { readonly do: 'endEviction'; readonly node: NodeName; readonly incident: string; readonly because: string }
  | { readonly do: 'delete'; readonly node: NodeName; readonly incident: string; readonly pods: readonly PodSeen[]; readonly proof: Proof }
  /** The selective release: pods whose objects stay are told that nothing of them runs, then exactly these volumes are struck from what
   *  the node is said to use. Kubernetes' attach/detach controller frees them, and nothing else. Of a Node that is gone there is nothing
   *  to strike them from, and their VolumeAttachments are deleted. */
  | { readonly do: 'detach'; readonly node: NodeName; readonly incident: string; readonly pods: readonly PodSeen[]; readonly volumes: readonly VolumeSeen[]; readonly proof: Proof }
  /** The objects of doomed pods, whose deletion was never made. What they held is free already, so it needs no proof. */
  | { readonly do: 'bury'; readonly node: NodeName; readonly incident: string; readonly pods: readonly PodSeen[] }
  /** The need is over: what was cut is given back. */
  | { readonly do: 'withdraw'; readonly node: NodeName; readonly incident: string; readonly because: string; readonly drill?: DrillSeen }
  /** Every restart that the policy allows was used up: phase Error. */
  | { readonly do: 'exhaust'; readonly node: NodeName; readonly incident: string; readonly because: string }
  | { readonly do: 'close'; readonly node: NodeName; readonly incident: string; readonly outcome: Outcome; readonly because: string; readonly identity?: IdentitySeen }
  /** For others to read: by a condition of the Node, that it is being worked on, or not any more. */
  | { readonly do: 'declare'; readonly node: NodeName; readonly maintenance: boolean }
  | { readonly do: 'record'; readonly node: NodeName; readonly record: Omit<NodeRecord, 'resourceVersion'> }

export interface HoldAction {
  readonly do: 'hold'
  readonly node: NodeName
  readonly incident?: string
  readonly because: HoldReason
  /** A sentence with its numbers. */
  readonly detail: string
  /** What would end it. */
  readonly lifts: string
}

/** Two actions with one key are the same wish: one of them is under way, or the other waits. */
export function keyOf(action: Action): string {
  switch (action.do) {
    case 'askDevice': return `askDevice ${action.node} ${action.method.name}`
    case 'fence': case 'restore': return `order ${action.node} ${action.method.name}`
    case 'probe': case 'askWitnesses': return `${action.do} ${action.node}${action.again ? ' again' : ''}`
    case 'readLease': case 'readNode': case 'listPods': case 'challenge': case 'askClean':
      return `${action.do} ${action.node}`
    case 'record': case 'declare': return `${action.do} ${action.node}`
    case 'hold': return `hold ${action.node} ${action.because}${action.incident === undefined ? '' : ` ${action.incident}`}`
    case 'open': case 'adopt': case 'complete': case 'settle': case 'prove': case 'revoke': case 'announce': case 'noteOff': case 'void': case 'lapse': case 'taint': case 'untaint': case 'evict': case 'endEviction': case 'delete': case 'detach': case 'bury': case 'withdraw': case 'exhaust': case 'close':
      return `deed ${action.node}`
  }
}

export const isLook = (action: Action): action is Look => looks.has(action.do)
const looks: ReadonlySet<string> = new Set(['probe', 'askWitnesses', 'readLease', 'readNode', 'listPods', 'askDevice', 'challenge', 'askClean'])

export type { Attempt }
