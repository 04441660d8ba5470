// Draws a wanted tree into the page and touches only what differs, so that a button does not vanish under the finger and an
// opened list stays open. Text is set as text: whatever stands in a cluster's objects, none of it becomes markup.

/** A wanted element: tag with classes (`p.muted`), its attributes, its children. Undefined and false children are left out. */
export function h(tag, attributes = {}, ...children) {
  const [name, ...classes] = tag.split('.')
  return { name, attributes: classes.length > 0 ? { class: classes.join(' '), ...attributes } : attributes, children: shown(children) }
}

/** Makes the element's children the wanted ones. */
export function draw(element, ...children) {
  const wanted = shown(children)
  wanted.forEach((child, index) => place(element, index, child))
  while (element.childNodes.length > wanted.length) element.lastChild.remove()
}

function shown(children) {
  return children.flat(3).filter((child) => child !== undefined && child !== false && child !== '')
}

function place(parent, index, wanted) {
  const there = parent.childNodes[index]
  if (typeof wanted !== 'object') {
    const text = String(wanted)
    if (there?.nodeType === Node.TEXT_NODE) {
      if (there.data !== text) there.data = text
    } else insert(parent, there, document.createTextNode(text))
    return
  }
  const key = wanted.attributes.key
  const same = there?.nodeType === Node.ELEMENT_NODE && there.localName === wanted.name && there.dataset.key === (key === undefined ? undefined : String(key))
  if (same) return dress(there, wanted)
  const known = key === undefined ? undefined : [...parent.children].find((child) => child.dataset.key === String(key) && child.localName === wanted.name)
  const element = known ?? document.createElement(wanted.name)
  // Whether a list is open is ours to say once; from then on it is the reader's.
  if (known === undefined && wanted.attributes.open === true) element.setAttribute('open', '')
  dress(element, wanted)
  // What bears a key moves whole to its new place, and gives way to what comes before it; without one the old is in the way.
  if (there === undefined || key !== undefined || there.dataset?.key !== undefined) parent.insertBefore(element, there ?? null)
  else there.replaceWith(element)
}

function insert(parent, there, text) {
  if (there === undefined || there.dataset?.key !== undefined) parent.insertBefore(text, there ?? null)
  else there.replaceWith(text)
}

function dress(element, { attributes, children }) {
  const wanted = new Map()
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false || name === 'open') continue
    wanted.set(name === 'key' ? 'data-key' : name, value === true ? '' : String(value))
  }
  for (const [name, value] of wanted) if (element.getAttribute(name) !== value) element.setAttribute(name, value)
  for (const name of element.getAttributeNames()) {
    // What the reader has opened, and pressed, stays so.
    if (!wanted.has(name) && name !== 'open' && name !== 'disabled') element.removeAttribute(name)
  }
  draw(element, children)
}
