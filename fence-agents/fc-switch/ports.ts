// The table that `switchshow` of Fabric OS prints, read by the words of its head: a director has one column more, old
// switches have fewer. What a port is doing and whether it may are two things there. *State* is what the light says, and
// reads No_Light of a port that is enabled and whose machine is dark; that a port is disabled stands behind it, as a remark.
// There it may also stand for other reasons, and once, for a segmented link, while the port is online.
export interface Port {
  /** As its commands name it: `7`, or `3/7` on a director. */
  readonly plug: string
  readonly state: string
  readonly remark: string
}

export function portsIn(text: string): readonly Port[] {
  // What follows the last line break may have been cut short, and half a remark is another one.
  const lines = text.split(/\r?\n/).slice(0, -1).map((line) => line.trim())
  const at = lines.findIndex((line) => /^(Index|Area)\s.*\bPort\b.*\bState\b/.test(line))
  if (at === -1) return []
  const columns = (lines[at] ?? '').split(/\s+/)
  const [slot, port, state] = [columns.indexOf('Slot'), columns.indexOf('Port'), columns.indexOf('State')]
  return lines.slice(at + 1).flatMap((line) => {
    const cells = line.split(/\s+/)
    const [inSlot, number, word] = [slot === -1 ? undefined : cells[slot], cells[port] ?? '', cells[state] ?? '']
    if (!/^\d+$/.test(cells[0] ?? '') || !/^\d+$/.test(number) || (inSlot !== undefined && !/^\d+$/.test(inSlot))) return []
    return [{ plug: inSlot === undefined ? number : `${inSlot}/${number}`, state: word, remark: cells.slice(state + 1).join(' ').replace(protocol, '') }]
  })
}

/** What stands under Proto, before the remark. */
const protocol = /^(FC|FCIP|FCOE|GE|VE|Eth)\b ?/i

/** A disabled port never carries a light of its own, so *Online* beside it is a contradiction and no state. */
export function powerOf({ state, remark }: Port, persistent: boolean): 'on' | 'off' | 'unknown' {
  if (!light.has(state)) return 'unknown'
  if (!/\bDisabled\b/i.test(remark)) return 'on'
  const cut = remark === 'Disabled (Persistent)' || (!persistent && remark === 'Disabled')
  return cut && state !== 'Online' ? 'off' : 'unknown'
}

/** The words of the column; any other one shows that the columns are not those that we know. */
const light: ReadonlySet<string> = new Set([
  'Online', 'Offline', 'No_Card', 'No_Module', 'No_Light', 'No_Sync', 'No_SigDet', 'In_Sync', 'Laser_Flt', 'Port_Flt', 'Hard_Flt', 'Diag_Flt', 'Lock_Ref', 'Mod_Inv', 'Mod_Val',
  'Mod_Flt', 'Testing', 'Faulty',
])
