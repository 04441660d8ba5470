// Cuts a defence out of the product as its files are loaded, in a process or thread of the search and nowhere else: the product
// itself has no switch to be less safe by.
import { registerHooks } from 'node:module'
import { defences } from './defences.ts'

/** Everything imported from now on lacks the defence. Throws when the product has changed so that there is nothing to cut. */
export function cutOut(name: string): void {
  const wanted = name.split('+').map((one) => {
    const defence = defences.find((other) => other.name === one)
    if (defence === undefined) throw new Error(`there is no defence ${one}; there are: ${defences.map((other) => other.name).join(', ')}`)
    return defence
  })
  registerHooks({
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context)
      const cuts = wanted.flatMap(({ cuts: own }) => own).filter(({ file }) => url.endsWith(`/${file}`))
      if (cuts.length === 0 || loaded.source === undefined || loaded.source === null) return loaded
      const text = typeof loaded.source === 'string' ? loaded.source : new TextDecoder().decode(loaded.source)
      return { ...loaded, source: cuts.reduce((so, { file, take, put }) => replaceOnce(so, take, put, file), text) }
    },
  })
}

export function replaceOnce(text: string, take: string, put: string, file: string): string {
  const parts = text.split(take)
  if (parts.length !== 2) throw new Error(`${file} has ${parts.length - 1} places that read: ${take}`)
  return parts.join(put)
}
