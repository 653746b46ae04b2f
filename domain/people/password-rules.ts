import { invalid } from '../../platform/errors.ts';

const MIN_CHARACTERS = 12;
/** Bounds the work of hashing, and exceeds every passphrase. */
export const MAX_PASSWORD_CHARACTERS = 256;

/**
 * Words that are common in leaked passwords. Attackers first try passwords that consist only of such words, digits,
 * repetitions and keyboard walks.
 */
const COMMON_WORDS = [
  ...[
    'password',
    'passwort',
    'passw0rd',
    'p@ssword',
    'p@ssw0rd',
    'contrasena',
    'motdepasse',
    'letmein',
    'welcome',
  ],
  ...[
    'admin',
    'administrator',
    'root',
    'user',
    'guest',
    'login',
    'master',
    'secret',
    'changeme',
    'default',
    'test',
  ],
  ...[
    'iloveyou',
    'iloveu',
    'princess',
    'sunshine',
    'superman',
    'batman',
    'dragon',
    'monkey',
    'football',
    'baseball',
  ],
  ...[
    'starwars',
    'pokemon',
    'shadow',
    'michael',
    'jennifer',
    'jordan',
    'charlie',
    'summer',
    'winter',
    'spring',
  ],
  ...[
    'autumn',
    'january',
    'february',
    'monday',
    'friday',
    'company',
    'google',
    'facebook',
    'whatever',
    'trustno',
  ],
  ...[
    'hello',
    'freedom',
    'computer',
    'internet',
    'samsung',
    'liverpool',
    'chelsea',
    'arsenal',
    'abc',
    'xyz',
    'the',
  ],
  ...[
    'my',
    'is',
    'and',
    'you',
    'love',
    'god',
    'jesus',
    'correct',
    'horse',
    'battery',
    'staple',
    'agent',
    'email',
  ],
];
const KEYBOARD_ROWS = [
  'abcdefghijklmnopqrstuvwxyz',
  '01234567890123456789',
  'qwertyuiop',
  'qwertzuiop',
  'azertyuiop',
  'asdfghjkl',
  'zxcvbnm',
  'yxcvbnm',
  '1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik9ol0p',
  'qazwsxedcrfvtgbyhnujmikolp',
  '!@#$%^&*()',
];
/** Characters that must remain when everything predictable is removed. */
const MIN_UNPREDICTABLE_CHARACTERS = 6;

/**
 * Rejects short passwords and those that attackers try first.
 *
 * @param path of the field in the request, for example `/body/password`.
 * @param personal the person's address and names, which a password must not consist of.
 * @throws AppError `validation_error`.
 */
export function requireStrongPassword(
  password: string,
  path: string,
  personal: readonly string[] = [],
): void {
  const length = [...password].length;
  if (length < MIN_CHARACTERS)
    throw invalid(
      path,
      `must have at least ${MIN_CHARACTERS} characters`,
      'Use a longer password or a passphrase.',
    );
  if (isPredictable(password, personal))
    throw invalid(
      path,
      'is among the passwords that attackers try first',
      'Use several unrelated words, or a password manager.',
    );
}

function isPredictable(password: string, personal: readonly string[]): boolean {
  const names = personal
    .flatMap((text) => text.toLowerCase().split(/[^\p{L}\p{N}]+/u))
    .filter((part) => part.length > 2);
  let rest = password.toLowerCase();
  for (const word of [...COMMON_WORDS, ...names].sort((a, b) => b.length - a.length))
    rest = rest.replaceAll(word, ' ');
  rest = removeWalks(rest)
    .replace(/(.+?)\1+/gu, '$1')
    .replace(/[\d\s\p{P}\p{S}]+/gu, ' ');
  return (
    new Set(rest.replaceAll(' ', '')).size < MIN_UNPREDICTABLE_CHARACTERS &&
    rest.replaceAll(' ', '').length < MIN_CHARACTERS
  );
}

/** Removes runs of at least three neighboring keys, in both directions. */
function removeWalks(text: string): string {
  const rows = KEYBOARD_ROWS.flatMap((row) => [row, [...row].reverse().join('')]);
  let left = '';
  for (let index = 0; index < text.length; ) {
    let run = 1;
    while (rows.some((row) => row.includes(text.slice(index, index + run + 1))) && index + run < text.length)
      run += 1;
    if (run < 3) left += text.slice(index, index + run);
    index += run;
  }
  return left;
}
