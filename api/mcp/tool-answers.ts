import type { CallToolResult } from '@modelcontextprotocol/server';
import type { AppError } from '../../platform/errors.ts';
import { toClientPath } from '../plugins/client-path.ts';
import { fenceAnswer } from './fences.ts';
import type { OperationResult } from './operations.ts';
import type { Answer } from './tool.ts';
import type { NameTools } from './tool-names.ts';

/** Hosts show the model the structured answer or its text, so both say the same. */
export function presentAnswer(answer: Answer): CallToolResult {
  const structuredContent = fenceAnswer(answer);
  return { content: [{ type: 'text', text: JSON.stringify(structuredContent) }], structuredContent };
}

const STOPPING: OperationResult['body'] = {
  code: 'unavailable',
  detail: 'The service is restarting.',
  fix: 'Call the tool again in a moment.',
};

/** A failure that the model can act on: the members of a problem document that help it. */
export function presentRefusal(
  { body, retryAfterSeconds }: OperationResult,
  nameTools: NameTools,
): CallToolResult {
  // A process that stops refuses without a problem document.
  const {
    type: _type,
    title: _title,
    status: _status,
    detail,
    fix,
    ...rest
  } = 'fix' in body ? body : STOPPING;
  return presentFailure({
    ...rest,
    detail: nameTools(String(detail)),
    fix: nameTools(String(fix)),
    ...(retryAfterSeconds === undefined ? {} : { retry_after_seconds: retryAfterSeconds }),
  });
}

/** A refusal before any operation was called. */
export function presentError(
  { code, detail, fix, errors }: AppError,
  requestId: string,
  nameTools: NameTools,
): CallToolResult {
  const named = errors?.map(({ path, message }) => ({ path: toClientPath(path), message }));
  return presentFailure({
    code,
    detail,
    fix: nameTools(fix),
    ...(named ? { errors: named } : {}),
    request_id: requestId,
  });
}

const presentFailure = (failure: Answer): CallToolResult => ({
  ...presentAnswer({ object: 'error', ...failure }),
  isError: true,
});
