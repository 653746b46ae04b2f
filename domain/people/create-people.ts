import { bounceDomain, type Config } from '../../platform/config.ts';
import { createSigner, type SecretBox } from '../../platform/crypto.ts';
import type { Database } from '../../platform/database/database.ts';
import type { OptionsOf } from '../../platform/options-of.ts';
import { type Argon2Parameters, createPasswordHashing } from '../identity/password.ts';
import type { PersonNotificationService } from '../notifications/person-notification.service.ts';
import { createAccountService } from './account.service.ts';
import { createMfaService } from './mfa.service.ts';
import { createMfaChallengeService } from './mfa-challenge.service.ts';
import { createOwnOrganizationService } from './own-organization.service.ts';
import { createPasskeyEnrollmentService } from './passkeys/passkey-enrollment.service.ts';
import { createPasskeySignInService } from './passkeys/passkey-sign-in.service.ts';
import { relyingPartyOf } from './passkeys/webauthn-ceremonies.ts';
import { createPasswordService } from './password.service.ts';
import { createPolicyPreviewService } from './policy-preview.service.ts';
import { createSignInService } from './sign-in.service.ts';
import { createSignInThrottle } from './sign-in-throttle.ts';
import { createSignUpService } from './sign-up.service.ts';

/** Dependencies of the services that sign people in or change their accounts, in this room and in the rooms above it. */
export type PeopleDependencies = ReturnType<typeof preparePeople>;

export function preparePeople({
  config,
  database,
  personNotifications,
  secretBox,
  passwordParameters,
}: {
  config: Config;
  database: Database;
  personNotifications: PersonNotificationService;
  secretBox: SecretBox;
  passwordParameters?: Argon2Parameters | undefined;
}) {
  return {
    database,
    notifications: personNotifications,
    throttle: createSignInThrottle({ database }),
    passwordHashing: createPasswordHashing(passwordParameters),
    secretBox,
    recoverySigner: createSigner(config.SIGNING_KEY, 'recovery-code'),
    relyingParty: relyingPartyOf(config.PUBLIC_URL),
    tier: config.DEFAULT_TIER,
    // Every tenant can receive mail in these domains.
    ownDomains: [config.MAIL_DOMAIN, bounceDomain(config)].map((domain) => domain.toLowerCase()),
  };
}

type Options = PeopleDependencies &
  Pick<OptionsOf<typeof createMfaChallengeService>, 'restoreDeleted'> & { config: Config };

/** What the API does for people who sign up, sign in and change their accounts. */
export function createPeople(options: Options) {
  return {
    signUps: createSignUpService(options),
    signIns: createSignInService(options),
    passwords: createPasswordService(options),
    accounts: createAccountService(options),
    ownOrganizations: createOwnOrganizationService(options),
    mfa: createMfaService({ ...options, issuer: new URL(options.config.PUBLIC_URL).hostname }),
    mfaChallenges: createMfaChallengeService(options),
    passkeyEnrollments: createPasskeyEnrollmentService(options),
    passkeySignIns: createPasskeySignInService(options),
    policyPreviews: createPolicyPreviewService(options),
  };
}
