import { randomBytes } from 'node:crypto';
import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';

const MAX_SLUG_CHARACTERS = 40;

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

/** Returns the slug of a name, with random characters appended if another organization has it. For the people role. */
export async function findFreeSlug(em: EntityManager, name: string): Promise<string> {
  const slug = toSlug(name);
  const taken = await em.execute<object[]>(sql`select from organizations where slug = ${slug}`);
  return taken.length === 0 ? slug : `${slug}-${randomBytes(4).toString('hex')}`;
}
