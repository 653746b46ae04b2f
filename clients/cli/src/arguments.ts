import { InvalidArgumentError } from 'commander';

/** Reads options. What they throw becomes a usage error with the name of the option. */

export function positiveInteger(text: string): number {
  const value = Number(text);
  if (!/^\d{1,9}$/.test(text) || value < 1)
    throw new InvalidArgumentError('It must be a whole number from 1.');
  return value;
}

export function integer(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('It must be a whole number from 0.');
  return Number(text);
}

/** `30`, `90s`, `10m`, `2h`, in seconds. */
export function duration(text: string): number {
  const [, number = '', unit = 's'] = /^(\d{1,6})([smh]?)$/.exec(text) ?? [];
  const seconds = Number(number) * ({ m: 60, h: 3_600 }[unit] ?? 1);
  if (number === '' || seconds < 1)
    throw new InvalidArgumentError('It must be a time such as 90, 90s, 10m or 2h.');
  return seconds;
}

/** An option that is given several times. */
export const repeated = (text: string, former: string[] | undefined): string[] => [...(former ?? []), text];

/** `a,b`, also given several times. */
export const list = (text: string, former: string[] | undefined): string[] => [
  ...(former ?? []),
  ...text.split(',').map((part) => part.trim()),
];
