import { TypeID, typeid } from 'typeid-js';

/** Prefixes of the specification ("Identifier prefixes") and of the design's further resources. */
export const ID_PREFIXES = {
  organization: 'org',
  environment: 'env',
  user: 'usr',
  apiKey: 'key',
  inbox: 'inb',
  draft: 'drf',
  thread: 'thr',
  message: 'msg',
  attachment: 'att',
  event: 'evt',
  webhookEndpoint: 'whe',
  webhookDelivery: 'whd',
  receipt: 'rcp',
  request: 'req',
} as const;

export type IdKind = keyof typeof ID_PREFIXES;

/** A new TypeID: prefix and UUIDv7, so ids sort by the time they were made (under collation "C"). */
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

/** The 16 bytes of an id's UUID, for tokens where an address leaves no room for text. */
export function idToBytes(id: string): Buffer {
  return Buffer.from(TypeID.fromString(id).toUUIDBytes());
}

export function idFromBytes(kind: IdKind, bytes: Buffer): string {
  return TypeID.fromUUIDBytes(ID_PREFIXES[kind], bytes).toString();
}
