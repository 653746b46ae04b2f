import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify';
import { classifyOperation } from '../../domain/impersonation/impersonation-access.ts';
import { AppError } from '../../platform/errors.ts';
import type { Caller } from './caller.ts';
import { ALIAS } from './openapi-document.ts';
import {
  createWordComparison,
  measureOperation,
  readVerb,
  type WantedOperation,
} from './operation-distance.ts';
import { type Guess, WRONG_GUESSES } from './wrong-guesses.ts';

/** An operation of the OpenAPI document. */
export interface KnownOperation {
  /** `POST`. */
  method: string;
  /** `/api/v1/drafts/{id}/send`. */
  path: string;
  /** Without `/api/v1`. */
  segments: readonly string[];
  config: NonNullable<RouteOptions['config']>;
}

export interface NearestOperation {
  /** `PATCH /api/v1/drafts/{id}`. */
  operation: string;
  /** `PATCH /api/v1/drafts/{id} with send_at`. */
  call: string;
}

export type OperationFinder = ReturnType<typeof installNearestOperation>;

const BASE = ['api', 'v1'];
/** A path with more segments is no misspelled operation, and comparing it would take time. */
const MAX_SEGMENTS = 10;
const MAX_SEGMENT_LENGTH = 64;
/** Beyond this distance, a suggestion is as likely to mislead. */
const MAX_DISTANCE = 1.4;

/** Collects the operations of the OpenAPI document. Install before the routes. */
export function installNearestOperation(app: FastifyInstance) {
  const operations: KnownOperation[] = [];
  app.addHook('onRoute', (route) => {
    if (isSuggested(route)) operations.push(describe(route));
  });
  return {
    /** Finds what the caller most likely meant among the operations that the caller may use. */
    async find(request: FastifyRequest): Promise<NearestOperation | undefined> {
      const wanted = readWanted(request);
      if (!wanted) return undefined;
      try {
        const caller = await request.findCaller();
        return findNearest(
          wanted,
          operations.filter(({ method, config }) => mayCall(caller, method, config)),
        );
      } catch (error) {
        request.log.warn({ err: error }, 'could not find the nearest operation');
        return undefined;
      }
    },
  };
}

/** Operations of staff and of mail servers, other paths of an operation, and pages are no help. */
function isSuggested({ url, method, schema, config }: RouteOptions): boolean {
  const { operationId, hide } = (schema ?? {}) as { operationId?: string; hide?: boolean };
  if (operationId === undefined || hide || ALIAS.test(operationId) || method === 'HEAD') return false;
  return url.startsWith('/api/v1/') && !config?.staff && !config?.page && config?.public !== 'signed';
}

function describe({ url, method, config = {} }: RouteOptions): KnownOperation {
  const path = url.replace(/:(\w+)/g, '{$1}');
  return { method: String(method), path, segments: split(path), config };
}

const split = (path: string) => path.split('/').slice(1 + BASE.length);

/** Undefined for a path that resembles no operation. */
function readWanted({ method, url }: Pick<FastifyRequest, 'method' | 'url'>): WantedOperation | undefined {
  const [path = ''] = url.split(/[?#]/, 1);
  const all = path.split('/').filter((segment) => segment !== '');
  if (all.length > MAX_SEGMENTS || all.some(({ length }) => length > MAX_SEGMENT_LENGTH)) return undefined;
  const segments = all.map((segment) => segment.toLowerCase());
  while (segments[0] === 'api' || segments[0] === 'rest' || /^v\d$/.test(segments[0] ?? '')) segments.shift();
  return segments.length === 0 ? undefined : { method, segments };
}

/** An anonymous caller sees what the public document says. */
function mayCall(caller: Caller | undefined, method: string, config: KnownOperation['config']): boolean {
  if (!caller || config.public || config.credential) return isOffered(config);
  const { permission, impersonation, person } = config;
  const { scope } = caller;
  if (person) return caller.isPerson && (person === 'any' || !caller.mayOnlyEnroll);
  if (!scope || !permission || !scope.permissions.has(permission) || !isOffered(config)) return false;
  const isRead = method === 'GET' && !config.heldOpen;
  if (caller.isSuspended && !isRead && !config.allowedWhileSuspended) return false;
  if (!scope.impersonation) return true;
  const access = classifyOperation({ permission, method, isForbidden: impersonation === 'never' });
  return access === 'read' || (access === 'write' && scope.impersonation.allowsWrite);
}

/** Whether this service has the feature, for example billing. */
function isOffered({ requireFeature }: KnownOperation['config']): boolean {
  try {
    requireFeature?.();
    return true;
  } catch (error) {
    if (error instanceof AppError) return false;
    throw error;
  }
}

/** Finds the nearest operation, or none. */
export function findNearest(
  wanted: WantedOperation,
  operations: readonly KnownOperation[],
): NearestOperation | undefined {
  const words = new Set(operations.flatMap(({ segments }) => segments));
  const guess = WRONG_GUESSES.find((each) => matchesGuess(each, wanted, words));
  const guessed = guess && operations.find((each) => nameOf(each) === guess.operation);
  if (guess && guessed) return present(guessed, guess.how);
  const byVerb = readVerb(wanted);
  const compare = createWordComparison();
  const ranked = operations
    .map((operation) => ({
      operation,
      distance: Math.min(
        measureOperation(wanted, operation, compare),
        measureOperation(byVerb, operation, compare),
      ),
    }))
    .filter(({ distance }) => distance <= MAX_DISTANCE)
    .sort((a, b) => a.distance - b.distance || a.operation.segments.length - b.operation.segments.length);
  return ranked[0] && present(ranked[0].operation);
}

/** `*` stands for what is no word of an operation: `webhooks/endpoints` is no guess of `webhooks/{id}`. */
function matchesGuess(
  { methods, paths }: Guess,
  { method, segments }: WantedOperation,
  words: ReadonlySet<string>,
): boolean {
  if (methods && !methods.includes(method)) return false;
  const matches = (part: string | undefined, segment: string) =>
    part === '*' ? !words.has(segment) : part === segment;
  return paths.some(
    (parts) =>
      parts.length === segments.length && segments.every((each, index) => matches(parts[index], each)),
  );
}

/** Without `/api/v1`, as in the table of guesses. */
const nameOf = ({ method, segments }: KnownOperation) => `${method} /${segments.join('/')}`;

function present({ method, path }: KnownOperation, how?: string): NearestOperation {
  const operation = `${method} ${path}`;
  return { operation, call: how === undefined ? operation : `${operation} ${how}` };
}
