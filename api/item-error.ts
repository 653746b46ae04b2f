import { type Static, Type } from 'typebox';
import { type AppError, ERROR_CODES, type ErrorCode } from '../platform/errors.ts';
import { toClientPath } from './plugins/client-path.ts';
import { enumOf, ref, strictObject, text } from './schemas.ts';

export const ItemProblem = Type.Object(
  {
    status: Type.Integer({
      minimum: 400,
      maximum: 599,
      description: 'The status that a single call would have.',
    }),
    code: enumOf(Object.keys(ERROR_CODES) as ErrorCode[], {
      description: 'Stable; use it in code. More codes may be added.',
    }),
    detail: text(4096, { description: 'What happened.' }),
    fix: text(1024, { description: 'What the caller can do next.' }),
    errors: Type.Optional(
      Type.Array(strictObject({ path: text(1024), message: text(1024) }), {
        maxItems: 100,
        description: 'Where in the item.',
      }),
    ),
  },
  {
    $id: 'ItemProblem',
    title: 'ItemProblem',
    additionalProperties: true,
    description:
      'Why the item was refused; has the further members of the problem, such as rejection_reason.',
  },
);

/** Of one item in a call about many; null if it was accepted. */
export const ItemError = Type.Unsafe<Static<typeof ItemProblem> | null>({
  anyOf: [ref(ItemProblem), { type: 'null' }],
  description: 'Null if the item was accepted.',
});

export function presentItemError(error: AppError | undefined): Static<typeof ItemProblem> | null {
  if (!error) return null;
  const { status, code, detail, fix, errors, extensions } = error;
  return {
    ...extensions,
    status,
    code,
    detail,
    fix,
    ...(errors ? { errors: errors.map(({ path, message }) => ({ path: toClientPath(path), message })) } : {}),
  };
}
