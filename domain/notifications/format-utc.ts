/** Formats a time for an email: `2026-12-01 15:00 UTC`. */
export function formatUtc(time: Date): string {
  return `${time.toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}
