export { Answer, type Received } from './answer.ts';
export {
  AgentEmail,
  AgentEmail as default,
  type ClientOptions,
  type FoundCode,
  type MessageWait,
} from './client.ts';
export {
  AgentEmailError,
  APIError,
  ConnectionError,
  TimeoutError,
  WebhookVerificationError,
} from './errors.ts';
export { EventStream, type EventStreamParams } from './event-stream.ts';
export type { FileInput } from './files.ts';
export * from './generated/errors.ts';
export type * from './generated/resources.ts';
export type * from './generated/types.ts';
export { Page, PageAnswer } from './pages.ts';
export type { RequestOptions } from './requests.ts';
export type { AgentTool, ToolOptions, ToolSchema } from './tools.ts';
export { VERSION } from './version.ts';
export type { WaitOptions } from './waits.ts';
export { type UnwrapOptions, type WebhookHeaders, webhooks } from './webhooks.ts';
