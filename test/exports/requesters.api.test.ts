import { expect, jest, test } from '@jest/globals';
import { type RawBuilder, sql } from 'kysely';
import { createTestExportRunner, queueExport, readExportRow, useExportApp } from '../support/exports.ts';
import { createOrganization } from '../support/organizations.ts';
import { query } from '../support/query.ts';

jest.setTimeout(60_000);

const { app } = useExportApp();

/** What ends the right of a key to export. */
const ENDS: Record<string, (keyId: string) => RawBuilder<unknown>> = {
  key_revoked: (id) => sql`update api_keys set revoked_at = now() where id = ${id} returning id`,
  key_expired: (id) =>
    sql`update api_keys set expires_at = date_trunc('milliseconds', now()) where id = ${id} returning id`,
  permission_lost: (id) =>
    sql`update api_keys set permissions = '{messages:read}' where id = ${id} returning id`,
  out_of_reach: (id) => sql`
    update api_keys set env_id = (select e.id from environments e where e.org_id = api_keys.org_id limit 1)
    where id = ${id} returning id`,
};

test.each(Object.entries(ENDS))(
  'an export is canceled while it is written if its requester may no longer export: %s',
  async (problem, end) => {
    const organization = await createOrganization(app.worker);
    const { organizationId, keyId } = organization;
    const exportId = await queueExport(organization);
    const { multipartUploads } = app.storage;
    let parts = 0;
    const runner = createTestExportRunner(app, {
      storage: {
        ...app.storage,
        multipartUploads: {
          ...multipartUploads,
          async uploadPart(...call) {
            parts += 1;
            if (parts === 2) await query(app.worker, end(keyId));
            return multipartUploads.uploadPart(...call);
          },
        },
      },
    });
    expect(await runner.write(exportId)).toMatchObject({ status: 'canceled' });
    expect(parts).toBeGreaterThan(1);
    expect(await readExportRow(exportId)).toMatchObject({
      status: 'canceled',
      status_detail: 'requester_not_allowed',
    });
    const entries = await query(
      app.worker,
      sql`select action, details from audit_entries where org_id = ${organizationId} and action = 'export.refused'`,
    );
    expect(entries).toEqual([
      { action: 'export.refused', details: { refused: 'export', actor: keyId, problem } },
    ]);
    const mails = await query(
      app.worker,
      sql`select template from notifications where org_id = ${organizationId}`,
    );
    expect(mails).toEqual([{ template: 'act-refused' }]);
    // Again, as the retry of an activity does.
    expect(await runner.write(exportId)).toMatchObject({ status: 'canceled' });
  },
);
