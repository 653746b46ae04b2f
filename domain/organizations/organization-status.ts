import { sql } from '@mikro-orm/core';

/** SQL: the `OrganizationStatus` of the row `o`. A closed organization keeps its `status` for its recovery. */
export const ORGANIZATION_STATUS = sql`case when o.deleted_at is null then o.status else 'deleted' end`;
