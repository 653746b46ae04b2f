import { LockMode, sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { dbOf } from '../../platform/database/bridge.ts';
import type { Database } from '../../platform/database/database.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { Storage } from '../../platform/storage.ts';
import {
  CANCEL_EXPORT,
  exportOrganizationWorkflowId,
} from '../../workflows/exports/export-organization.contract.ts';
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

export interface ExportService {
  /**
   * Returns the organization's running export or one completed within the last hour, or starts a new one. Repeated and concurrent calls join the
   * same export; at most one runs at a time.
   *
   * @param options.fresh ignores a ready archive, unless it is only a few minutes old: a client that polls with `fresh`
   * must get the archive it waited for. A running export is joined.
   * @throws AppError `not_found` for another organization, `permission_denied` for a credential bound to an environment
   * or inbox.
   */
  startOrJoin(scope: Scope, organizationId: string, options: { fresh: boolean }): Promise<ExportDetails>;
  /** @throws AppError like {@link startOrJoin}; `not_found` for an unknown export. */
  get(scope: Scope, organizationId: string, exportId: string): Promise<ExportDetails>;
  /** Cancels a running export; deletes a ready archive. Any other stays unchanged. @throws AppError like `get`. */
  remove(scope: Scope, organizationId: string, exportId: string): Promise<ExportDetails>;
}

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
}: ExportServiceOptions): ExportService {
  /** Runs outside the transaction, since it calls storage. */
  async function toDetails({
    row,
    previous,
  }: {
    row: Export;
    previous: Export | null;
  }): Promise<ExportDetails> {
    const previousFailure = previous && UNSUCCESSFUL.includes(previous.status) ? previous : null;
    if (row.status !== 'ready') return { export: row, previousFailure, link: null };
    const url = await storage.presignGet(row.storageKey, {
      filename: `${row.id}.zip`,
      contentType: 'application/zip',
      expiresInSeconds: LINK_LIFETIME_SECONDS,
    });
    const expiresAt = new Date(now().getTime() + LINK_LIFETIME_SECONDS * 1000);
    return { export: row, previousFailure, link: { url, expiresAt } };
  }

  async function find(
    em: EntityManager,
    scope: Scope,
    exportId: string,
    lockMode?: LockMode,
  ): Promise<Export> {
    const { organizationId } = scope;
    const row = await em.findOne(
      ExportEntity,
      { id: exportId, organizationId },
      lockMode ? { lockMode } : {},
    );
    if (!row) throw notFound('export', exportId);
    expireIfDue(row, now());
    return row;
  }

  return {
    async startOrJoin(scope, organizationId, { fresh }) {
      requireWholeOrganization(scope, organizationId);
      return toDetails(
        await database.transaction(scope, async (transaction) => {
          const { em } = transaction;
          const latest = await findLatest(em, organizationId);
          if (latest) expireIfDue(latest, now());
          if (latest && (RUNNING.includes(latest.status) || isAvailable(latest, fresh, now())))
            return { row: latest, previous: await findLatest(em, organizationId, latest.id) };
          const id = await insertUnlessRunning(em, scope, now());
          if (id) {
            outbox.enqueue(transaction, organizationId, { start: buildExportStart({ id, organizationId }) });
            await audit(em, scope, id, 'created');
          }
          const row = id
            ? await em.findOneOrFail(ExportEntity, { id })
            : await em.findOneOrFail(ExportEntity, { organizationId, status: { $in: RUNNING } });
          return { row, previous: latest?.id === row.id ? null : latest };
        }),
      );
    },

    async get(scope, organizationId, exportId) {
      requireWholeOrganization(scope, organizationId);
      const row = await database.transaction(scope, ({ em }) => find(em, scope, exportId));
      return toDetails({ row, previous: null });
    },

    async remove(scope, organizationId, exportId) {
      requireWholeOrganization(scope, organizationId);
      const row = await database.transaction(scope, async (transaction) => {
        const { db, em } = transaction;
        const found = await find(em, scope, exportId, LockMode.PESSIMISTIC_WRITE);
        const at = now();
        if (found.status === 'ready') {
          Object.assign(found, { status: 'expired', expiresAt: at });
          const { storageKey } = found;
          await releaseObject(db, { organizationId, storageKey, dueAt: at });
        } else if (RUNNING.includes(found.status)) {
          Object.assign(found, { status: 'canceled', statusDetail: 'Canceled.', completedAt: at });
          const workflowId = exportOrganizationWorkflowId(exportId);
          outbox.enqueue(transaction, organizationId, {
            signal: { workflowId, signalName: CANCEL_EXPORT, args: [] },
          });
        }
        await audit(em, scope, exportId, 'removed');
        return found;
      });
      return toDetails({ row, previous: null });
    },
  };
}

function audit(em: EntityManager, scope: Scope, exportId: string, change: string): Promise<void> {
  return recordAudit(dbOf(em), scope, {
    action: `export.${change}`,
    resourceType: 'export',
    resourceId: exportId,
  });
}

const RUNNING: Export['status'][] = ['queued', 'running'];
const UNSUCCESSFUL: Export['status'][] = ['failed', 'canceled'];

/** Without it, polling with `fresh` would start one archive after another and never return a link. */
const MAX_FRESH_AGE_MS = 10 * 60_000;
/** An older archive is replaced; its link still works for the rest of its 24 hours. */
const MAX_AGE_MS = 60 * 60_000;

function isAvailable({ status, completedAt }: Export, fresh: boolean, now: Date): boolean {
  if (status !== 'ready') return false;
  const maxAgeMs = fresh ? MAX_FRESH_AGE_MS : MAX_AGE_MS;
  return completedAt !== null && now.getTime() - completedAt.getTime() < maxAgeMs;
}

/** Shows an archive as expired before the sweep has updated its row. */
function expireIfDue(row: Export, now: Date): void {
  if (row.status === 'ready' && row.expiresAt && row.expiresAt <= now) row.status = 'expired';
}

async function findLatest(
  em: EntityManager,
  organizationId: string,
  before?: string,
): Promise<Export | null> {
  const [latest] = await em.find(
    ExportEntity,
    { organizationId, ...(before === undefined ? {} : { id: { $lt: before } }) },
    { orderBy: { id: 'desc' }, limit: 1 },
  );
  return latest ?? null;
}

/** @returns null if another export was started concurrently. */
async function insertUnlessRunning(em: EntityManager, scope: Scope, at: Date): Promise<string | null> {
  const id = newId('export');
  const inserted = await em.execute<{ id: string }[]>(
    sql`insert into exports (id, org_id, requested_by, storage_key, created_at, updated_at)
     values (${id}, ${scope.organizationId}, ${scope.actor.id}, ${`exports/${id}.zip`}, ${at}, ${at})
     on conflict (org_id) where status in ('queued', 'running') do nothing returning id`,
  );
  return inserted.length > 0 ? id : null;
}

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
