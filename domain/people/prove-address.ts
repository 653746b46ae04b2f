import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';

/** Voids pending sign-ups with an address, whose owner has just proved it: others may have begun them. */
export async function voidSignUps(em: EntityManager, email: string): Promise<void> {
  await em.execute(sql`update sign_ups set used_at = now() where email = ${email} and used_at is null`);
}

/** Records that a person has proved the address of their account. */
export async function markAddressVerified(em: EntityManager, userId: string): Promise<void> {
  await em.execute(sql`
    update users set email_verified_at = coalesce(email_verified_at, now()) where id = ${userId}`);
}
