// Times as Kubernetes writes them. A MicroTime has exactly six digits: the real server cannot decode another number of them,
// and a client that sends three learns it only there.
export function timeText(wall: number): string {
  return new Date(wall).toISOString().replace(/\.\d+Z$/, 'Z')
}

export function microTimeFault(text: string): string | undefined {
  if (/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)$/.test(text)) return undefined
  return `parsing time ${JSON.stringify(text)} as "2006-01-02T15:04:05.000000Z07:00": cannot parse ${JSON.stringify(restOf(text))} as ".000000"`
}

function restOf(text: string): string {
  return text.slice('2006-01-02T15:04:05'.length)
}
