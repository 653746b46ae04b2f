import type { Expression, ExpressionBuilder, SqlBool } from 'kysely';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Database } from '../../platform/database/database.ts';
import { findPage } from '../../platform/database/pages.ts';
import type { Db, Tables } from '../../platform/database/tables.ts';
import { AppError, invalid, notFound } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import type { Page, PageRequest } from '../../platform/pagination.ts';
import type { ChangeOf } from '../audit/audit-actions.ts';
import { recordAudit } from '../audit/record-audit.ts';
import type { Scope } from '../identity/scope.ts';
import { findInbox, type InboxRow, requireActive } from '../inboxes/find-inbox.ts';
import { toListEntryKey } from '../mime/mail-address.ts';
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

export type ListService = ReturnType<typeof createListService>;

export interface ListServiceOptions {
  database: Database;
  /** Whether this installation checks SPF, DKIM and DMARC of received mail. */
  authenticatesMail: boolean;
}

export function createListService({ database, authenticatesMail }: ListServiceOptions) {
  return {
    /**
     * Lists the entries that apply to what the credential can access: an organization-wide credential sees all, one bound
     * to an inbox sees the entries of the inbox, its environment and the organization. With an entry scope: the entries
     * of exactly that scope.
     *
     * @throws AppError `not_found` for an unknown list, or an entry scope that the credential cannot access.
     */
    list: (
      scope: Scope,
      name: ListName,
      entryScope: EntryScope,
      page: PageRequest,
    ): Promise<Page<ListEntry>> =>
      database.read(scope, async ({ db }) => {
        const { direction, effect } = parseListName(name);
        const entries = db
          .selectFrom('list_entries')
          .select(columnsOf(ListEntryEntity))
          .where('org_id', '=', scope.organizationId)
          .where('direction', '=', direction)
          .where('effect', '=', effect);
        if (entryScope.environmentId === undefined && entryScope.inboxId === undefined)
          return findPage(entries.where(isVisibleTo(scope)), 'list_entries.id', page);
        const { key } = await resolveEntryScope(db, scope, entryScope);
        return findPage(entries.where(isOfScope(key)), 'list_entries.id', page);
      }),

    /**
     * Adds an entry, or returns the existing one, with the `authenticated` of the input if it has one.
     *
     * @throws AppError `validation_error`, `not_found`, `inbox_suspended`.
     */
    add: (
      scope: Scope,
      name: ListName,
      input: EntryScope & { entry: string; authenticated?: boolean | undefined },
    ): Promise<{ entry: ListEntry; created: boolean }> =>
      database.transaction(scope, async ({ db }) => {
        const list = parseListName(name);
        const entry = toListEntryKey(input.entry);
        if (entry === null)
          throw invalid(
            '/body/entry',
            'is neither an address nor a domain',
            'Use name@domain, or a domain such as example.com, which includes its subdomains.',
          );
        const entryScope = await resolveActiveEntryScope(db, scope, input);
        const { authenticated } = input;
        if (authenticated) requireAuthentication(list, authenticatesMail);
        const changed = { ...list, entry, ...entryScope, authenticated };
        const created = await insertEntry(db, scope.organizationId, changed);
        if (created) {
          await audit(db, scope, changed, 'created');
          return { entry: created, created: true };
        }
        const existing = await findEntry(db, scope.organizationId, changed);
        if (authenticated === undefined || authenticated === existing.authenticated)
          return { entry: existing, created: false };
        const updated = await setAuthenticated(db, existing, authenticated);
        await audit(db, scope, changed, 'updated');
        return { entry: updated, created: false };
      }),

    /** @throws AppError `not_found`, `inbox_suspended`. */
    remove: (scope: Scope, name: ListName, input: EntryScope & { entry: string }): Promise<void> =>
      database.transaction(scope, async ({ db }) => {
        const list = parseListName(name);
        const entry = toListEntryKey(input.entry);
        const entryScope = await resolveActiveEntryScope(db, scope, input);
        if (entry === null) throw notFound('list entry', input.entry);
        const { numDeletedRows } = await db
          .deleteFrom('list_entries')
          .where('org_id', '=', scope.organizationId)
          .where('direction', '=', list.direction)
          .where('effect', '=', list.effect)
          .where('entry', '=', entry)
          .where(isOfScope(entryScope))
          .executeTakeFirst();
        if (numDeletedRows === 0n) throw notFound('list entry', input.entry);
        await audit(db, scope, { ...list, entry, ...entryScope }, 'removed');
      }),
  };
}

interface EntryScopeKey {
  environmentId: string | null;
  inboxId: string | null;
}

interface ChangedEntry extends EntryScopeKey {
  direction: ListDirection;
  effect: ListEffect;
  entry: string;
  authenticated?: boolean | undefined;
}

/** @throws AppError `validation_error`. */
function requireAuthentication(
  { direction, effect }: { direction: ListDirection; effect: ListEffect },
  authenticatesMail: boolean,
): void {
  if (direction !== 'receive' || effect !== 'allow')
    throw invalid(
      '/body/authenticated',
      'is only for the receive allow list',
      'Omit it, or add the entry with POST /api/v1/lists/receive/allow.',
    );
  if (!authenticatesMail)
    throw invalid(
      '/body/authenticated',
      'is not available: this installation does not authenticate received mail (AUTHENTICATE_INBOUND)',
      'Omit it.',
    );
}

