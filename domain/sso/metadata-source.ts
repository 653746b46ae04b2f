import { LRUCache } from 'lru-cache';
import type { GuardedFetch } from '../../platform/egress/guarded-fetch.ts';

/** Reads the metadata of identity providers from their URLs. */
export interface MetadataSource {
  /** Remembers the result for a minute, so that a request can read it before its transaction. @throws Error */
  read(url: string): Promise<string>;
  /** Reads the metadata even if it is remembered, and remembers the result. @throws Error */
  readNow(url: string): Promise<string>;
}

const LIFETIME_MS = 60_000;
const MAX_REMEMBERED = 20;
const MAX_METADATA_CHARACTERS = 256 * 1024;

type Remembered = { text: string } | { error: unknown };

export function createMetadataSource(fetch: GuardedFetch): MetadataSource {
  const remembered = new LRUCache<string, Remembered>({ max: MAX_REMEMBERED, ttl: LIFETIME_MS });

  async function download(url: string): Promise<string> {
    const response = await fetch(url, {
      headers: { accept: 'application/samlmetadata+xml, application/xml' },
    });
    if (response.status !== 200) throw new Error(`the URL answers with HTTP ${response.status}`);
    const text = await response.text();
    if (text.length > MAX_METADATA_CHARACTERS) throw new Error('the metadata is too large');
    return text;
  }

  async function readNow(url: string): Promise<string> {
    const result: Remembered = await download(url).then(
      (text) => ({ text }),
      (error: unknown) => ({ error }),
    );
    remembered.set(url, result);
    return textOf(result);
  }

  return {
    readNow,
    async read(url) {
      const result = remembered.get(url);
      return result ? textOf(result) : readNow(url);
    },
  };
}

function textOf(result: Remembered): string {
  if ('error' in result) throw result.error;
  return result.text;
}
