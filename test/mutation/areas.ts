/** Files of rules that need no server, and the unit tests that must find their mutants. */
export interface Area {
  files: readonly string[];
  tests: readonly string[];
}

export const AREAS: Readonly<Record<string, Area>> = {
  'sign-in': {
    files: [
      'domain/identity/password.ts',
      'domain/identity/password-hash-queue.ts',
      'domain/identity/person.ts',
      'domain/identity/authentication.ts',
      'domain/identity/sign-in-errors.ts',
      'domain/identity/safe-name.ts',
      'domain/people/password-rules.ts',
      'domain/people/totp.ts',
      'domain/sessions/session-token.ts',
    ],
    tests: [
      'test/identity/password.unit.test.ts',
      'test/identity/password-hash-queue.unit.test.ts',
      'test/identity/sign-in-rules.unit.test.ts',
      'test/identity/safe-name.unit.test.ts',
      'test/people/password-rules.unit.test.ts',
      'test/people/totp.unit.test.ts',
      'test/sessions/session-token.unit.test.ts',
    ],
  },
  permissions: {
    files: [
      'domain/identity/permissions.ts',
      'domain/identity/roles.ts',
      'domain/identity/scope.ts',
      'domain/identity/allowed-addresses.ts',
      'domain/policies/weakened-policies.ts',
    ],
    tests: [
      'test/identity/allowed-addresses.unit.test.ts',
      'test/identity/permissions.unit.test.ts',
      'test/policies/weakened-policies.unit.test.ts',
    ],
  },
  'send-gate': {
    files: [
      'domain/outbound/send-gate.ts',
      'domain/deliverability/list-match.ts',
      'domain/deliverability/reputation.ts',
      'domain/usage/effective-limit.ts',
    ],
    tests: [
      'test/outbound/send-gate.unit.test.ts',
      'test/deliverability/list-match.unit.test.ts',
      'test/deliverability/reputation.unit.test.ts',
      'test/usage/effective-limit.unit.test.ts',
    ],
  },
};