function setAuthenticated(db: Db, { id }: ListEntry, authenticated: boolean): Promise<ListEntry> {
  return db
    .updateTable('list_entries')
    .set({ authenticated })
    .where('id', '=', id)
    .returning(columnsOf(ListEntryEntity))
    .executeTakeFirstOrThrow(() => notFound('list entry', id));
}

/** @returns undefined if the entry already exists. */
function insertEntry(
  db: Db,
  organizationId: string,
  { direction, effect, entry, environmentId, inboxId, authenticated = false }: ChangedEntry,
): Promise<ListEntry | undefined> {
  return db
    .insertInto('list_entries')
    .values({
      id: newId('listEntry'),
      org_id: organizationId,
      direction,
      effect,
      entry,
      authenticated,
      env_id: environmentId,
      inbox_id: inboxId,
    })
    .onConflict((conflict) =>
      conflict.columns(['org_id', 'direction', 'entry', 'effect', 'env_id', 'inbox_id']).doNothing(),
    )
    .returning(columnsOf(ListEntryEntity))
    .executeTakeFirst();
}

/** Finds the entry that {@link insertEntry} found to exist. */
function findEntry(
  db: Db,
  organizationId: string,
  { direction, effect, entry, environmentId, inboxId }: ChangedEntry,
): Promise<ListEntry> {
  return db
    .selectFrom('list_entries')
    .select(columnsOf(ListEntryEntity))
    .where('org_id', '=', organizationId)
    .where('direction', '=', direction)
    .where('effect', '=', effect)
    .where('entry', '=', entry)
    .where(isOfScope({ environmentId, inboxId }))
    .executeTakeFirstOrThrow(
      () =>
        new AppError('conflict', {
          detail: 'Another request removed the entry at the same time.',
          fix: 'Repeat the request.',
        }),
    );
}

function audit(
  db: Db,
  scope: Scope,
  { direction, effect, entry, environmentId, inboxId, authenticated }: ChangedEntry,
  change: ChangeOf<'list_entry'>,
): Promise<void> {
  return recordAudit(db, scope, {
    action: `list_entry.${change}`,
    resourceType: 'list_entry',
    resourceId: entry,
    details: {
      direction,
      effect,
      env_id: environmentId,
      inbox_id: inboxId,
      ...(authenticated === undefined ? {} : { authenticated }),
    },
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

/** @throws AppError `not_found` for an environment or inbox that the credential cannot access. */
async function resolveEntryScope(
  db: Db,
  scope: Scope,
  { environmentId, inboxId = scope.inboxId }: EntryScope,
): Promise<{ key: EntryScopeKey; inbox?: InboxRow }> {
  const isBound = scope.environmentBound || inboxId !== undefined;
  const id = environmentId ?? (isBound ? scope.environmentId : null);
  if (id === null) return { key: { environmentId: null, inboxId: null } };
  const isReachable = !scope.environmentBound || id === scope.environmentId;
  if (!isReachable || !(await hasEnvironment(db, scope.organizationId, id)))
    throw notFound('environment', id);
  if (inboxId === undefined) return { key: { environmentId: id, inboxId: null } };
  const inbox = await findInbox(db, { ...scope, environmentId: id }, inboxId);
  return { key: { environmentId: id, inboxId }, inbox };
}

async function hasEnvironment(db: Db, organizationId: string, id: string): Promise<boolean> {
  const environment = await db
    .selectFrom('environments')
    .select('id')
    .where('id', '=', id)
    .where('org_id', '=', organizationId)
    .executeTakeFirst();
  return environment !== undefined;
}

/** For changes. @throws AppError as {@link resolveEntryScope}; `inbox_suspended`. */
async function resolveActiveEntryScope(db: Db, scope: Scope, entryScope: EntryScope): Promise<EntryScopeKey> {
  const { key, inbox } = await resolveEntryScope(db, scope, entryScope);
  if (inbox) requireActive(inbox);
  return key;
}

type Condition = (eb: ExpressionBuilder<Tables, 'list_entries'>) => Expression<SqlBool>;

const isOfScope =
  ({ environmentId, inboxId }: EntryScopeKey): Condition =>
  (eb) =>
    eb.and([
      eb('env_id', 'is not distinct from', environmentId),
      eb('inbox_id', 'is not distinct from', inboxId),
    ]);

/** Entries of the organization, and of the environment and inbox that the credential is bound to. */
const isVisibleTo =
  ({ environmentBound, environmentId, inboxId }: Scope): Condition =>
  (eb) =>
    eb.and([
      ...(environmentBound ? [eb.or([eb('env_id', 'is', null), eb('env_id', '=', environmentId)])] : []),
      ...(inboxId === undefined ? [] : [eb.or([eb('inbox_id', 'is', null), eb('inbox_id', '=', inboxId)])]),
    ]);
