/** The package has no types. Only what this service and its tests use. */
declare module 'oidc-provider' {
  import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';

  /** What an {@link Adapter} stores. `jti` is the secret value. */
  export interface Payload {
    jti?: string;
    kind?: string;
    grantId?: string;
    [name: string]: unknown;
  }

  /** Storage of one kind of model. `find` returns undefined for what it does not have. */
  export interface Adapter {
    upsert(id: string, payload: Payload, expiresInSeconds: number): Promise<void>;
    find(id: string): Promise<Payload | undefined>;
    findByUid(uid: string): Promise<Payload | undefined>;
    findByUserCode(userCode: string): Promise<Payload | undefined>;
    consume(id: string): Promise<void>;
    destroy(id: string): Promise<void>;
    revokeByGrantId(grantId: string): Promise<void>;
  }

  /** A request for authorization that waits for the person. */
  export interface Interaction {
    readonly uid: string;
    readonly params: Record<string, unknown>;
  }

  export interface Client {
    readonly clientId: string;
    readonly clientName?: string;
    readonly clientUri?: string;
    readonly redirectUris: readonly string[];
    grantTypeAllowed(type: string): boolean;
  }

  export interface Context {
    readonly path: string;
    readonly method: string;
    readonly req: IncomingMessage;
    query: Record<string, string | string[] | undefined>;
    body: unknown;
    type: string;
    set(header: string, value: string): void;
    oidc: {
      client?: Client;
      route: string;
      result?: { consent?: { grantId?: string } };
      provider: Provider;
      entities: { Grant?: { exp?: number }; RotatedRefreshToken?: { jti: string } };
    };
  }

  interface Model {
    prototype: { generateTokenId(): string };
  }

  export class Provider {
    constructor(issuer: string, configuration: object);
    readonly issuer: string;
    proxy: boolean;
    readonly Client: { find(id: string): Promise<Client | undefined> };
    readonly Grant: { find(id: string): Promise<object | undefined> };
    readonly AccessToken: Model;
    readonly RefreshToken: Model;
    static readonly ctx: Context | undefined;
    callback(): (request: IncomingMessage, response: ServerResponse) => Promise<void> & RequestListener;
    on(event: string, listener: (context: Context, error: Error) => void): this;
    interactionDetails(request: IncomingMessage, response: ServerResponse): Promise<Interaction>;
    interactionResult(request: IncomingMessage, response: ServerResponse, result: object): Promise<string>;
  }
  export default Provider;

  class ProviderError extends Error {
    constructor(description?: string);
    error: string;
    error_description?: string;
    status: number;
    statusCode: number;
  }
  export const errors: {
    OIDCProviderError: new (status: number, code: string) => ProviderError;
    InvalidClientMetadata: new (description: string) => ProviderError;
    InvalidGrant: new (detail: string) => ProviderError;
    InvalidRequest: new (description: string, status?: number) => ProviderError;
    InvalidTarget: new (description?: string) => ProviderError;
    SessionNotFound: new (description: string) => ProviderError;
  };

  type Check = (context: Context) => boolean;
  export const interactionPolicy: {
    Prompt: new (options: { name: string; requestable: boolean }, ...checks: object[]) => object;
    Check: new (reason: string, description: string, error: string, check: Check) => object;
  };
}
