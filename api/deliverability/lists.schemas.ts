import { type Static, Type } from 'typebox';
import type { ListEntry } from '../../domain/deliverability/list-entry.entity.ts';
import { LIST_DIRECTIONS, LIST_EFFECTS, LIST_SCOPES } from '../../domain/deliverability/list-match.ts';
import { minimalOf } from '../minimal-response.ts';
import {
  enumOf,
  id,
  MAX_ID_LENGTH,
  nullableText,
  orNull,
  resource,
  strictObject,
  text,
  timestamp,
} from '../schemas.ts';

export const ListEntryRecord = resource(
  'list_entry',
  {
    entry: text(320, { description: 'An address, or a domain with its subdomains, in lower case.' }),
    direction: enumOf(LIST_DIRECTIONS),
    effect: enumOf(LIST_EFFECTS),
    authenticated: Type.Boolean({
      description:
        'Of the receive allow list: mail of the sender is accepted only if DMARC passes for the entry’s domain, or one of its DKIM signatures is valid.',
    }),
    scope: enumOf(LIST_SCOPES, { description: 'Where the entry applies.' }),
    env_id: nullableText(MAX_ID_LENGTH, { description: 'Null for an entry of the organization.' }),
    inbox_id: nullableText(MAX_ID_LENGTH, {
      description: 'Null for an entry of an environment or the organization.',
    }),
    created_at: timestamp(),
  },
  { $id: 'ListEntry', title: 'ListEntry' },
);

/** These fields identify an entry. */
export const MinimalListEntry = minimalOf(ListEntryRecord, [
  'entry',
  'direction',
  'effect',
  'scope',
  'env_id',
  'inbox_id',
]);
/** Spread into the config of changes that return a list entry. */
export const LIST_ENTRY_RESPONSE = {
  readPermission: 'lists:read',
  minimalResponse: MinimalListEntry,
} as const;

/** If both are omitted, the scope that the credential is bound to applies. */
export const entryScopeFields = {
  env_id: Type.Optional(id('Environment of an environment-scoped entry.')),
  inbox_id: Type.Optional(
    id('Inbox of an inbox-scoped entry; requires env_id if it is not in the environment of the request.'),
  ),
};

export const CreateListEntry = strictObject(
  {
    entry: text(320, { minLength: 1, description: 'name@domain, or a domain.' }),
    authenticated: Type.Optional(
      Type.Boolean({
        description:
          'Only for the receive allow list: accept mail of the sender only if DMARC passes for the entry’s domain, or one of its DKIM signatures is valid. An existing entry is changed.',
      }),
    ),
    env_id: Type.Optional(orNull(entryScopeFields.env_id)),
    inbox_id: Type.Optional(orNull(entryScopeFields.inbox_id)),
  },
  { $id: 'CreateListEntry', title: 'CreateListEntry' },
);

export function presentListEntry(entry: ListEntry): Static<typeof ListEntryRecord> {
  const narrow = entry.inboxId === null ? 'environment' : 'inbox';
  return {
    object: 'list_entry',
    entry: entry.entry,
    direction: entry.direction,
    effect: entry.effect,
    authenticated: entry.authenticated,
    scope: entry.environmentId === null ? 'organization' : narrow,
    env_id: entry.environmentId,
    inbox_id: entry.inboxId,
    created_at: entry.createdAt.toISOString(),
  };
}
