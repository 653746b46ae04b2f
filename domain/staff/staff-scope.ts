import type { Person } from '../identity/person.ts';

/** `support` reads, and retries or cancels work; `admin` may do everything under `/admin`. */
export const STAFF_ROLES = ['support', 'admin'] as const;
export type StaffRole = (typeof STAFF_ROLES)[number];

/** A signed-in staff member, who made a request. */
export interface StaffScope {
  /** Their user id (usr_…). */
  staffId: string;
  role: StaffRole;
  person: Person;
  ip: string;
  requestId: string;
}
