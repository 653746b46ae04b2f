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
  keys: {
    files: ['domain/api-keys/api-key-token.ts', 'platform/crypto.ts', 'platform/cursor.ts'],
    tests: [
      'test/api-keys/api-key-token.unit.test.ts',
      'test/platform/keys.unit.test.ts',
      'test/platform/cursor.unit.test.ts',
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
  dkim: {
    files: ['domain/mime/dkim-signature.ts'],
    tests: ['test/mime/dkim-signature.unit.test.ts'],
  },
  signatures: {
    files: [
      'api/plugins/signed-callers.ts',
      'domain/billing/stripe-signature.ts',
      'domain/deliverability/unsubscribe-links.ts',
      'platform/return-path.ts',
      'platform/webhook-signature.ts',
    ],
    tests: [
      'test/api/signed-callers.unit.test.ts',
      'test/billing/stripe-signature.unit.test.ts',
      'test/deliverability/unsubscribe-links.unit.test.ts',
      'test/platform/return-path.unit.test.ts',
      'test/platform/webhook-signature.unit.test.ts',
    ],
  },
  'rate-limits': {
    files: ['platform/rate-limit/rate-limiter.ts', 'workers/auth-throttle.ts', 'workers/inbound-limits.ts'],
    tests: [
      'test/platform/rate-limiter.unit.test.ts',
      'test/submission/auth-throttle.unit.test.ts',
      'test/inbound/limit-rules.unit.test.ts',
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
