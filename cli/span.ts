// A stretch of time for people: two units at most.

export function span(milliseconds: number): string {
  const seconds = Math.max(0, milliseconds / 1_000)
  if (!Number.isFinite(seconds)) return 'an unknown time'
  if (seconds < 60) return `${seconds.toFixed(1)} s`
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`
  return `${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} min`
}
