/** MicroTime as the API server parses it: exactly six digits of a second. JavaScript's three are refused. */
export function microTime(wall: number, micros = 0): string {
  return new Date(wall).toISOString().replace('Z', `${String(Math.floor(micros) % 1000).padStart(3, '0')}Z`)
}
