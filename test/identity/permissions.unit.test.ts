import { describe, expect, test } from '@jest/globals';
import { AGENT_PERMISSIONS, KEY_PERMISSIONS, PERMISSIONS } from '../../domain/identity/permissions.ts';
import { isRoleWithin, MEMBER_ROLES, ROLE_PERMISSIONS } from '../../domain/identity/roles.ts';
import {
  canAccessInbox,
  columnsWithin,
  isOrganizationWide,
  requireOrganizationWide,
  requirePermission,
  type Scope,
  withinScope,
} from '../../domain/identity/scope.ts';

const scope: Scope = {
  organizationId: 'org_1',
  environmentId: 'env_1',
  environmentBound: false,
  permissions: new Set(['messages:read']),
  actor: { kind: 'api_key', id: 'key_1' },
  requestId: 'req_1',
};
const ofInbox: Scope = { ...scope, environmentBound: true, inboxId: 'inb_1' };
const lackedBy = (held: readonly string[]) => PERMISSIONS.filter((name) => !held.includes(name));

describe('the permissions', () => {
  test('that only people have are approval, and closing or giving away the organization', () => {
    expect(lackedBy(KEY_PERMISSIONS)).toEqual(['messages:approve', 'org:transfer', 'org:delete']);
  });

  test('of an agent by default do not administer the organization', () => {
    const changes = AGENT_PERMISSIONS.filter((name) => !name.endsWith(':read'));
    expect(changes).toEqual([
      'inboxes:write',
      'drafts:write',
      'messages:write',
      'messages:send',
      'webhooks:manage',
    ]);
    expect(AGENT_PERMISSIONS.filter((name) => !KEY_PERMISSIONS.includes(name))).toEqual([]);
    expect(AGENT_PERMISSIONS).not.toContain('audit:read');
    expect(AGENT_PERMISSIONS).not.toContain('members:read');
  });

  test('of a role include those of the roles below it', () => {
    for (const [index, role] of MEMBER_ROLES.entries())
      for (const lower of MEMBER_ROLES.slice(index + 1))
        expect(ROLE_PERMISSIONS[role]).toEqual(expect.arrayContaining([...ROLE_PERMISSIONS[lower]]));
  });

  test('of an owner are all, and an admin lacks what ends or pays for the organization', () => {
    expect(lackedBy(ROLE_PERMISSIONS.owner)).toEqual([]);
    expect(lackedBy(ROLE_PERMISSIONS.admin)).toEqual(['org:transfer', 'org:delete', 'billing:manage']);
  });

  test('of a developer work with mail and own keys, and do not administer members or the organization', () => {
    const added = ROLE_PERMISSIONS.developer.filter((name) => !ROLE_PERMISSIONS.viewer.includes(name));
    expect(added.toSorted()).toEqual([
      'domains:manage',
      'drafts:write',
      'inboxes:write',
      'keys:manage',
      'lists:manage',
      'messages:approve',
      'messages:send',
      'messages:write',
      'suppressions:manage',
      'webhooks:manage',
    ]);
  });

  test('of a viewer only read, and neither members nor the audit log', () => {
    const others = PERMISSIONS.filter(
      (name) => name.endsWith(':read') && !ROLE_PERMISSIONS.viewer.includes(name),
    );
    expect(ROLE_PERMISSIONS.viewer.every((name) => name.endsWith(':read'))).toBe(true);
    expect(others).toEqual(['members:read', 'audit:read']);
  });
});

describe('a member', () => {
  test('acts on equal and lower roles only', () => {
    const within = MEMBER_ROLES.map((role) => MEMBER_ROLES.filter((other) => isRoleWithin(other, role)));
    expect(within).toEqual([
      ['owner', 'admin', 'developer', 'viewer'],
      ['admin', 'developer', 'viewer'],
      ['developer', 'viewer'],
      ['viewer'],
    ]);
  });
});

describe('an operation', () => {
  test('needs its permission', () => {
    expect(() => requirePermission(scope, 'messages:read')).not.toThrow();
    expect(() => requirePermission(scope, 'messages:send')).toThrow(
      expect.objectContaining({ code: 'permission_denied', extensions: { permission: 'messages:send' } }),
    );
  });

  test.each([
    ['messages:send' as const, /Use a key with the permission messages:send/],
    ['messages:approve' as const, /API keys cannot/],
  ])('that needs %s says whether a key can have it', (permission, fix) => {
    expect(() => requirePermission(scope, permission)).toThrow(
      expect.objectContaining({ fix: expect.stringMatching(fix) }),
    );
  });

  test.each([
    ['bound to nothing', scope, true],
    ['bound to an environment', { ...scope, environmentBound: true }, false],
    ['bound to an inbox', ofInbox, false],
    ['bound to an inbox alone', { ...scope, inboxId: 'inb_1' }, false],
  ])('on the whole organization takes a credential %s: %j', (_name, given, expected) => {
    expect(isOrganizationWide(given)).toBe(expected);
    if (expected) expect(() => requireOrganizationWide(given)).not.toThrow();
    else
      expect(() => requireOrganizationWide(given)).toThrow(
        expect.objectContaining({ code: 'permission_denied' }),
      );
  });
});

describe('a finder', () => {
  test('looks in the organization and environment of its scope', () => {
    expect(withinScope(scope)).toEqual({ organizationId: 'org_1', environmentId: 'env_1' });
    expect(columnsWithin(scope)).toEqual({ org_id: 'org_1', env_id: 'env_1' });
    expect(canAccessInbox(scope, 'inb_2')).toBe(true);
  });

  test('looks in the inbox to which the credential is bound', () => {
    expect(withinScope(ofInbox)).toEqual({
      organizationId: 'org_1',
      environmentId: 'env_1',
      inboxId: 'inb_1',
    });
    expect(columnsWithin(ofInbox)).toEqual({ org_id: 'org_1', env_id: 'env_1', inbox_id: 'inb_1' });
    expect([canAccessInbox(ofInbox, 'inb_1'), canAccessInbox(ofInbox, 'inb_2')]).toEqual([true, false]);
  });
});
