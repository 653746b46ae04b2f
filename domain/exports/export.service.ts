import { sql, type Updateable } from 'kysely';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import type { Db, Tables } from '../../platform/database/tables.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { Storage } from '../../platform/storage.ts';
import {
  CANCEL_EXPORT,
  exportOrganizationWorkflowId,
} from '../../workflows/exports/export-organization.contract.ts';
import type { ChangeOf } from '../audit/audit-actions.ts';
import { recordAudit } from '../audit/record-audit.ts';
import { isOrganizationWide, type Scope } from '../identity/scope.ts';
import { releaseObject } from '../stored-objects/unclaimed-objects.ts';
import { type Export, ExportEntity } from './export.entity.ts';
import { buildExportStart } from './export-start.ts';

export interface ExportDetails {
  export: Export;
  /** The previous export if it failed or was canceled, so that a polling client sees why. */
  previousFailure: Export | null;
  /** Null unless ready. */
  link: { url: string; expiresAt: Date } | null;
}

export type ExportService = ReturnType<typeof createExportService>;

export interface ExportServiceOptions {
  database: Database;
  outbox: Outbox;
  storage: Pick<Storage, 'presignGet'>;
  now?: () => Date;
}

const LINK_LIFETIME_SECONDS = 24 * 3_600;

export function createExportService({
  database,
  outbox,
  storage,
  now = () => new Date(),
}: ExportServiceOptions) {
  /** Runs outside the transaction, because it calls storage. */
  async function toDetails(row: Export, previous: Export | null = null): Promise<ExportDetails> {
    const previousFailure =
      previous?.status === 'failed' || previous?.status === 'canceled' ? previous : null;
    if (row.status !== 'ready') return { export: row, previousFailure, link: null };
    const url = await storage.presignGet(row.storageKey, {
      filename: `${row.id}.zip`,
      contentType: 'application/zip',
      expiresInSeconds: LINK_LIFETIME_SECONDS,
    });
    const expiresAt = new Date(now().getTime() + LINK_LIFETIME_SECONDS * 1000);
    return { export: row, previousFailure, link: { url, expiresAt } };
  }

  /** Cancels an export that is being written, and deletes a ready archive. */
  async function end(transaction: Transaction, row: Export): Promise<Export> {
    const { db } = transaction;
    const { id, organizationId, storageKey } = row;
    const at = now();
    if (row.status === 'ready') {
      await releaseObject(db, { organizationId, storageKey, dueAt: at });
      return change(db, id, { status: 'expired', expires_at: at, updated_at: at });
    }
    if (!isUnfinished(row)) return row;
    outbox.enqueue(transaction, organizationId, {
      signal: { workflowId: exportOrganizationWorkflowId(id), signalName: CANCEL_EXPORT, args: [] },
    });
    const canceled = { status: 'canceled', status_detail: 'Canceled.', completed_at: at } as const;
    return change(db, id, { ...canceled, updated_at: at });
  }

  return {
    /**
     * Returns the organization's running export or one completed within the last hour, or starts a new one. Repeated and
     * concurrent calls join the same export; at most one runs at a time.
     *
     * @param options.fresh ignores a ready archive, unless it is only a few minutes old: a client that polls with `fresh`
     * must get the archive it waited for. A running export is joined.
     * @throws AppError `not_found` for another organization, `permission_denied` for a credential bound to an environment
     * or inbox.
     */
    async startOrJoin(
      scope: Scope,
      organizationId: string,
      { fresh }: { fresh: boolean },
    ): Promise<ExportDetails> {
      requireWholeOrganization(scope, organizationId);
      const { row, previous } = await database.transaction(scope, async (transaction) => {
        const { db } = transaction;
        const found = await findLatest(db, organizationId);
        const latest = found && withoutExpired(found, now());
        if (latest && (isUnfinished(latest) || isAvailable(latest, fresh, now())))
          return { row: latest, previous: await findLatest(db, organizationId, latest.id) };
        const started = await insertUnlessRunning(db, scope, now());
        if (started) {
          outbox.enqueue(transaction, organizationId, { start: buildExportStart(started) });
          await audit(db, scope, started.id, 'created');
        }
        // If none was started here, the latest export was started concurrently.
        const row = started ?? (await findLatest(db, organizationId));
        if (!row) throw new Error('The export that another request started is gone');
        return { row, previous: latest?.id === row.id ? null : latest };
      });
      return toDetails(row, previous);
    },

    /** @throws AppError like {@link startOrJoin}; `not_found` for an unknown export. */
    async get(scope: Scope, organizationId: string, exportId: string): Promise<ExportDetails> {
      requireWholeOrganization(scope, organizationId);
      const row = await database.read(scope, ({ db }) =>
        selectExport(db, scope, exportId).executeTakeFirst(),
      );
      if (!row) throw notFound('export', exportId);
      return toDetails(withoutExpired(row, now()));
    },

    /** Cancels a running export and deletes a ready archive. Other exports do not change. @throws AppError like `get`. */
    async remove(scope: Scope, organizationId: string, exportId: string): Promise<ExportDetails> {
      requireWholeOrganization(scope, organizationId);
      const row = await database.transaction(scope, async (transaction) => {
        const { db } = transaction;
        const locked = await selectExport(db, scope, exportId).forUpdate().executeTakeFirst();
        if (!locked) throw notFound('export', exportId);
        const row = await end(transaction, withoutExpired(locked, now()));
        await audit(db, scope, exportId, 'removed');
        return row;
      });
      return toDetails(row);
    },
  };
}

