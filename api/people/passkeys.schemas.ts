import { Type } from 'typebox';
import { enumOf, ref, resource, strictObject, text } from '../schemas.ts';
import { MfaEnrollmentRecord, mfaToken, recoveryCodes } from './mfa.schemas.ts';

/** Names and values of WebAuthn Level 3, because browsers take and return them as they are (section 5.1.8). */
const base64url = (maxLength: number, description: string) =>
  text(maxLength, { pattern: '^[A-Za-z0-9_-]*$', description });

const TYPE = enumOf(['public-key']);
/** A credential id has at most 1,023 bytes. */
const credentialId = base64url(1_364, 'Id of the credential.');
const clientDataJson = base64url(8_192, 'What the browser signed: challenge, origin and type.');
const transports = Type.Array(text(32), { maxItems: 20 });
/** Browser extensions add results of their own. */
const ignored = (description: string) =>
  Type.Unsafe<object>({ type: 'object', maxProperties: 50, additionalProperties: {}, description });

const CREDENTIAL_FIELDS = {
  id: credentialId,
  rawId: credentialId,
  type: TYPE,
  authenticatorAttachment: Type.Optional(
    Type.Unsafe<'platform' | 'cross-platform'>({ type: ['string', 'null'], maxLength: 32 }),
  ),
  clientExtensionResults: ignored('Not read.'),
};

export const RegistrationResponse = strictObject(
  {
    ...CREDENTIAL_FIELDS,
    response: strictObject({
      clientDataJSON: clientDataJson,
      attestationObject: base64url(65_536, 'CBOR: authenticator data with the public key.'),
      transports: Type.Optional(transports),
      authenticatorData: Type.Optional(base64url(16_384, 'Not read: part of attestationObject.')),
      publicKey: Type.Optional(
        Type.Unsafe<string>({
          type: ['string', 'null'],
          maxLength: 16_384,
          description: 'Not read: part of attestationObject.',
        }),
      ),
      publicKeyAlgorithm: Type.Optional(Type.Integer()),
    }),
  },
  {
    $id: 'RegistrationResponse',
    title: 'RegistrationResponse',
    description: 'RegistrationResponseJSON of WebAuthn: what navigator.credentials.create() returned.',
  },
);

export const AssertionResponse = strictObject(
  {
    ...CREDENTIAL_FIELDS,
    response: strictObject({
      clientDataJSON: clientDataJson,
      authenticatorData: base64url(16_384, 'RP ID hash, flags and counter.'),
      signature: base64url(4_096, 'Signature over the two.'),
      userHandle: Type.Optional(
        Type.Unsafe<string>({
          type: ['string', 'null'],
          maxLength: 128,
          description: 'Names the account that the credential was created for.',
        }),
      ),
    }),
  },
  {
    $id: 'AssertionResponse',
    title: 'AssertionResponse',
    description: 'AuthenticationResponseJSON of WebAuthn: what navigator.credentials.get() returned.',
  },
);

const descriptors = (description: string) =>
  Type.Array(strictObject({ id: credentialId, type: text(32), transports: Type.Optional(transports) }), {
    maxItems: 20,
    description,
  });
const challenge = base64url(128, 'Works once and for five minutes.');
const userVerification = enumOf(['required', 'preferred', 'discouraged']);
const timeout = Type.Optional(Type.Integer({ minimum: 0, description: 'Milliseconds.' }));

export const RegistrationOptions = strictObject(
  {
    rp: strictObject({
      id: Type.Optional(text(253, { description: 'Host name of the service.' })),
      name: text(253),
    }),
    user: strictObject({
      id: base64url(128, 'Random handle of the account.'),
      name: text(254),
      displayName: text(255),
    }),
    challenge,
    pubKeyCredParams: Type.Array(strictObject({ alg: Type.Integer(), type: TYPE }), { maxItems: 20 }),
    timeout,
    excludeCredentials: Type.Optional(descriptors('Passkeys that you have registered.')),
    authenticatorSelection: Type.Optional(
      strictObject({
        residentKey: Type.Optional(enumOf(['required', 'preferred', 'discouraged'])),
        requireResidentKey: Type.Optional(Type.Boolean()),
        userVerification: Type.Optional(userVerification),
      }),
    ),
    attestation: Type.Optional(enumOf(['none', 'direct', 'enterprise', 'indirect'])),
    extensions: Type.Optional(strictObject({ credProps: Type.Optional(Type.Boolean()) })),
    hints: Type.Optional(Type.Array(text(32), { maxItems: 10 })),
  },
  {
    $id: 'RegistrationOptions',
    title: 'RegistrationOptions',
    description: 'PublicKeyCredentialCreationOptionsJSON of WebAuthn, for navigator.credentials.create().',
  },
);

export const AssertionOptions = strictObject(
  {
    challenge,
    rpId: Type.Optional(text(253, { description: 'Host name of the service.' })),
    allowCredentials: Type.Optional(
      descriptors('Passkeys of the person who signs in; absent for a sign-in by passkey alone.'),
    ),
    timeout,
    userVerification: Type.Optional(userVerification),
  },
  {
    $id: 'AssertionOptions',
    title: 'AssertionOptions',
    description: 'PublicKeyCredentialRequestOptionsJSON of WebAuthn, for navigator.credentials.get().',
  },
);

export const RegisterPasskey = strictObject(
  {
    response: ref(RegistrationResponse),
    name: Type.Optional(text(200, { minLength: 1, description: 'At most 50 characters. Default: Passkey.' })),
  },
  { $id: 'RegisterPasskey', title: 'RegisterPasskey' },
);
export const PasskeyRegistered = resource(
  'enrolled_factor',
  { enrollment: ref(MfaEnrollmentRecord), recovery_codes: Type.Optional(recoveryCodes) },
  {
    $id: 'PasskeyRegistered',
    title: 'PasskeyRegistered',
    description: 'The enrollment; with recovery codes if it is the first factor.',
  },
);
export const RequestAssertion = strictObject(
  { mfa_token: Type.Optional(mfaToken) },
  { $id: 'RequestAssertion', title: 'RequestAssertion' },
);
export const SignInByPasskey = strictObject(
  { response: ref(AssertionResponse) },
  { $id: 'SignInByPasskey', title: 'SignInByPasskey' },
);
export const CompleteMfa = strictObject(
  {
    mfa_token: mfaToken,
    method: enumOf(['totp', 'webauthn', 'recovery_code']),
    code: Type.Optional(
      text(64, { minLength: 1, description: 'Six digits, or a recovery code. Not with webauthn.' }),
    ),
    response: Type.Optional(ref(AssertionResponse)),
  },
  { $id: 'CompleteMfa', title: 'CompleteMfa' },
);
