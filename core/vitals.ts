// How full and how hot a node is, as its agent told it last: raw material for whoever decides what is to be done about it. What it comes to
// here is a *strain*: a vital beyond its limit, which ends only well below it, so that one that hovers is no news every minute.
export interface Vitals {
  /** Shares in use, in percent, of the file system of kubelet's folder. */
  readonly disk?: number
  readonly inodes?: number
  /** What cannot be given to a new process, in percent. */
  readonly memory?: number
  /** Of the hottest processor, in degrees Celsius. */
  readonly temperature?: number
  /** Processes that run or want to, for each core. */
  readonly load?: number
}

export type Strain = keyof Vitals

/** Beyond the first it is a strain, at the second and below it is none any more. */
const limits: Readonly<Record<Strain, readonly [number, number]>> = {
  disk: [90, 85], inodes: [90, 85], memory: [95, 90], temperature: [95, 85], load: [4, 2],
}

export const vitalNames = ['disk', 'inodes', 'memory', 'temperature', 'load'] as const satisfies readonly Strain[]

/** A vital that nobody tells any more is no strain: what cannot be seen is told apart, by its absence. */
export function strainsOf(vitals: Vitals, before: readonly Strain[]): readonly Strain[] {
  return vitalNames.filter((name) => {
    const value = vitals[name]
    const [begins, ends] = limits[name]
    return value !== undefined && value > (before.includes(name) ? ends : begins)
  })
}
