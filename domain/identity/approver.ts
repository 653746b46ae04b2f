import type { Db } from '../../platform/database/tables.ts';
import { AppError } from '../../platform/errors.ts';
import { findRequesterProblem } from './requester.ts';
import type { Scope } from './scope.ts';

/**
 * Checks the permission `messages:approve` again in the transaction of the decision. A removal or demotion of the member waits
 * for this transaction.
 *
 * @returns the user's id.
 * @throws AppError `permission_denied`.
 */
export async function requireApprover(db: Db, { organizationId, actor, member }: Scope): Promise<string> {
  if (actor.kind === 'user' && member) {
    const requester = { organizationId, actor };
    if (!(await findRequesterProblem(db, requester, { act: 'approval' }, { lock: true }))) return actor.id;
  }
  throw new AppError('permission_denied', {
    detail: 'Only a person whose role has the permission messages:approve decides about this.',
    fix: 'Sign in as an owner, admin or developer of the organization.',
    extensions: { permission: 'messages:approve' },
  });
}
