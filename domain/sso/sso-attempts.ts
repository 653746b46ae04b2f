import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { newId } from '../../platform/ids.ts';
import type { SsoCheck } from './sso-checks.ts';
import type { SsoPurpose } from './sso-transaction.entity.ts';

export const MAX_ATTEMPTS = 20;

export interface NewSsoAttempt {
  configurationId: string;
  purpose: SsoPurpose;
  succeeded: boolean;
  checks: readonly SsoCheck[];
}

/** Records a login or test in the caller's transaction, and keeps the newest 20 of the configuration. */
export async function recordSsoAttempt(
  em: EntityManager,
  { configurationId, purpose, succeeded, checks }: NewSsoAttempt,
): Promise<void> {
  await em.execute(sql`
    insert into sso_attempts (id, org_id, configuration_id, purpose, succeeded, checks, created_at)
    select ${newId('ssoAttempt')}, org_id, id, ${purpose}, ${succeeded}, ${JSON.stringify(checks)}::jsonb, now()
    from sso_configurations where id = ${configurationId}`);
  await em.execute(sql`
    delete from sso_attempts where id in (
      select id from sso_attempts where configuration_id = ${configurationId} order by id desc offset ${MAX_ATTEMPTS})`);
}
