import { randomBytes } from 'node:crypto';
import { sql } from 'kysely';
import type { Database } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { invalid } from '../../platform/errors.ts';

const MAX_SLUG_CHARACTERS = 40;

/** Common words in paths and hosts of services like this one. An organization must not look like a part of the service. */
const RESERVED_SLUGS: ReadonlySet<string> = new Set(
  (
    'about abuse account accounts admin api app approvals assets auth billing blog callback console dashboard ' +
    'docs email errors events export health help home inbox invitations legal login logout mail me metrics new null ' +
    'oauth oidc org organization organizations postmaster public recover root saml security settings shared signin ' +
    'signup sso staff static status store support system team test undefined user users webhooks www'
  ).split(' '),
);

/**
 * Checks a slug chosen by a person.
 *
 * @throws AppError `validation_error`.
 */
export function requireSlug(slug: string, path: string): string {
  if (!/^[a-z0-9](?:-?[a-z0-9]){1,39}$/.test(slug) || slug.length > MAX_SLUG_CHARACTERS)
    throw invalid(
      path,
      `must be 2 to ${MAX_SLUG_CHARACTERS} lower-case letters, digits and single hyphens`,
      'Use a form like acme-labs.',
    );
  if (RESERVED_SLUGS.has(slug)) throw invalid(path, 'is reserved', 'Choose another one.');
  return slug;
}

/** Turns a name into the part of a URL: lower-case ASCII letters, digits and hyphens. */
export function toSlug(name: string): string {
  const slug = name
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, MAX_SLUG_CHARACTERS)
    .replace(/^-|-$/g, '');
  return slug || 'organization';
}

/** Returns the slug of a name, with random characters appended if it is taken or reserved. For the people role. */
export async function findFreeSlug(db: Db, name: string): Promise<string> {
  const slug = toSlug(name);
  const taken = await db
    .selectFrom('organizations')
    .select('slug')
    .where('slug', '=', slug)
    .unionAll((eb) => eb.selectFrom('released_slugs').select('slug').where('slug', '=', slug))
    .execute();
  return taken.length === 0 && !RESERVED_SLUGS.has(slug) ? slug : `${slug}-${randomBytes(4).toString('hex')}`;
}

const PURGE_BATCH_SIZE = 1_000;

/** Sweep: deletes the slugs whose reservation has ended. Returns their number. */
export async function purgeReleasedSlugs({ db }: Database): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('released_slugs')
    .where('slug', 'in', (eb) =>
      eb
        .selectFrom('released_slugs')
        .select('slug')
        .where('released_at', '<', sql<Date>`now() - interval '90 days'`)
        .limit(PURGE_BATCH_SIZE),
    )
    .executeTakeFirstOrThrow(() => new Error('PostgreSQL returned no result'));
  return Number(numDeletedRows);
}
