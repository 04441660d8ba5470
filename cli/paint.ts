// Colours and glyphs, or neither: colours only for a person at a terminal, glyphs only where they can be shown.
export interface Paint {
  good(text: string): string
  busy(text: string): string
  warn(text: string): string
  bad(text: string): string
  dim(text: string): string
  bold(text: string): string
  readonly glyphs: Glyphs
}

export interface Glyphs {
  readonly well: string
  readonly busy: string
  readonly warn: string
  readonly bad: string
  readonly waits: string
  readonly ahead: string
  readonly branch: string
  readonly last: string
  readonly trunk: string
}

const full: Glyphs = { well: '√', busy: '●', warn: '‼', bad: '×', waits: '◷', ahead: '◌', branch: '├─', last: '└─', trunk: '│' }
const ascii: Glyphs = { well: 'ok', busy: '*', warn: '!', bad: 'X', waits: '~', ahead: '-', branch: '|-', last: '`-', trunk: '|' }

export function paint({ colours, unicode }: { readonly colours: boolean; readonly unicode: boolean }): Paint {
  const ink = (code: string) => (text: string) => (colours ? `\u001B[${code}m${text}\u001B[0m` : text)
  return { good: ink('32'), busy: ink('36'), warn: ink('33'), bad: ink('31'), dim: ink('2'), bold: ink('1'), glyphs: unicode ? full : ascii }
}

/** A terminal that is asked for UTF-8 can show it; the names are those of every Unix. */
export function showsUnicode(environment: Readonly<Record<string, string | undefined>>): boolean {
  const locale = environment['LC_ALL'] || environment['LC_CTYPE'] || environment['LANG'] || ''
  return /utf-?8/i.test(locale)
}

export function showsColours(environment: Readonly<Record<string, string | undefined>>, isTerminal: boolean): boolean {
  return isTerminal && (environment['NO_COLOR'] ?? '') === '' && environment['TERM'] !== 'dumb'
}
