import type { Static, TObject } from 'typebox';
import type { OperationInput, OperationResult } from './operations.ts';

/** What the host tells a person before the model uses the tool. */
export interface ToolAnnotations {
  readOnlyHint: boolean;
  destructiveHint?: boolean;
  idempotentHint?: boolean;
  openWorldHint?: boolean;
}

export type JsonType = 'string' | 'boolean' | 'integer' | 'object' | 'array' | 'null';
/** What `outputSchema` says of each field. What is below is open: it would cost each model that reads the list. */
export type AnswerFields = Readonly<Record<string, { type: JsonType | readonly JsonType[] }>>;

/** The answer of a tool: a resource of the API, or what is left of it. */
export type Answer = Record<string, unknown>;

export interface ToolRun {
  /**
   * Calls one of the operations that the tool names.
   *
   * @throws OperationRefusal with the problem that the operation answers.
   */
  call(operationId: string, input: OperationInput): Promise<OperationResult>;
  /** As `call`, for an operation that waits: at most as long as hosts do, and with progress notifications. */
  wait(operationId: string, input: OperationInput, seconds?: number): Promise<OperationResult>;
}

export interface Tool {
  name: string;
  description: string;
  /** The operations that the tool calls. A credential sees the tool if it has their permissions. */
  operations: readonly [string, ...string[]];
  input: TObject;
  /** The first level of the answer. No field is required: each answer leaves out what is empty. */
  output: AnswerFields;
  annotations: ToolAnnotations;
  run(args: never, run: ToolRun): Promise<Answer>;
}

/** Types the arguments of a tool by its schema. */
export function defineTool<const Input extends TObject>(
  tool: Omit<Tool, 'input' | 'run'> & {
    input: Input;
    run(args: Static<Input>, run: ToolRun): Promise<Answer>;
  },
): Tool {
  return tool as unknown as Tool;
}

/** A read of the service's own data: repeating it changes nothing. */
export const READS = { readOnlyHint: true, openWorldHint: false } as const;

/** A message to people outside: it cannot be taken back. */
export const SENDS = { readOnlyHint: false, destructiveHint: false, openWorldHint: true } as const;

/** An operation answered with a problem. */
export class OperationRefusal extends Error {
  readonly result: OperationResult;
  constructor(result: OperationResult) {
    super('The operation was refused');
    this.result = result;
  }
}
