import { createSigner } from './crypto.ts';
import { idFromBytes, idToBytes } from './ids.ts';

/** The recipient of a message that a return path identifies. */
export interface ReturnPathTarget {
  messageId: string;
  /** Position of the recipient in the message's envelope, 0 to 65,535. */
  position: number;
}

/** Signed envelope senders (VERP). Only servers that received the message know them, so reports to them are trusted. */
export interface ReturnPaths {
  /** `bounces+<token>@<domain>`, at most 64 octets before the `@` (RFC 5321 section 4.5.3.1.1). */
  create(messageId: string, position: number): string;
  /** Returns the target of an address; null if it is not a return path or its signature is invalid. Ignores case. */
  parse(address: string): ReturnPathTarget | null;
  /** Returns the target of the first valid return path within a text; null if there is none. */
  findIn(text: string): ReturnPathTarget | null;
}

const LOCAL_PART_PREFIX = 'bounces+';
const ID_BYTES = 16;
const POSITION_BYTES = 2;
/** 80 bits suffice, because each guess needs a request to the listener. A token of 28 bytes has 45 characters. */
const SIGNATURE_BYTES = 10;
const TOKEN_BYTES = ID_BYTES + POSITION_BYTES + SIGNATURE_BYTES;
const MAX_SEARCHED_CHARACTERS = 10_000;
const RETURN_PATH_PATTERN = /bounces\+[a-z2-7]{45}@[a-z0-9.-]{1,253}/gi;

/**
 * @param signingKey 32 bytes in base64; may list several, separated by commas (`SIGNING_KEY`).
 * @param domain the domain of return paths, whose MX is this service's listener.
 */
export function createReturnPaths({
  signingKey,
  domain,
}: {
  signingKey: string;
  domain: string;
}): ReturnPaths {
  const signer = createSigner(signingKey, 'return-path', SIGNATURE_BYTES);
  const suffix = `@${domain.toLowerCase()}`;

  function parse(address: string): ReturnPathTarget | null {
    const lower = address.toLowerCase();
    if (!lower.startsWith(LOCAL_PART_PREFIX) || !lower.endsWith(suffix)) return null;
    const bytes = decodeBase32(lower.slice(LOCAL_PART_PREFIX.length, -suffix.length));
    if (bytes?.length !== TOKEN_BYTES) return null;
    const target = bytes.subarray(0, ID_BYTES + POSITION_BYTES);
    if (!signer.verify(target, bytes.subarray(ID_BYTES + POSITION_BYTES))) return null;
    return {
      messageId: idFromBytes('message', target.subarray(0, ID_BYTES)),
      position: target.readUInt16BE(ID_BYTES),
    };
  }

  return {
    create(messageId, position) {
      const target = Buffer.alloc(ID_BYTES + POSITION_BYTES);
      idToBytes(messageId).copy(target);
      target.writeUInt16BE(position, ID_BYTES);
      const token = encodeBase32(Buffer.concat([target, signer.sign(target)]));
      return `${LOCAL_PART_PREFIX}${token}${suffix}`;
    },

    parse,

    findIn(text) {
      for (const [address] of text.slice(0, MAX_SEARCHED_CHARACTERS).matchAll(RETURN_PATH_PATTERN)) {
        const target = parse(address);
        if (target) return target;
      }
      return null;
    },
  };
}

/** RFC 4648 section 6, lower case, without padding: this alphabet survives systems that change case. */
const BASE32_ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567';

function encodeBase32(bytes: Uint8Array): string {
  let text = '';
  let pending = 0;
  let bits = 0;
  for (const byte of bytes) {
    pending = (pending << 8) | byte;
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      text += BASE32_ALPHABET[(pending >>> bits) & 31];
    }
    pending &= (1 << bits) - 1;
  }
  return bits > 0 ? text + BASE32_ALPHABET[(pending << (5 - bits)) & 31] : text;
}

/** Returns null for any text that `encodeBase32` would not produce, so each token has exactly one spelling. */
function decodeBase32(text: string): Buffer | null {
  const bytes: number[] = [];
  let pending = 0;
  let bits = 0;
  for (const character of text) {
    const value = BASE32_ALPHABET.indexOf(character);
    if (value === -1) return null;
    pending = (pending << 5) | value;
    bits += 5;
    if (bits >= 8) {
      bits -= 8;
      bytes.push((pending >>> bits) & 255);
    }
    pending &= (1 << bits) - 1;
  }
  return bits < 5 && pending === 0 ? Buffer.from(bytes) : null;
}
