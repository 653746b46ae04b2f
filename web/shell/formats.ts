/** Dates and times on pages: UTC, as everywhere in the service. */
export const formatDate = (date: Date): string => date.toISOString().slice(0, 10);
export const formatTime = (date: Date): string => date.toISOString().slice(0, 16).replace('T', ' ');

const BROWSERS: [name: string, pattern: RegExp][] = [
  ['Edge', /\bEdg\//],
  ['Firefox', /\bFirefox\//],
  ['Chrome', /Chrom(?:e|ium)\//],
  ['Safari', /\bSafari\//],
];
const SYSTEMS: [name: string, pattern: RegExp][] = [
  ['iPhone', /\biPhone\b/],
  ['iPad', /\biPad\b/],
  ['Android', /\bAndroid\b/],
  ['Windows', /\bWindows\b/],
  ['Mac', /\bMacintosh\b/],
  ['Linux', /\bLinux\b/],
];

/** A short name of a client, such as `Firefox on Linux`. The person recognizes their sessions by it. */
export function describeClient(userAgent: string | null): string {
  if (userAgent === null) return 'Unknown client';
  const browser = BROWSERS.find(([, pattern]) => pattern.test(userAgent))?.[0];
  const system = SYSTEMS.find(([, pattern]) => pattern.test(userAgent))?.[0];
  if (browser === undefined) return userAgent.slice(0, 60);
  return system === undefined ? browser : `${browser} on ${system}`;
}
