import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, idColumn, oneOf, primaryId, timestamp } from '../../platform/database/columns.ts';
import type { Tier } from '../organizations/tier.ts';

/** `all`: every person. `tier`, `organizations`: members of these. `owners`: the owners of every organization. */
export const AUDIENCES = ['all', 'tier', 'organizations', 'owners'] as const;
export type Audience = (typeof AUDIENCES)[number];

/** `shown`: on the pages and by `GET /notices`. `mailed`: to the owners of the organizations in the audience. */
export const ANNOUNCEMENT_DELIVERIES = ['shown', 'mailed'] as const;
export type AnnouncementDelivery = (typeof ANNOUNCEMENT_DELIVERIES)[number];

/** An announcement of staff to people, for example of maintenance. */
export const AnnouncementEntity = defineEntity({
  name: 'Announcement',
  tableName: 'announcements',
  checks: [
    { name: 'announcements_audience', expression: oneOf('audience', AUDIENCES) },
    { name: 'announcements_delivery', expression: oneOf('delivery', ANNOUNCEMENT_DELIVERIES) },
  ],
  indexes: [
    {
      name: 'announcements_shown_index',
      expression: `create index "announcements_shown_index" on "announcements" ("starts_at") where "withdrawn_at" is null and "delivery" = 'shown'`,
    },
    {
      name: 'announcements_unmailed_index',
      expression: `create index "announcements_unmailed_index" on "announcements" ("starts_at") where "withdrawn_at" is null and "delivery" = 'mailed' and "mailed_at" is null`,
    },
  ],
  properties: {
    id: primaryId(),
    title: p.text(),
    /** Plain text. */
    text: p.text(),
    audience: p.text().$type<Audience>(),
    /** For the audience `tier`; otherwise null. */
    tier: p.text().$type<Tier>().strictNullable(),
    /** For the audience `organizations`; otherwise empty. */
    organizationIds: p.array().default([]),
    delivery: p.text().$type<AnnouncementDelivery>(),
    /** When it is first shown, or when it is mailed. */
    startsAt: timestamp(),
    /** When it is no longer shown; null: when it is withdrawn. */
    endsAt: timestamp().strictNullable(),
    createdBy: idColumn(),
    createdAt: createdAt(),
    withdrawnAt: timestamp().strictNullable(),
    /** The last owner who was mailed. A restarted run continues there. */
    mailedTo: idColumn().strictNullable(),
    /** Emails created so far. */
    mailedCount: p.integer().default(0),
    /** When all owners had been mailed. */
    mailedAt: timestamp().strictNullable(),
    /** When the reconciler last checked the run; null if it never had to. */
    reconciledAt: timestamp().strictNullable(),
  },
});

export type Announcement = InferEntity<typeof AnnouncementEntity>;
