// The XML of AWS's query API, whole or not at all: elements, their text, and the five entities. A document that is not well
// formed is refused, because half of an answer may lack the very element that would have said "running".

export interface Element {
  readonly name: string
  readonly text: string
  readonly children: readonly Element[]
}

interface Open {
  readonly name: string
  text: string
  readonly children: Element[]
}

const deepest = 64
const token = /<\?[^>]*\?>|<!--[\s\S]*?-->|<(\/?)([A-Za-z_][\w.:-]*)((?:\s+[\w.:-]+\s*=\s*(?:"[^"<]*"|'[^'<]*'))*)\s*(\/?)>|([^<]+)/gy

/** Undefined: it is no well-formed document of such XML. */
export function parseXml(text: string): Element | undefined {
  const root: Open = { name: '', text: '', children: [] }
  const open: Open[] = [root]
  let at = 0
  for (const match of text.trim().matchAll(token)) {
    at = match.index + match[0].length
    const [, closing, name, , alone, words] = match
    const top = open.at(-1)
    if (top === undefined) return undefined
    if (words !== undefined) {
      const plain = decoded(words)
      if (plain === undefined) return undefined
      top.text += plain
    } else if (name !== undefined && closing === '/') {
      if (open.length < 2 || top.name !== name) return undefined
      open.pop()
    } else if (name !== undefined) {
      const element: Open = { name, text: '', children: [] }
      top.children.push(element)
      if (alone !== '/') open.push(element)
      if (open.length > deepest) return undefined
    }
  }
  const [only, ...others] = root.children
  return at === text.trim().length && open.length === 1 && others.length === 0 && root.text.trim() === '' ? only : undefined
}

/** The elements at the end of the path, from the children of this one on. */
export function elementsAt(element: Element, ...path: readonly string[]): readonly Element[] {
  return path.reduce<readonly Element[]>((found, name) => found.flatMap((one) => one.children.filter((child) => child.name === name)), [element])
}

/** The text at the end of the path; undefined where it is empty, or not there exactly once. */
export function textAt(element: Element, ...path: readonly string[]): string | undefined {
  const [only, ...others] = elementsAt(element, ...path)
  const text = only?.text.trim() ?? ''
  return text === '' || others.length > 0 ? undefined : text
}

const entities: ReadonlyMap<string, string> = new Map([['lt', '<'], ['gt', '>'], ['amp', '&'], ['quot', '"'], ['apos', '\'']])

function decoded(text: string): string | undefined {
  let known = true
  const plain = text.replace(/&(?:#(\d{1,7})|#x([\dA-Fa-f]{1,6})|(\w+));|&/g, (_, decimal?: string, hex?: string, name?: string) => {
    const code = decimal === undefined ? Number.parseInt(hex ?? '', 16) : Number(decimal)
    const one = name === undefined ? (code <= 0x10_FF_FF ? String.fromCodePoint(code) : undefined) : entities.get(name)
    known &&= one !== undefined
    return one ?? ''
  })
  return known ? plain : undefined
}
