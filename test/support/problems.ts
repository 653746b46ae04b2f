import { expect } from '@jest/globals';
import type { LightMyRequestResponse } from 'fastify';
import { ERROR_CODES, type ErrorCode } from '../../platform/errors.ts';

/** Asserts the whole problem response: status, media type and every member. Returns the problem document. */
export function expectProblem(response: LightMyRequestResponse, code: ErrorCode): Record<string, unknown> {
  const problem = response.json<Record<string, unknown>>();
  expect(problem).toMatchObject({
    code,
    status: ERROR_CODES[code].status,
    title: ERROR_CODES[code].title,
    type: expect.stringMatching(new RegExp(`/docs/errors#${code}$`)),
    detail: expect.stringMatching(/./),
    fix: expect.stringMatching(/./),
    request_id: response.headers['x-request-id'],
  });
  expect(response.statusCode).toBe(ERROR_CODES[code].status);
  expect(response.headers['content-type']).toContain('application/problem+json');
  return problem;
}
