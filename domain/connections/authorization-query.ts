import { invalid } from '../../platform/errors.ts';
import { CONNECTION_PERMISSIONS } from '../identity/permissions.ts';

/** A request needs no credential and is stored until the person decides. */
const MAX_CHARACTERS = 4_096;

/** Parameters that mean something here. Those of OpenID Connect are ignored, as RFC 6749 section 3.1 asks for. */
const PARAMETERS = [
  'client_id',
  'code_challenge',
  'code_challenge_method',
  'redirect_uri',
  'request',
  'request_uri',
  'resource',
  'response_type',
  'state',
];

/**
 * The parameters of a request for authorization, as the authorization server reads them. A request without a known scope
 * asks for every permission that a connection may have. Each request asks for consent, so that of `prompt` only `none`
 * matters, which then fails.
 *
 * @throws AppError `validation_error` for a request that is too long or has characters that cannot be stored, and for an answer
 * that is not in the query.
 */
export function readAuthorizationQuery(query: URLSearchParams): URLSearchParams {
  // A parameter that occurs twice is left to the authorization server, which refuses it.
  const known = [...query].filter(([name]) => PARAMETERS.includes(name));
  if (known.reduce((sum, [, value]) => sum + value.length, 0) > MAX_CHARACTERS)
    throw invalid('/query', `must not have more than ${MAX_CHARACTERS} characters`, 'Use a shorter state.');
  if (known.some(([, value]) => value.includes('\0')))
    throw invalid('/query', 'must not contain NUL', 'Leave the character out.');
  if ((query.get('response_mode') ?? 'query') !== 'query')
    throw invalid('/query/response_mode', 'must be query', 'Leave it out.');
  const asked = query.getAll('scope').flatMap((scope) => scope.split(' '));
  const permissions = CONNECTION_PERMISSIONS.filter((name) => asked.includes(name));
  const prompt = query.get('prompt') === 'none' ? [['prompt', 'none']] : [];
  const scope = (permissions.length > 0 ? permissions : CONNECTION_PERMISSIONS).join(' ');
  return new URLSearchParams([...known, ...prompt, ['scope', scope]]);
}
