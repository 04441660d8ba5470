// Every fault of a text in one Event, whose note the API server limits: each with its place and what is wrong, as long as there is
// room; of the others the place alone, and behind that their number. All of them stand in the log.

/** Bytes of an Event's note. */
export const noteLimit = 1024

/** A sentence begins with its place: `ConfigMap NAME, KEY, line N: …`, or the path of a field. */
export function faultNote(head: string, sentences: readonly string[]): string {
  const told = sentences.map((sentence, index) => sentence.slice(sharedStart(sentence, sentences[index - 1])))
  for (let whole = told.length; whole > 0; whole -= 1) {
    const note = noteOf(head, told, whole, told.length)
    if (fits(note)) return note
  }
  for (let named = told.length; named > 0; named -= 1) {
    const note = noteOf(head, told, 0, named)
    if (fits(note)) return note
  }
  return `${head}: ${told.length} faults, told in the coordinator's log`
}

function noteOf(head: string, told: readonly string[], whole: number, named: number): string {
  const places = told.slice(whole, named).map(placeOf)
  const also = places.length === 0 ? [] : [`${whole === 0 ? 'wrong' : 'also wrong'}: ${places.join('; ')}`]
  const rest = named === told.length ? [] : [`and ${told.length - named} more`]
  const short = also.length + rest.length === 0 ? [] : ["all of it in the coordinator's log"]
  return `${head}: ${[...told.slice(0, whole), ...also, ...rest, ...short].join('; ')}`
}

function fits(note: string): boolean {
  return Buffer.byteLength(note) <= noteLimit
}

function placeOf(sentence: string): string {
  return sentence.split(': ', 1)[0] ?? ''
}

/** The ConfigMap is named once for all of its faults in a row. */
function sharedStart(sentence: string, before: string | undefined): number {
  const start = /^ConfigMap [^,]+, /.exec(sentence)?.[0] ?? ''
  return before?.startsWith(start) === true ? start.length : 0
}
