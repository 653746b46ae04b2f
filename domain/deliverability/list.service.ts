import type { FilterQuery } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database } from '../../platform/database/database.ts';
import { invalid, notFound } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import { type Page, type PageRequest, pageOf } from '../../platform/pagination.ts';
import type { Scope } from '../identity/scope.ts';
import { findInbox } from '../inboxes/find-inbox.ts';
import { EnvironmentEntity } from '../organizations/environment.entity.ts';
import { listEntryKey } from './address-key.ts';
import { type ListEntry, ListEntryEntity } from './list-entry.entity.ts';
import { LIST_DIRECTIONS, LIST_EFFECTS, type ListDirection, type ListEffect } from './list-match.ts';

/** Which of the four lists. */
export interface ListName {
  direction: string;
  effect: string;
}

/** Where an entry holds. Undefined: as wide as the credential's own binding. */
export interface EntryScope {
  environmentId?: string;
  inboxId?: string;
}

export interface ListService {
  /**
   * Entries that hold for something the credential reaches: an organization-wide one sees all, one bound to an inbox
   * those of the inbox, of its environment and of the organization. With a place: those of exactly that scope.
   *
   * @throws AppError `not_found` for a list there is not, or a place out of reach.
   */
  list(scope: Scope, name: ListName, place: EntryScope, page: PageRequest): Promise<Page<ListEntry>>;
  /**
   * Adds an entry; one that is there already stays.
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
    list: (scope, name, place, page) =>
      database.transaction(scope, async ({ em }) => {
        const [after] = page.after ?? [];
        const named = place.environmentId !== undefined || place.inboxId !== undefined;
        const where: FilterQuery<ListEntry>[] = [
          { organizationId: scope.organizationId, ...parseListName(name) },
          named ? await resolveEntryScope(em, scope, place) : visibleTo(scope),
        ];
        if (after !== undefined) where.push({ id: page.order === 'asc' ? { $gt: after } : { $lt: after } });
        const entries = await em.find(
          ListEntryEntity,
          { $and: where },
          { orderBy: { id: page.order }, limit: page.limit + 1 },
        );
        return pageOf(entries, page.limit, ({ id }) => [id]);
      }),

    add: (scope, name, input) =>
      database.transaction(scope, async ({ em }) => {
        const list = parseListName(name);
        const entry = listEntryKey(input.entry);
        if (entry === null)
          throw invalid(
            '/body/entry',
            'is neither an address nor a domain',
            'Give name@domain, or a domain such as example.com, which covers its subdomains too.',
          );
        const place = await resolveEntryScope(em, scope, input);
        const { affectedRows } = await em.execute<{ affectedRows: number }>(
          `insert into list_entries (id, org_id, direction, effect, entry, env_id, inbox_id, created_at)
           values (?, ?, ?, ?, ?, ?, ?, now())
           on conflict (org_id, direction, entry, effect, env_id, inbox_id) do nothing`,
          [
            newId('listEntry'),
            scope.organizationId,
            list.direction,
            list.effect,
            entry,
            place.environmentId,
            place.inboxId,
          ],
          'run',
        );
        const where = { organizationId: scope.organizationId, ...list, entry, ...place };
        return { entry: await em.findOneOrFail(ListEntryEntity, where), created: affectedRows === 1 };
      }),

    remove: (scope, name, input) =>
      database.transaction(scope, async ({ em }) => {
        const list = parseListName(name);
        const entry = listEntryKey(input.entry);
        const place = await resolveEntryScope(em, scope, input);
        const removed =
          entry === null
            ? 0
            : await em.nativeDelete(ListEntryEntity, {
                organizationId: scope.organizationId,
                ...list,
                entry,
                ...place,
              });
        if (removed === 0) throw notFound('list entry', input.entry);
      }),
  };
}

function parseListName({ direction, effect }: ListName): { direction: ListDirection; effect: ListEffect } {
  const known = {
    direction: LIST_DIRECTIONS.find((name) => name === direction),
    effect: LIST_EFFECTS.find((name) => name === effect),
  };
  if (!known.direction || !known.effect) throw notFound('list', `${direction}/${effect}`);
  return { direction: known.direction, effect: known.effect };
}

/** @throws AppError `not_found` for an environment or inbox out of reach. */
async function resolveEntryScope(
  em: EntityManager,
  scope: Scope,
  { environmentId, inboxId = scope.inboxId }: EntryScope,
): Promise<{ environmentId: string | null; inboxId: string | null }> {
  const bound = scope.environmentBound || inboxId !== undefined;
  const wanted = environmentId ?? (bound ? scope.environmentId : null);
  if (wanted === null) return { environmentId: null, inboxId: null };
  const environment =
    scope.environmentBound && wanted !== scope.environmentId
      ? null
      : await em.findOne(EnvironmentEntity, { id: wanted, organizationId: scope.organizationId });
  if (!environment) throw notFound('environment', wanted);
  if (inboxId !== undefined) await findInbox(em, { ...scope, environmentId: wanted }, inboxId);
  return { environmentId: wanted, inboxId: inboxId ?? null };
}

function visibleTo(scope: Scope): FilterQuery<ListEntry> {
  const { environmentId, inboxId } = scope;
  const where: FilterQuery<ListEntry>[] = [];
  if (scope.environmentBound) where.push({ $or: [{ environmentId: null }, { environmentId }] });
  if (inboxId !== undefined) where.push({ $or: [{ inboxId: null }, { inboxId }] });
  return where.length > 0 ? { $and: where } : {};
}
