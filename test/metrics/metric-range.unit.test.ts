import { describe, expect, test } from '@jest/globals';
import { listHours, resolveRange } from '../../domain/metrics/metric-range.ts';

const at = (time: string) => new Date(`2026-03-${time}Z`);
const iso = ({ start, end }: { start: Date; end: Date }) => [start.toISOString(), end.toISOString()];

describe('a range', () => {
  test.each([
    // At 10:20: the current hour and the 23 before.
    [{}, '09T11:00', '10T11:00'],
    // On the hour: the new hour is not included.
    [{ end: at('10T10:00:00') }, '09T10:00', '10T10:00'],
    [{ end: at('10T10:00:00.001') }, '09T11:00', '10T11:00'],
    [{ start: at('10T07:59:59.999') }, '10T07:00', '10T11:00'],
    [{ start: at('10T07:10:00'), end: at('10T07:20:00') }, '10T07:00', '10T08:00'],
  ])('%j resolves to %s until %s', (requested, start, end) => {
    expect(iso(resolveRange(requested, at('10T10:20:00'), 31))).toEqual(
      iso({ start: at(`${start}:00`), end: at(`${end}:00`) }),
    );
  });

  test('ends at the last hour of the year 9999', () => {
    const end = new Date('9999-12-31T23:59:59Z');
    expect(resolveRange({ end }, new Date(), 31).end.toISOString()).toBe('9999-12-31T23:00:00.000Z');
    expect(() => resolveRange({ start: new Date('9999-12-31T23:10:00Z'), end }, new Date(), 31)).toThrow(
      'is not before end',
    );
  });

  test('contains each hour once across clock changes', () => {
    const hours = listHours(
      resolveRange({ start: at('29T00:00:00'), end: at('30T00:00:00') }, at('30T00:00:00'), 31),
    );
    expect(hours).toHaveLength(24);
    expect(new Set(hours.map((hour) => hour.toISOString())).size).toBe(24);
  });
});
