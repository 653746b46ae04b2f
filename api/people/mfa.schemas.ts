import { type Static, Type } from 'typebox';
import type { Enrollment } from '../../domain/people/mfa-enrollments.ts';
import { enumOf, id, nullableTimestamp, ref, resource, strictObject, text, timestamp } from '../schemas.ts';

export const MfaEnrollmentRecord = resource(
  'mfa_enrollment',
  {
    id: id('Id of the enrollment (mfa_…).'),
    type: enumOf(['totp', 'webauthn']),
    name: text(255),
    created_at: timestamp(),
    last_used_at: nullableTimestamp(),
  },
  { $id: 'MfaEnrollment', title: 'MfaEnrollment' },
);
export const MfaStatus = resource(
  'mfa_status',
  {
    enabled: Type.Boolean({ description: 'Signing in requires a second factor.' }),
    enrollments: Type.Array(ref(MfaEnrollmentRecord), { maxItems: 10 }),
    recovery_codes_left: Type.Integer({ minimum: 0 }),
  },
  { $id: 'MfaStatus', title: 'MfaStatus' },
);
export const SetUpTotp = strictObject(
  { name: Type.Optional(text(200, { minLength: 1, description: 'Default: Authenticator app.' })) },
  { $id: 'SetUpTotp', title: 'SetUpTotp' },
);
export const TotpSetup = resource(
  'totp_setup',
  {
    enrollment_id: id('Id of the enrollment (mfa_…), for POST /auth/mfa/totp/verify.'),
    secret: text(128, { description: 'Base32, for typing into an app. Returned only once.' }),
    otpauth_uri: text(1_024, { description: 'Content of the QR code.' }),
    qr_svg: text(65_536, { description: 'The QR code as an SVG image.' }),
  },
  { $id: 'TotpSetup', title: 'TotpSetup' },
);
const code = text(32, { minLength: 1, description: 'Six digits of the authenticator app.' });
export const VerifyTotp = strictObject(
  {
    enrollment_id: Type.Optional(
      id('Id of the enrollment (mfa_…). Default: the one that waits for its first code.'),
    ),
    code,
  },
  { $id: 'VerifyTotp', title: 'VerifyTotp' },
);
export const mfaToken = text(64, { minLength: 1, description: 'From POST /auth/login.' });
export const recoveryCodes = Type.Array(text(32), {
  maxItems: 10,
  description: 'Each replaces the second factor once. Returned only once.',
});
export const TotpVerified = resource(
  'enrolled_factor',
  {
    enrollment: ref(MfaEnrollmentRecord),
    recovery_codes: Type.Optional(recoveryCodes),
  },
  {
    $id: 'TotpVerified',
    title: 'TotpVerified',
    description: 'The enrollment; with recovery codes if it is the first one.',
  },
);
export const RecoveryCodes = resource(
  'recovery_codes',
  { recovery_codes: recoveryCodes },
  { $id: 'NewRecoveryCodes', title: 'NewRecoveryCodes' },
);
export function presentEnrollment(enrollment: Enrollment): Static<typeof MfaEnrollmentRecord> {
  return {
    object: 'mfa_enrollment',
    id: enrollment.id,
    type: enrollment.type,
    name: enrollment.name,
    created_at: enrollment.createdAt.toISOString(),
    last_used_at: enrollment.lastUsedAt?.toISOString() ?? null,
  };
}
