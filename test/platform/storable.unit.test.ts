import { describe, expect, test } from '@jest/globals';
import { parseStatusFields } from '../../domain/delivery-reports/dsn.ts';
import { toDate } from '../../domain/providers/json-fields.ts';
import { storableTime } from '../../platform/database/storable.ts';

const HOSTILE = [
  '9999-12-31T23:59:59-23:59',
  '+275760-09-13T00:00:00Z',
  '-000001-01-01T00:00:00Z',
  'never',
  '',
];

describe('a time that PostgreSQL cannot hold', () => {
  test.each(HOSTILE)('%j is none', (text) => {
    expect(storableTime(Date.parse(text))).toBeNull();
    expect(toDate(text)).toBeNull();
    expect(
      parseStatusFields(`Reporting-MTA: dns; mx.example\nArrival-Date: ${text}\n\n`).arrivalDate,
    ).toBeNull();
  });

  test.each(['0001-01-01T00:00:00.000Z', '9999-12-31T23:59:59.000Z'])('%s is the limit', (text) => {
    expect(storableTime(Date.parse(text))?.toISOString()).toBe(text);
  });
});
