import type { FilterQuery } from '@mikro-orm/core';
import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database } from '../../platform/database/database.ts';
import { findPage } from '../../platform/database/find-page.ts';
import { findRow, type Row, type RowReader } from '../../platform/database/find-rows.ts';
import { invalid, notFound } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import type { Page, PageRequest } from '../../platform/pagination.ts';
import { recordAudit } from '../audit/record-audit.ts';
import type { Scope } from '../identity/scope.ts';
import { readInbox, requireActive } from '../inboxes/find-inbox.ts';
import type { Inbox } from '../inboxes/inbox.entity.ts';
import { toListEntryKey } from '../mime/address-key.ts';
import { EnvironmentEntity } from '../organizations/environment.entity.ts';
import { type ListEntry, ListEntryEntity } from './list-entry.entity.ts';
import { LIST_DIRECTIONS, LIST_EFFECTS, type ListDirection, type ListEffect } from './list-match.ts';

/** Identifies one of the four lists. */
export interface ListName {
  direction: string;
  effect: string;
}

/** Where an entry applies. If both ids are omitted, this is the scope that the credential is bound to. */
export interface EntryScope {
  environmentId?: string;
  inboxId?: string;
}

export interface ListService {
  /**
   * Lists the entries that apply to what the credential can access: an organization-wide credential sees all, one bound
   * to an inbox sees the entries of the inbox, its environment and the organization. With an entry scope: the entries
   * of exactly that scope.
   *
   * @throws AppError `not_found` for an unknown list, or an entry scope that the credential cannot access.
   */
  list(scope: Scope, name: ListName, entryScope: EntryScope, page: PageRequest): Promise<Page<ListEntry>>;
  /**
   * Adds an entry, or returns the existing one.
   *
   * @throws AppError `validation_error`, `not_found`.
   */
  add(
    scope: Scope,
    name: ListName,
    input: EntryScope & { entry: string },
  ): Promise<{ entry: ListEntry; created: boolean }>;
  /** @throws AppError `not_found`. */
  remove(scope: Scope, name: ListName, input: EntryScope & { entry: string }): Promise<void>;
}

export function createListService({ database }: { database: Database }): ListService {
  return {
    list: (scope, name, entryScope, page) =>
      database.read(scope, async (reader) => {
        const hasEntryScope = entryScope.environmentId !== undefined || entryScope.inboxId !== undefined;
        const where: FilterQuery<ListEntry>[] = [
          { organizationId: scope.organizationId, ...parseListName(name) },
          hasEntryScope ? (await resolveEntryScope(reader, scope, entryScope)).key : visibleTo(scope),
        ];
        return findPage(reader, ListEntryEntity, { where, page });
      }),

    add: (scope, name, input) =>
      database.transaction(scope, async ({ em }) => {
        const list = parseListName(name);
        const entry = toListEntryKey(input.entry);
        if (entry === null)
          throw invalid(
            '/body/entry',
            'is neither an address nor a domain',
            'Use name@domain, or a domain such as example.com, which includes its subdomains.',
          );
        const entryScope = await resolveActiveEntryScope(em, scope, input);
        const { affectedRows } = await em.execute<{ affectedRows: number }>(
          sql`insert into list_entries (id, org_id, direction, effect, entry, env_id, inbox_id, created_at)
           values (${newId('listEntry')}, ${scope.organizationId}, ${list.direction}, ${list.effect}, ${entry},
             ${entryScope.environmentId}, ${entryScope.inboxId}, now())
           on conflict (org_id, direction, entry, effect, env_id, inbox_id) do nothing`,
          [],
          'run',
        );
        const where = { organizationId: scope.organizationId, ...list, entry, ...entryScope };
        const created = affectedRows === 1;
        if (created) await audit(em, scope, { ...list, entry, ...entryScope }, 'created');
        return { entry: await em.findOneOrFail(ListEntryEntity, where), created };
      }),

    remove: (scope, name, input) =>
      database.transaction(scope, async ({ em }) => {
        const list = parseListName(name);
        const entry = toListEntryKey(input.entry);
        const entryScope = await resolveActiveEntryScope(em, scope, input);
        const removed =
          entry === null
            ? 0
            : await em.nativeDelete(ListEntryEntity, {
                organizationId: scope.organizationId,
                ...list,
                entry,
                ...entryScope,
              });
        if (removed === 0 || entry === null) throw notFound('list entry', input.entry);
        await audit(em, scope, { ...list, entry, ...entryScope }, 'removed');
      }),
  };
}

interface ChangedEntry {
  direction: ListDirection;
  effect: ListEffect;
  entry: string;
  environmentId: string | null;
  inboxId: string | null;
}

function audit(
  em: EntityManager,
  scope: Scope,
  { direction, effect, entry, environmentId, inboxId }: ChangedEntry,
  change: string,
): Promise<void> {
  return recordAudit(em, scope, {
    action: `list_entry.${change}`,
    resourceType: 'list_entry',
    resourceId: entry,
    details: { direction, effect, env_id: environmentId, inbox_id: inboxId },
  });
}

function parseListName({ direction, effect }: ListName): { direction: ListDirection; effect: ListEffect } {
  const parsed = {
    direction: LIST_DIRECTIONS.find((name) => name === direction),
    effect: LIST_EFFECTS.find((name) => name === effect),
  };
  if (!parsed.direction || !parsed.effect) throw notFound('list', `${direction}/${effect}`);
  return { direction: parsed.direction, effect: parsed.effect };
}

interface EntryScopeKey {
  environmentId: string | null;
  inboxId: string | null;
}

/** @throws AppError `not_found` for an environment or inbox that the credential cannot access. */
async function resolveEntryScope(
  reader: RowReader,
  scope: Scope,
  { environmentId, inboxId = scope.inboxId }: EntryScope,
): Promise<{ key: EntryScopeKey; inbox?: Row<Inbox> }> {
  const isBound = scope.environmentBound || inboxId !== undefined;
  const id = environmentId ?? (isBound ? scope.environmentId : null);
  if (id === null) return { key: { environmentId: null, inboxId: null } };
  const environment =
    scope.environmentBound && id !== scope.environmentId
      ? null
      : await findRow(reader, EnvironmentEntity, { where: { id, organizationId: scope.organizationId } });
  if (!environment) throw notFound('environment', id);
  if (inboxId === undefined) return { key: { environmentId: id, inboxId: null } };
  const inbox = await readInbox(reader, { ...scope, environmentId: id }, inboxId);
  return { key: { environmentId: id, inboxId }, inbox };
}

/** For changes. @throws AppError as {@link resolveEntryScope}; `inbox_suspended`. */
async function resolveActiveEntryScope(
  reader: RowReader,
  scope: Scope,
  entryScope: EntryScope,
): Promise<EntryScopeKey> {
  const { key, inbox } = await resolveEntryScope(reader, scope, entryScope);
  if (inbox) requireActive(inbox);
  return key;
}

/** Entries of the organization, and of the environment and inbox that the credential is bound to. */
function visibleTo(scope: Scope): FilterQuery<ListEntry> {
  const { environmentId, inboxId } = scope;
  const where: FilterQuery<ListEntry>[] = [];
  if (scope.environmentBound) where.push({ $or: [{ environmentId: null }, { environmentId }] });
  if (inboxId !== undefined) where.push({ $or: [{ inboxId: null }, { inboxId }] });
  return where.length > 0 ? { $and: where } : {};
}
