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
  oidc: {
    files: ['platform/oauth-providers.ts', 'platform/oidc-client.ts'],
    tests: ['test/platform/oauth-providers.unit.test.ts', 'test/platform/oidc-client.unit.test.ts'],
  },
  saml: {
    files: [
      'domain/sso/saml/idp-metadata.ts',
      'domain/sso/saml/saml-assertion.ts',
      'domain/sso/saml/saml-response.ts',
      'domain/sso/saml/xml.ts',
      'domain/sso/sso-checks.ts',
      'domain/sso/sso-input.ts',
    ],
    tests: [
      'test/sso/idp-metadata.unit.test.ts',
      'test/sso/saml-assertion.unit.test.ts',
      'test/sso/saml-response.unit.test.ts',
      'test/sso/xml.unit.test.ts',
      'test/sso/sso-checks.unit.test.ts',
      'test/sso/sso-input.unit.test.ts',
    ],
  },
  egress: {
    files: [
      'platform/network.ts',
      'platform/egress/address-policy.ts',
      'platform/egress/http-date.ts',
      'platform/egress/target.ts',
      'platform/egress/egress.ts',
      'platform/egress/guarded-fetch.ts',
    ],
    tests: [
      'test/platform/network.unit.test.ts',
      'test/egress/address-policy.unit.test.ts',
      'test/egress/egress.unit.test.ts',
      'test/egress/guarded-fetch.unit.test.ts',
      'test/egress/http-date.unit.test.ts',
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

/** Use-cases that need PostgreSQL, and the tests (files or folders) of their rooms: `sample.ts` runs some of their mutants. */
export const SAMPLED_AREAS: readonly Area[] = [
  {
    files: [
      'domain/outbound/check-send.ts',
      'domain/outbound/held-sends.ts',
      'domain/outbound/outcome-state.ts',
      'domain/outbound/outcome.service.ts',
      'domain/outbound/restored-sends.ts',
      'domain/outbound/send.service.ts',
      'domain/outbound/stop-send.ts',
      'domain/outbound/transmit-message.ts',
    ],
    tests: ['test/outbound', 'test/deliverability', 'test/restores', 'test/suspensions'],
  },
  {
    files: [
      'domain/webhooks/attempt-slots.ts',
      'domain/webhooks/begin-attempt.ts',
      'domain/webhooks/delivery-state.ts',
      'domain/webhooks/endpoint-health.ts',
      'domain/webhooks/record-attempt.ts',
      'domain/webhooks/retry-pacing.ts',
    ],
    tests: ['test/webhooks'],
  },
  {
    files: [
      'domain/usage/apply-usage-deltas.ts',
      'domain/usage/change-limits.ts',
      'domain/usage/count-usage.ts',
      'domain/usage/periods.ts',
      'domain/usage/resource-quotas.ts',
      'domain/usage/usage-ledger.ts',
    ],
    tests: ['test/usage', 'test/usage-alerts'],
  },
  {
    files: [
      'domain/retention/expired-mail.service.ts',
      'domain/retention/retention-policy.service.ts',
      'domain/retention/retention.service.ts',
    ],
    tests: ['test/retention'],
  },
  {
    files: ['domain/billing/grace-plan.ts', 'domain/billing/payment-grace.service.ts'],
    tests: ['test/billing'],
  },
  {
    files: [
      'domain/sessions/create-session.ts',
      'domain/sessions/known-devices.ts',
      'domain/sessions/session-authenticator.ts',
      'domain/sessions/session-policies.ts',
      'domain/sessions/session.service.ts',
    ],
    tests: ['test/sessions', 'test/people', 'test/sso/enforcement.api.test.ts'],
  },
  {
    files: ['domain/invitations/accept-invitation.service.ts', 'domain/invitations/invitation.service.ts'],
    tests: ['test/people', 'test/organizations/owner-emails.api.test.ts'],
  },
];
