import { TypeID, typeid } from 'typeid-js';

/** Prefixes from the specification (section "Identifier prefixes"), and those of further resources. */
const ID_PREFIXES = {
  organization: 'org',
  environment: 'env',
  user: 'usr',
  apiKey: 'key',
  inbox: 'inb',
  draft: 'drf',
  thread: 'thr',
  message: 'msg',
  domain: 'dom',
  attachment: 'att',
  event: 'evt',
  webhookEndpoint: 'whe',
  webhookDelivery: 'whd',
  bulkJob: 'whj',
  receipt: 'rcp',
  suppression: 'sup',
  listEntry: 'lse',
  notification: 'ntf',
  usageEvent: 'uev',
  export: 'exp',
  request: 'req',
  session: 'ses',
  auditEntry: 'aud',
  invitation: 'inv',
  mfaEnrollment: 'mfa',
  ssoConfiguration: 'sso',
  ssoProvider: 'ssp',
  ssoAttempt: 'sat',
  ssoSetupLink: 'ssl',
  signUp: 'sgn',
  approvedRecipient: 'apr',
  deletion: 'del',
  staffAuditEntry: 'sau',
  staffJob: 'sjb',
  suspension: 'sus',
  upgradeRequest: 'upg',
  impersonation: 'imp',
  notice: 'ntc',
  refusal: 'ref',
  paymentGrace: 'grc',
  connection: 'con',
} as const;

export type IdKind = keyof typeof ID_PREFIXES;

/** A new TypeID: prefix and UUIDv7, so ids sort by creation time (under collation "C"). */
export function newId(kind: IdKind): string {
  return typeid(ID_PREFIXES[kind]).toString();
}

export function isId(kind: IdKind, value: string): boolean {
  try {
    TypeID.fromString(value, ID_PREFIXES[kind]);
    return true;
  } catch {
    return false;
  }
}

/** The lowest possible id created at `time`: no id created later is lower. */
export function lowestIdAt(kind: IdKind, time: Date): string {
  const bytes = Buffer.alloc(16);
  // UUIDv7 (RFC 9562 section 5.7) begins with 48 bits of Unix time in milliseconds.
  bytes.writeUIntBE(time.getTime(), 0, 6);
  return idFromBytes(kind, bytes);
}

/** When the id was created. */
export function timeOfId(id: string): Date {
  return new Date(idToBytes(id).readUIntBE(0, 6));
}

/** The 16 bytes of an id's UUID, for compact tokens in addresses. */
export function idToBytes(id: string): Buffer {
  return Buffer.from(TypeID.fromString(id).toUUIDBytes());
}

export function idFromBytes(kind: IdKind, bytes: Buffer): string {
  return TypeID.fromUUIDBytes(ID_PREFIXES[kind], bytes).toString();
}
