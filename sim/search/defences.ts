// The defences that exist for a schedule, each with the cut that takes it out. A cut is a piece of the product's own text, found
// exactly once, and what stands in its place: a defence that was reworded fails its test until the cut is reworded too.
export interface Defence {
  readonly name: string
  /** What it is there for. */
  readonly against: string
  readonly cuts: readonly Cut[]
}

export interface Cut {
  /** From the repository's root. */
  readonly file: string
  readonly take: string
  readonly put: string
}

export const defences: readonly Defence[] = []
