/**
 * Converts a local time to UTC.
 *
 * @param local such as `2026-11-24T15:00:00`.
 * @param zone a name of the IANA time zone database, possibly below a prefix (`/freeassociation.sourceforge.net/Europe/Berlin`).
 * @returns null if the zone is unknown or the time is none.
 */
export function toUtc(local: string, zone: string): string | null {
  const wanted = Date.parse(`${local}Z`);
  const name = /(?:[A-Za-z_]{1,20}\/)?[A-Za-z_+0-9-]{1,30}$/.exec(zone.slice(-60))?.[0];
  if (Number.isNaN(wanted) || name === undefined) return null;
  const format = createFormat(name);
  if (format === null) return null;
  // The offset at the first guess may be that of the other side of a change; the second guess settles it.
  const guess = wanted - (readLocal(format, wanted) - wanted);
  const second = guess - (readLocal(format, guess) - wanted);
  return new Date(second).toISOString();
}

function createFormat(timeZone: string): Intl.DateTimeFormat | null {
  try {
    return new Intl.DateTimeFormat('en-CA', {
      timeZone,
      dateStyle: 'short',
      timeStyle: 'medium',
      hourCycle: 'h23',
    });
  } catch {
    return null;
  }
}

/** The local time at an instant, as if it were UTC. */
function readLocal(format: Intl.DateTimeFormat, at: number): number {
  const [date = '', time = ''] = format.format(at).split(', ');
  return Date.parse(`${date}T${time}Z`);
}
