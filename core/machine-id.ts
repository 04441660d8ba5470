// The UUID by which a device and the machine itself name one machine.

/** Firmware older than SMBIOS 2.6, and vSphere and Azure with it, tell a machine's UUID in one order of bytes and the machine's own
 *  system reads it in the other. So each machine has two writings and no third: of all random UUIDs (122 bits) two are taken
 *  for it, and one drawn by chance is its own once in 2^121. */
export function sameMachine(one: string, other: string): boolean {
  const [told, known] = [one.toLowerCase(), other.toLowerCase()]
  return told === known || turned(told) === known
}

/** One for both writings. */
export function machineKey(uuid: string): string {
  const told = uuid.toLowerCase()
  const other = turned(told) ?? told
  return other < told ? other : told
}

const uuidForm = /^([\da-f]{2})([\da-f]{2})([\da-f]{2})([\da-f]{2})-([\da-f]{2})([\da-f]{2})-([\da-f]{2})([\da-f]{2})-([\da-f]{4}-[\da-f]{12})$/

/** The first three fields of a UUID with their bytes turned round. */
function turned(uuid: string): string | undefined {
  return uuidForm.test(uuid) ? uuid.replace(uuidForm, '$4$3$2$1-$6$5-$8$7-$9') : undefined
}
