import type { Tool as ListedTool } from '@modelcontextprotocol/server';
import { Ajv, type ValidateFunction } from 'ajv';
import type { Permission } from '../../domain/identity/permissions.ts';
import { AppError } from '../../platform/errors.ts';
import { describeField } from '../plugins/client-path.ts';
import { describeErrors } from '../plugins/validation-errors.ts';
import type { Operations } from './operations.ts';
import type { Tool } from './tool.ts';
import { TOOLS } from './tools/index.ts';

export interface ToolList {
  /** What a credential with these permissions may call, always in the same order. */
  list(permissions: ReadonlySet<Permission>): ListedTool[];
  find(name: string): Tool | undefined;
  /** @throws AppError `validation_error` that lists what is wrong with the arguments. */
  check(tool: Tool, args: unknown): void;
}

export function createToolList(operations: Operations): ToolList {
  const ajv = new Ajv({ allErrors: true, verbose: true, strictRequired: false });
  const validators = new Map<string, ValidateFunction>();
  const byName = new Map(TOOLS.map((tool) => [tool.name, tool]));

  return {
    list: (permissions) =>
      TOOLS.filter((tool) => tool.operations.every((id) => operations.isPermitted(id, permissions))).map(
        describeTool,
      ),
    find: (name) => byName.get(name),
    check(tool, args) {
      const validate = validators.get(tool.name) ?? ajv.compile(tool.input);
      validators.set(tool.name, validate);
      if (validate(args)) return;
      const errors = describeErrors('body', validate.errors ?? [], () => undefined);
      const [first] = errors;
      throw new AppError('validation_error', {
        detail: first ? describeField(first) : 'The arguments do not match the schema of the tool.',
        fix: 'Correct what errors lists, as the inputSchema of the tool says.',
        errors,
      });
    },
  };
}

function describeTool({ name, description, input, output, annotations }: Tool): ListedTool {
  return {
    name,
    description,
    inputSchema: input as unknown as ListedTool['inputSchema'],
    outputSchema: { type: 'object', properties: output },
    annotations,
  };
}
