// Cuts a piece out of the product as its files are loaded, in a process or thread of the search and nowhere else: the product
// itself has no switch to be less safe by.
import { registerHooks } from 'node:module'
import { defences, type Cut } from './defences.ts'

/** Everything imported from now on lacks the defences, several joined by `+`. */
export function cutOut(name: string): () => void {
  return cutAway(cutsOf(name))
}

export function cutsOf(name: string): readonly Cut[] {
  return name.split('+').flatMap((one) => {
    const defence = defences.find((other) => other.name === one)
    if (defence === undefined) throw new Error(`there is no defence ${one}; there are: ${defences.map((other) => other.name).join(', ')}`)
    return defence.cuts
  })
}

/** Throws, where the file is imported, when the product has changed so that there is nothing to cut. The answer is for when all of
 *  the product was imported: it throws if a file was there before the cut, and so is whole. */
export function cutAway(cuts: readonly Cut[]): () => void {
  const left = new Set(cuts)
  registerHooks({
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context)
      const own = cuts.filter(({ file }) => url.endsWith(`/${file}`))
      if (own.length === 0 || loaded.source === undefined || loaded.source === null) return loaded
      const text = typeof loaded.source === 'string' ? loaded.source : new TextDecoder().decode(loaded.source)
      for (const cut of own) left.delete(cut)
      return { ...loaded, source: own.reduce((so, { file, take, put }) => replaceOnce(so, take, put, file), text) }
    },
  })
  return () => {
    const [whole] = left
    if (whole !== undefined) throw new Error(`${whole.file} was not cut: it was imported before, or not at all`)
  }
}

export function replaceOnce(text: string, take: string, put: string, file: string): string {
  const parts = text.split(take)
  if (parts.length !== 2) throw new Error(`${file} has ${parts.length - 1} places that read: ${take}`)
  return parts.join(put)
}