function audit(db: Db, scope: Scope, exportId: string, change: ChangeOf<'export'>): Promise<void> {
  return recordAudit(db, scope, {
    action: `export.${change}`,
    resourceType: 'export',
    resourceId: exportId,
  });
}

/** Without this age, polling with `fresh` would start one archive after another and never return a link. */
const MAX_FRESH_AGE_MS = 10 * 60_000;
/** An older archive is replaced; its link still works for the rest of its 24 hours. */
const MAX_AGE_MS = 60 * 60_000;

const isUnfinished = ({ status }: Export): boolean => status === 'queued' || status === 'running';

function isAvailable({ status, completedAt }: Export, fresh: boolean, now: Date): boolean {
  if (status !== 'ready') return false;
  const maxAgeMs = fresh ? MAX_FRESH_AGE_MS : MAX_AGE_MS;
  return completedAt !== null && now.getTime() - completedAt.getTime() < maxAgeMs;
}

/** Shows an archive as expired before the sweep has updated its row. */
function withoutExpired(row: Export, now: Date): Export {
  const isDue = row.status === 'ready' && row.expiresAt !== null && row.expiresAt <= now;
  return isDue ? { ...row, status: 'expired' } : row;
}

async function findLatest(db: Db, organizationId: string, before?: string): Promise<Export | null> {
  const latest = await db
    .selectFrom('exports')
    .select(columnsOf(ExportEntity))
    .where('org_id', '=', organizationId)
    .$if(before !== undefined, (query) => query.where('id', '<', before ?? ''))
    .orderBy('id', 'desc')
    .limit(1)
    .executeTakeFirst();
  return latest ?? null;
}

const selectExport = (db: Db, { organizationId }: Scope, exportId: string) =>
  db
    .selectFrom('exports')
    .select(columnsOf(ExportEntity))
    .where('id', '=', exportId)
    .where('org_id', '=', organizationId);

/** Written as in the index, because PostgreSQL compares the two conditions before it knows parameters. */
const IS_UNFINISHED = sql<boolean>`status in ('queued', 'running')`;

/** @returns undefined if another export was started concurrently. */
function insertUnlessRunning(db: Db, scope: Scope, at: Date): Promise<Export | undefined> {
  const id = newId('export');
  return db
    .insertInto('exports')
    .values({
      id,
      org_id: scope.organizationId,
      requested_by: scope.actor.id,
      storage_key: `exports/${id}.zip`,
      created_at: at,
      updated_at: at,
    })
    .onConflict((conflict) => conflict.column('org_id').where(IS_UNFINISHED).doNothing())
    .returning(columnsOf(ExportEntity))
    .executeTakeFirst();
}

const change = (db: Db, exportId: string, columns: Updateable<Tables['exports']>): Promise<Export> =>
  db
    .updateTable('exports')
    .set(columns)
    .where('id', '=', exportId)
    .returning(columnsOf(ExportEntity))
    .executeTakeFirstOrThrow(() => new Error('A locked export is gone'));

/** An export always contains the whole organization, so a bound credential must not create one. */
function requireWholeOrganization(scope: Scope, organizationId: string): void {
  if (organizationId !== scope.organizationId) throw notFound('organization', organizationId);
  if (isOrganizationWide(scope)) return;
  throw new AppError('permission_denied', {
    detail:
      'An export contains the whole organization, but this credential is bound to an environment or inbox.',
    fix: 'Use an API key that has the permission export:create and is bound to no environment and no inbox.',
    extensions: { permission: 'export:create' },
  });
}
