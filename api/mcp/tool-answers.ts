import type { CallToolResult } from '@modelcontextprotocol/server';
import type { AppError } from '../../platform/errors.ts';
import { toClientPath } from '../plugins/client-path.ts';
import { fenceAnswer } from './fences.ts';
import type { OperationResult } from './operations.ts';
import type { Answer } from './tool.ts';

/** Hosts show the model the structured answer or its text, so both say the same. */
export function presentAnswer(answer: Answer): CallToolResult {
  const structuredContent = fenceAnswer(answer);
  return { content: [{ type: 'text', text: JSON.stringify(structuredContent) }], structuredContent };
}

/** A failure that the model can act on: the members of a problem document that help it. */
export function presentRefusal({ body, retryAfterSeconds }: OperationResult): CallToolResult {
  const { type: _type, title: _title, status: _status, ...rest } = body;
  return {
    ...presentAnswer({
      object: 'error',
      ...rest,
      ...(retryAfterSeconds === undefined ? {} : { retry_after_seconds: retryAfterSeconds }),
    }),
    isError: true,
  };
}

/** A refusal before any operation was called. */
export function presentError({ code, detail, fix, errors }: AppError, requestId: string): CallToolResult {
  return {
    ...presentAnswer({
      object: 'error',
      code,
      detail,
      fix,
      ...(errors
        ? { errors: errors.map(({ path, message }) => ({ path: toClientPath(path), message })) }
        : {}),
      request_id: requestId,
    }),
    isError: true,
  };
}
