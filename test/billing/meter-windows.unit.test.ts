import { describe, expect, test } from '@jest/globals';
import { type GrantHistory, type MeterState, settleHours } from '../../domain/billing/meter-windows.ts';
import { readMeteredPrices } from '../../domain/billing/metered-counters.ts';

const hour = (time: string) => new Date(`2026-${time}:00:00.000Z`);
const DEVELOPER: GrantHistory = {
  counter: 'messages_sent',
  tier: 'developer',
  tierChanges: [],
  overrides: [],
  suspensions: [],
};

/** Settles hours of November 10, given as `[hour, amount]`, from 00:00 to 12:00. */
function settle(
  hours: [string, number][],
  {
    history = {},
    state = {},
    amountBefore = 0,
    until = '11-10T12',
  }: {
    history?: Partial<GrantHistory>;
    state?: Partial<MeterState>;
    amountBefore?: number;
    until?: string;
  } = {},
) {
  const settled = settleHours(
    { ...DEVELOPER, ...history },
    { settledUntil: hour('11-10T00'), highestAmount: null, ...state },
    {
      amountBefore,
      hours: hours.map(([start, amount]) => ({ start: hour(start), amount })),
      until: hour(until),
    },
  );
  return {
    ...settled,
    billable: settled.billable.map(({ start, units }) => [start.toISOString().slice(5, 13), units]),
  };
}

describe('metered use', () => {
  test('is what is above the limit, in the hour in which it was used', () => {
    const settled = settle([
      ['11-10T01', 9_000],
      ['11-10T03', 2_500],
      ['11-10T04', 100],
    ]);
    expect(settled).toEqual({
      billable: [
        ['11-10T03', 1_500],
        ['11-10T04', 100],
      ],
      settledUntil: hour('11-10T12'),
      highestAmount: 11_600,
    });
  });

  test('leaves out what was used before it was metered', () => {
    expect(settle([['11-10T01', 30]], { amountBefore: 50_000 }).billable).toEqual([['11-10T01', 30]]);
  });

  test('is not negative after a correction, and what is counted again is not billed twice', () => {
    const settled = settle([
      ['11-10T01', 12_000],
      ['11-10T02', -1_500],
      ['11-10T03', 1_000],
      ['11-10T04', 700],
    ]);
    expect(settled.billable).toEqual([
      ['11-10T01', 2_000],
      ['11-10T04', 200],
    ]);
    const later = settle([['11-10T12', 50]], {
      state: { settledUntil: hour('11-10T12'), highestAmount: settled.highestAmount },
      amountBefore: 11_000,
      until: '11-10T13',
    });
    expect(later.billable).toEqual([]);
  });

  test('begins again with the month, from the first unit above the limit', () => {
    const settled = settle(
      [
        ['11-30T23', 10_500],
        ['12-01T00', 9_999],
        ['12-01T01', 2],
      ],
      { state: { settledUntil: hour('11-30T23') }, until: '12-01T02' },
    );
    expect(settled).toEqual({
      billable: [
        ['11-30T23', 500],
        ['12-01T01', 1],
      ],
      settledUntil: hour('12-01T02'),
      highestAmount: 10_001,
    });
    // A month that has just ended leaves nothing to the next one.
    expect(
      settle([['11-30T23', 10_500]], { state: { settledUntil: hour('11-30T23') }, until: '12-01T00' }),
    ).toMatchObject({ highestAmount: 0 });
  });

  test.each<[string, Partial<GrantHistory>]>([
    ['on the tier free', { tier: 'free' }],
    ['on a tier without limits', { tier: 'enterprise' }],
    ['while staff override the limit', { overrides: [{ from: hour('11-09T00'), until: null }] }],
    [
      'while the organization is suspended, even for a part of the hour',
      { suspensions: [{ from: new Date('2026-11-10T01:59:59Z'), until: new Date('2026-11-10T02:00:01Z') }] },
    ],
    [
      'in the hour in which the tier came from one that refuses use beyond its limit',
      { tierChanges: [{ at: new Date('2026-11-10T01:30:00Z'), from: 'free', to: 'developer' }] },
    ],
  ])('is nothing %s', (_name, history) => {
    expect(settle([['11-10T01', 20_000]], { history }).billable).toEqual([]);
  });

  test('is billed again after an override and a suspension, but not for their time', () => {
    const settled = settle(
      [
        ['11-10T01', 11_000],
        ['11-10T02', 1_000],
        ['11-10T05', 1_000],
        ['11-10T08', 10],
      ],
      {
        history: {
          overrides: [{ from: hour('11-10T02'), until: hour('11-10T03') }],
          suspensions: [{ from: hour('11-10T05'), until: hour('11-10T06') }],
        },
      },
    );
    expect(settled.billable).toEqual([
      ['11-10T01', 1_000],
      ['11-10T08', 10],
    ]);
  });

  test('counts from the higher limit in the hour of a change of tier, and from the tier’s own in the others', () => {
    const tierChanges = [
      { at: new Date('2026-11-10T03:30:00Z'), from: 'developer' as const, to: 'business' as const },
      { at: new Date('2026-11-10T06:30:00Z'), from: 'business' as const, to: 'developer' as const },
    ];
    const settled = settle(
      [
        ['11-10T02', 20_000],
        ['11-10T03', 20_000],
        ['11-10T04', 120_000],
        ['11-10T06', 1_000],
        ['11-10T07', 5],
      ],
      { history: { tier: 'developer', tierChanges } },
    );
    expect(settled.billable).toEqual([
      ['11-10T02', 10_000],
      ['11-10T04', 10_000],
      ['11-10T06', 1_000],
      ['11-10T07', 5],
    ]);
  });
});

describe('STRIPE_METERED_PRICES', () => {
  test('sells the first price of a counter, and recognizes the others', () => {
    const prices = readMeteredPrices(
      'messages_sent:price_new, api_calls:price_calls,messages_sent:price_old',
    );
    expect(prices.forSale).toEqual(['price_new', 'price_calls']);
    expect(prices.counterOf('price_old')).toBe('messages_sent');
    expect(prices.counterOf('price_other')).toBeUndefined();
    expect(readMeteredPrices(undefined).forSale).toEqual([]);
  });

  test.each([
    'messages_sent',
    'storage_bytes:price_1',
    'inboxes:price_1',
    'messages_sent:',
    'api_calls:a:b',
    'api_calls:a,messages_sent:a',
  ])('refuses %s at the start', (setting) => {
    expect(() => readMeteredPrices(setting)).toThrow('STRIPE_METERED_PRICES');
  });
});
