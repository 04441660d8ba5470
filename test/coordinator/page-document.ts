// The page's own script, run as a browser runs it, in a document with no more to it than that script asks of one.
import { readFileSync } from 'node:fs'
import { runInNewContext } from 'node:vm'
import type { PageState } from '../../coordinator/page-state.ts'

abstract class Part {
  parent: Element | undefined
  abstract readonly textContent: string

  remove(): void {
    this.parent?.exchange(this)
  }

  replaceWith(other: Part): void {
    this.parent?.exchange(this, other)
  }
}

class Text extends Part {
  readonly nodeType = 3
  data: string

  constructor(data: string) {
    super()
    this.data = data
  }

  get textContent(): string {
    return this.data
  }
}

export class Element extends Part {
  readonly nodeType = 1
  readonly localName: string
  readonly classList = { toggle: () => undefined }
  childNodes: Part[] = []
  className = ''
  readonly #attributes = new Map<string, string>()

  constructor(localName: string) {
    super()
    this.localName = localName
  }

  get children(): Element[] {
    return this.childNodes.filter((part) => part instanceof Element)
  }

  get lastChild(): Part | undefined {
    return this.childNodes.at(-1)
  }

  get dataset(): Record<string, string | undefined> {
    return Object.fromEntries([...this.#attributes].filter(([name]) => name.startsWith('data-')).map(([name, value]) => [name.slice(5), value]))
  }

  get textContent(): string {
    return this.childNodes.map((part) => part.textContent).join('')
  }

  set textContent(text: string) {
    this.childNodes = [new Text(text)]
  }

  getAttribute(name: string): string | null {
    return this.#attributes.get(name) ?? null
  }

  getAttributeNames(): string[] {
    return [...this.#attributes.keys()]
  }

  setAttribute(name: string, value: string): void {
    this.#attributes.set(name, value)
  }

  removeAttribute(name: string): void {
    this.#attributes.delete(name)
  }

  insertBefore(part: Part, next: Part | null): void {
    part.remove()
    part.parent = this
    this.childNodes.splice(next === null ? this.childNodes.length : this.childNodes.indexOf(next), 0, part)
  }

  exchange(old: Part, ...by: Part[]): void {
    for (const part of by) {
      part.remove()
      part.parent = this
    }
    old.parent = undefined
    this.childNodes.splice(this.childNodes.indexOf(old), 1, ...by)
  }

  /** It and what is in it, of this name. */
  all(name: string): Element[] {
    return [...(this.localName === name ? [this] : []), ...this.children.flatMap((child) => child.all(name))]
  }
}

export interface OpenPage {
  readonly body: Element
  /** The replica says that this is so now. */
  hears(state: PageState): void
}

export function openPage(state: PageState): OpenPage {
  const body = new Element('body')
  const places = new Map(['replica', 'glance', 'nodes', 'incidents', 'connection'].map((id) => [id, new Element('div')]))
  for (const place of places.values()) body.insertBefore(place, null)
  /** What the script gives to be called: with news, and, once all of it is there, to draw for the first time. */
  const given: { heard?: (event: { data: string }) => void; show?: () => void } = {}
  const globals = {
    document: {
      body, title: '', getElementById: (id: string) => places.get(id), createElement: (name: string) => new Element(name), createTextNode: (data: string) => new Text(data), addEventListener: () => undefined,
    },
    Element, Node: { TEXT_NODE: 3, ELEMENT_NODE: 1 }, setInterval: () => 0, queueMicrotask: (show: () => void) => { given.show = show },
    EventSource: class {
      addEventListener(what: string, heard: (event: { data: string }) => void): void {
        if (what === 'message') given.heard = heard
      }
    },
    first: { state: structuredClone(state), now: Date.now() },
  }
  runInNewContext(['draw.js', 'page.js'].map(script).join('\n'), globals)
  given.show?.()
  return { body, hears: (next) => given.heard?.({ data: JSON.stringify({ state: next, now: Date.now() }) }) }
}

/** Both in one piece, since nobody is there to load the one for the other. */
function script(file: string): string {
  return readFileSync(new URL(`../../coordinator/page/${file}`, import.meta.url), 'utf8').replaceAll(/^import .*$/gm, '').replaceAll(/^export /gm, '')
}
