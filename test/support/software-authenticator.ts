import {
  createHash,
  generateKeyPairSync,
  type JsonWebKey,
  type KeyObject,
  randomBytes,
  sign as signBytes,
} from 'node:crypto';

/** What a test may spoil in a ceremony. */
export interface Deviation {
  origin?: string;
  rpId?: string;
  type?: string;
  challenge?: string;
  crossOrigin?: boolean;
  topOrigin?: string;
  userPresent?: boolean;
  userVerified?: boolean;
  counter?: number;
  userHandle?: string | null;
  /** Signs with another key. */
  key?: KeyObject;
  /** Registration: names this credential instead of the new one. */
  credentialId?: Buffer;
  /** Registration: attests to what the authenticator signs. Default: no attestation. */
  attest?: (signed: Buffer) => { format: string; statement: Map<string, unknown> };
}

interface RegistrationOptions {
  challenge: string;
  rp: { id: string };
  user: { id: string };
}

type Algorithm = 'ES256' | 'EdDSA';

const FLAGS = { userPresent: 0x01, userVerified: 0x04, attestedData: 0x40 };

/**
 * An authenticator with one discoverable credential, and the browser in front of it (WebAuthn sections 6 and 7): both sign
 * whatever the test wants.
 */
export function createSoftwareAuthenticator({
  origin = 'http://localhost:3000',
  algorithm = 'ES256',
  hasCounter = true,
}: {
  origin?: string;
  algorithm?: Algorithm;
  hasCounter?: boolean;
} = {}) {
  const keys = createKeys(algorithm);
  const credentialId = randomBytes(32);
  let counter = 0;
  let userHandle = '';
  let rpId = '';

  const clientData = (type: string, challenge: string, deviation: Deviation) =>
    Buffer.from(
      JSON.stringify({
        type: deviation.type ?? type,
        challenge: deviation.challenge ?? challenge,
        origin: deviation.origin ?? origin,
        crossOrigin: deviation.crossOrigin ?? false,
        ...(deviation.topOrigin === undefined ? {} : { topOrigin: deviation.topOrigin }),
      }),
    );

  function authenticatorData(deviation: Deviation, attestedData = Buffer.alloc(0)): Buffer {
    if (hasCounter) counter += 1;
    const flags =
      ((deviation.userPresent ?? true) ? FLAGS.userPresent : 0) |
      ((deviation.userVerified ?? true) ? FLAGS.userVerified : 0) |
      (attestedData.length > 0 ? FLAGS.attestedData : 0);
    const count = Buffer.alloc(4);
    count.writeUInt32BE(deviation.counter ?? counter);
    return Buffer.concat([hash(deviation.rpId ?? rpId), Buffer.of(flags), count, attestedData]);
  }

  return {
    credentialId,
    algorithm,
    /** Signs as the credential, for self attestation. */
    sign: (bytes: Buffer) => sign(keys.privateKey, bytes),
    /** `navigator.credentials.create()` */
    register(options: RegistrationOptions, deviation: Deviation = {}) {
      userHandle = options.user.id;
      rpId = options.rp.id;
      const id = deviation.credentialId ?? credentialId;
      const length = Buffer.alloc(2);
      length.writeUInt16BE(id.length);
      const attested = Buffer.concat([Buffer.alloc(16), length, id, encodeCbor(keys.cose)]);
      const data = authenticatorData(deviation, attested);
      const client = clientData('webauthn.create', options.challenge, deviation);
      const attestation = deviation.attest?.(Buffer.concat([data, hash(client)]));
      const attestationObject = encodeCbor(
        new Map<string, unknown>([
          ['fmt', attestation?.format ?? 'none'],
          ['attStmt', attestation?.statement ?? new Map()],
          ['authData', data],
        ]),
      );
      return {
        id: base64url(id),
        rawId: base64url(id),
        type: 'public-key',
        clientExtensionResults: { credProps: { rk: true } },
        response: {
          clientDataJSON: base64url(client),
          attestationObject: base64url(attestationObject),
          transports: ['internal'],
        },
      };
    },
    /** `navigator.credentials.get()` */
    authenticate(options: { challenge: string }, deviation: Deviation = {}) {
      const data = authenticatorData(deviation);
      const client = clientData('webauthn.get', options.challenge, deviation);
      const signature = sign(deviation.key ?? keys.privateKey, Buffer.concat([data, hash(client)]));
      const handle = deviation.userHandle === undefined ? userHandle : deviation.userHandle;
      return {
        id: base64url(credentialId),
        rawId: base64url(credentialId),
        type: 'public-key',
        clientExtensionResults: {},
        response: {
          clientDataJSON: base64url(client),
          authenticatorData: base64url(data),
          signature: base64url(signature),
          ...(handle === null ? {} : { userHandle: handle }),
        },
      };
    },
  };
}

export type SoftwareAuthenticator = ReturnType<typeof createSoftwareAuthenticator>;

function createKeys(algorithm: Algorithm): { privateKey: KeyObject; cose: Map<number, unknown> } {
  if (algorithm === 'EdDSA') {
    const { privateKey, publicKey } = generateKeyPairSync('ed25519');
    const { x } = publicKey.export({ format: 'jwk' }) as JsonWebKey;
    // Key type OKP, algorithm EdDSA, curve Ed25519 (RFC 9053).
    return {
      privateKey,
      cose: new Map<number, unknown>([
        [1, 1],
        [3, -8],
        [-1, 6],
        [-2, decode(x)],
      ]),
    };
  }
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const { x, y } = publicKey.export({ format: 'jwk' }) as JsonWebKey;
  // Key type EC2, algorithm ES256, curve P-256.
  return {
    privateKey,
    cose: new Map<number, unknown>([
      [1, 2],
      [3, -7],
      [-1, 1],
      [-2, decode(x)],
      [-3, decode(y)],
    ]),
  };
}

const sign = (key: KeyObject, bytes: Buffer): Buffer =>
  signBytes(key.asymmetricKeyType === 'ed25519' ? null : 'sha256', bytes, key);
const hash = (value: string | Buffer): Buffer => createHash('sha256').update(value).digest();
const base64url = (bytes: Buffer): string => bytes.toString('base64url');
const decode = (value: string | undefined): Buffer => Buffer.from(value ?? '', 'base64url');

/** The part of CBOR (RFC 8949) that WebAuthn uses. */
export function encodeCbor(value: unknown): Buffer {
  if (typeof value === 'number') return value < 0 ? head(1, -1 - value) : head(0, value);
  if (typeof value === 'string')
    return Buffer.concat([head(3, Buffer.byteLength(value)), Buffer.from(value)]);
  if (Buffer.isBuffer(value)) return Buffer.concat([head(2, value.length), value]);
  if (Array.isArray(value)) return Buffer.concat([head(4, value.length), ...value.map(encodeCbor)]);
  if (value instanceof Map)
    return Buffer.concat([
      head(5, value.size),
      ...[...value].flatMap(([key, member]) => [encodeCbor(key), encodeCbor(member)]),
    ]);
  throw new Error(`There is no CBOR for ${String(value)}`);
}

function head(majorType: number, length: number): Buffer {
  const type = majorType << 5;
  if (length < 24) return Buffer.of(type | length);
  if (length < 256) return Buffer.of(type | 24, length);
  return Buffer.of(type | 25, length >> 8, length & 0xff);
}
