import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { idColumn, timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { countColumns } from './metric-columns.ts';

/**
 * What a change of a message adds to the counts, written by the change's own transaction (triggers of `messages`) and
 * folded into `metric_hours` soon after. Rows are only added, so no two sends wait for each other, as they would for
 * the row of their inbox's hour.
 */
export const MetricDeltaEntity = defineEntity({
  name: 'MetricDelta',
  tableName: 'metric_deltas',
  policies: tenantPolicies(),
  indexes: [{ properties: ['environmentId', 'hour'] }],
  properties: {
    id: p.bigint('string').primary().autoincrement(),
    /** No references: each would be looked up for each mail. What has no inbox any more is dropped when it is folded. */
    organizationId: idColumn().fieldName('org_id'),
    environmentId: idColumn().fieldName('env_id'),
    inboxId: idColumn(),
    hour: timestamp(),
    ...countColumns(),
  },
});

export type MetricDelta = InferEntity<typeof MetricDeltaEntity>;

/**
 * Body of the triggers of `messages` (in a first insertion `old` is empty). Several things may happen in one change, and
 * in different hours: the relay took the mail at 09:59, its report came at 10:00.
 */
export const COUNT_MESSAGE = `insert into metric_deltas (org_id, env_id, inbox_id, hour, sent, delivered, bounced, complained, rejected, received, attempted) \
select new.org_id, new.env_id, new.inbox_id, date_trunc('hour', at, 'UTC'), \
count(*) filter (where what = 'sent'), count(*) filter (where what = 'delivered'), count(*) filter (where what = 'bounced'), \
count(*) filter (where what = 'complained'), count(*) filter (where what = 'rejected'), count(*) filter (where what = 'received'), \
count(*) filter (where what = 'attempted') \
from (values \
('sent', case when old.sent_at is null then new.sent_at end), \
('delivered', case when old.delivered_at is null then new.delivered_at end), \
('bounced', case when old.bounced_at is null then new.bounced_at end), \
('complained', case when old.complained_at is null then new.complained_at end), \
('rejected', case when new.status = 'rejected' and old.status is distinct from 'rejected' then new.updated_at end), \
('received', case when new.announced and (old.announced and old.received_at is not null) is not true then new.received_at end), \
('attempted', case when old.sent_at is null and old.bounced_at is null then least(new.sent_at, new.bounced_at) end)) happened (what, at) \
where at is not null group by date_trunc('hour', at, 'UTC'); return null;`;
