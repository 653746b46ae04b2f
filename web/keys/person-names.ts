import type { Scope } from '../../domain/identity/scope.ts';
import type { MemberService } from '../../domain/organizations/member.service.ts';

const MEMBERS = { limit: 100, order: 'asc' } as const;

/** How a page names a person of the organization. */
export type NameOf = (userId: string | null) => string;

/** Members who may not see each other are named by what they are to the reader. */
export async function findNames(members: MemberService, scope: Scope): Promise<NameOf> {
  const page = scope.permissions.has('members:read') ? await members.list(scope, MEMBERS) : undefined;
  const names = new Map(page?.items.map(({ userId, name, email }) => [userId, name ?? email]));
  const me = scope.member?.person.userId;
  return (userId) => {
    if (userId === null) return 'the installation';
    if (userId === me) return 'you';
    return names.get(userId) ?? (page && page.next === null ? 'a former member' : 'another member');
  };
}
