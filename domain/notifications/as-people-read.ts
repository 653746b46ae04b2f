/** A time in a letter: `2026-12-01 15:00 UTC`. */
export function asPeopleRead(time: Date): string {
  return `${time.toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}
