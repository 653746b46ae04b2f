import type { SanitizeOptions } from '../sanitize-html.ts';

/** A conversion: the format of the result and its options. */
export type Conversion = ({ to: 'html' } & SanitizeOptions) | { to: 'text' };

/**
 * Protocol between the converter pool and its child processes (`platform/frames.ts`). The pool sends `conversion` as JSON,
 * then the HTML as `source`. The child sends `result`.
 */
export const FRAME = { conversion: 'c', source: 's', result: 'r' } as const;
