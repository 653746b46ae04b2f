import { randomBase62, sha256 } from '../../platform/crypto.ts';

/** The prefixes let scanners find leaked tokens, and tell connections from keys and sessions. */
const ACCESS_PREFIX = 'cat_';
const REFRESH_PREFIX = 'crt_';
/** 256 bits. */
const SECRET_LENGTH = 43;
const ACCESS_TOKEN = /^cat_[0-9A-Za-z]{43}$/;

export const createAccessToken = (): string => `${ACCESS_PREFIX}${randomBase62(SECRET_LENGTH)}`;

export const createRefreshToken = (): string => `${REFRESH_PREFIX}${randomBase62(SECRET_LENGTH)}`;

export const isConnectionToken = (token: string): boolean => ACCESS_TOKEN.test(token);

/** @param bytes 32, derived from the token before. */
export const refreshTokenOf = (bytes: Buffer): string => `${REFRESH_PREFIX}${bytes.toString('base64url')}`;

/** The hash under which a value is stored. A fast one suffices, because the values cannot be guessed. */
export const hashConnectionToken = (value: string): Buffer => sha256(value);
