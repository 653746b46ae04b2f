import type { Answer, Group, Method, Model, Parameter } from '../model.ts';
import type { Field, Type } from '../schema-types.ts';
import { attribute, call, docstring, header, quote, snake } from './text.ts';
import type { TypeNames } from './types.ts';

export interface Flavour {
  isAsync: boolean;
}

const pascal = (name: string): string => (name[0] ?? '').toUpperCase() + name.slice(1);

/** The groups of methods: one class each, and one that has them all. */
export function printResources(model: Model, names: TypeNames, flavour: Flavour): string {
  const { isAsync } = flavour;
  const prefix = isAsync ? 'Async' : '';
  const groups = model.groups.map((group) => new GroupPrinter(names, flavour).print(group));
  const attributes = model.groups.map(
    ({ name }) =>
      `        self.${snake(name)}: ${prefix}${pascal(name)}[R] = ${prefix}${pascal(name)}(client)\n`,
  );
  return `${header(`The methods of the ${isAsync ? 'asynchronous ' : ''}client: the operations of the API.`)}
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, Literal, Mapping, Optional, Sequence, Union, overload

from . import params, types
from ._core import NOT_GIVEN, Call, NotGiven, RequestOptions, listed, quoted
from ._files import UploadInput, read_file
from ._model import R
from ._pages import ${prefix}Pages
from ._streams import ${prefix}EventStream

if TYPE_CHECKING:
    from ._client import ${prefix}AgentEmail


class ${prefix}Group(Generic[R]):
    def __init__(self, client: ${prefix}AgentEmail[R]) -> None:
        self._client = client

${groups.join('\n')}

class ${prefix}Resources(Generic[R]):
    """Every group of methods."""

    def __init__(self, client: ${prefix}AgentEmail[R]) -> None:
${attributes.join('')}`;
}

/** The API takes several types in one string. A position that is not known yet is None. */
const STREAM_ARGUMENTS: Record<string, Pick<Argument, 'type' | 'description'>> = {
  types: { type: 'Sequence[params.EventType]', description: 'Only these types. Default: all.' },
  after: {
    type: 'Optional[str]',
    description:
      'A position that you stored (`last_event_id` of a stream), or the id of an event (evt_…). The stream goes on behind it. None: it begins with the next event.',
  },
};

interface Argument {
  /** In Python. */
  name: string;
  wireName: string;
  type: string;
  required: boolean;
  description: string | null;
}

class GroupPrinter {
  readonly #names: TypeNames;
  readonly #isAsync: boolean;

  constructor(names: TypeNames, { isAsync }: Flavour) {
    this.#names = names;
    this.#isAsync = isAsync;
  }

  print({ name, description, methods }: Group): string {
    const about = docstring([description || `The operations \`${name}\`.`], '    ');
    const printed = methods.map((method) => this.#method(method));
    return `\nclass ${this.#prefix}${pascal(name)}(${this.#prefix}Group[R]):\n${about}\n\n${printed.join('\n')}`;
  }

  get #prefix(): string {
    return this.#isAsync ? 'Async' : '';
  }

  #method(method: Method): string {
    const args = this.#arguments(method);
    const { answer } = method;
    const agent = answer.kind === 'page' ? answer.agentItem : answer.kind === 'json' ? answer.agent : null;
    const view = args.find((argument) => argument.name === 'view');
    const definition = (own: Argument[], returns: string, end: string) =>
      call(this.#start(method), this.#signature(method, own), ` -> ${returns}:${end}`, '    ');
    const body = `${this.#documentation(method, args)}\n${this.#body(method, args)}\n`;
    if (agent === null) return `${definition(args, this.#returns(answer, null), '')}\n${body}`;
    if (!view) throw new Error(`${method.operationId} has a short answer, and no view`);
    const withView = (type: string, required: boolean) =>
      args
        .map((argument) => (argument === view ? { ...view, type, required } : argument))
        .sort((a, b) => Number(b.required) - Number(a.required));
    const others = view.type
      .replace('Literal["agent"], ', '')
      .replace('params.MessageView', 'Literal["full"]');
    const remaining = others.replace(', "agent"', '').replace('"agent", ', '');
    return [
      `    @overload\n${definition(withView('Literal["agent"]', true), this.#returns(answer, agent), ' ...')}\n`,
      `    @overload\n${definition(withView(remaining, false), this.#returns(answer, null), ' ...')}\n`,
      `${definition(args, this.#returns(answer, agent, true), '')}\n${body}`,
    ].join('\n');
  }

  #start({ name, answer }: Method): string {
    const isAwaited = this.#isAsync && answer.kind !== 'page' && answer.kind !== 'events';
    return `${isAwaited ? 'async ' : ''}def ${attribute(snake(name))}`;
  }

  #arguments(method: Method): Argument[] {
    const { queryParameters, headerParameters, pathParameters, body } = method;
    const isStream = method.answer.kind === 'events';
    const fields =
      body.kind === 'json' ? body.fields.map((field) => ({ ...field, wireName: field.name })) : [];
    const given = [...pathParameters, ...fields, ...queryParameters, ...headerParameters]
      // A stream sends its position itself, and `after` is the first one.
      .filter(({ wireName }) => !(isStream && wireName === 'last-event-id'))
      .map((field) => this.#argument(field))
      .map((argument) => (isStream ? { ...argument, ...STREAM_ARGUMENTS[argument.name] } : argument));
    const reserved = given.find(({ name }) => ['self', 'options', 'idempotency_key', 'file'].includes(name));
    if (reserved) throw new Error(`${method.operationId} has the parameter ${reserved.name}`);
    return given.sort((a, b) => Number(b.required) - Number(a.required));
  }

  #argument(field: Field & Pick<Parameter, 'wireName'>): Argument {
    const { name, wireName, required, type, description, limits } = field;
    const about = [description, limits && `(${limits})`].filter(Boolean).join(' ') || null;
    return {
      name: attribute(name),
      wireName,
      required,
      type: this.#names.write(type, 'request', 'params.'),
      description: about,
    };
  }

  #signature({ pathParameters, body, idempotent, answer }: Method, args: Argument[]): string[] {
    const inPath = pathParameters.map(({ name }) => `${attribute(name)}: str`);
    const named = args
      .filter(({ name }) => !pathParameters.some((parameter) => attribute(parameter.name) === name))
      .map(({ name, type, required }) => {
        if (required) return `${name}: ${type}`;
        if (answer.kind === 'events' && name === 'after') return `${name}: ${type} = None`;
        return `${name}: ${orNotGiven(type)} = NOT_GIVEN`;
      });
    const file = body.kind === 'file' ? ['file: UploadInput'] : [];
    const rest =
      answer.kind === 'events'
        ? []
        : [
            ...(idempotent ? ['idempotency_key: Optional[str] = None'] : []),
            'options: Optional[RequestOptions] = None',
          ];
    const keywords = [...named, ...rest];
    return ['self', ...inPath, ...file, ...(keywords.length > 0 ? ['*', ...keywords] : [])];
  }

  #documentation({ summary, description, permission, idempotent, answer }: Method, args: Argument[]): string {
    const lines = args.flatMap((argument) =>
      argument.description === null ? [] : [`${argument.name}: ${argument.description}`],
    );
    if (idempotent)
      lines.push(
        'idempotency_key: Makes repeats of this call act once. Default: a new one, also for the retries.',
      );
    const list = answer.kind === 'page' ? 'Iterates over all of them; `page()` gets one page.' : null;
    const paragraphs = [
      `${summary}.`,
      description,
      list,
      permission && `Needs the permission \`${permission}\`.`,
    ];
    return docstring(paragraphs, '        ', lines);
  }

  #body(method: Method, args: Argument[]): string {
    const { answer } = method;
    if (answer.kind === 'events') return this.#stream(method, args);
    const wait = this.#isAsync ? 'await ' : '';
    const request = this.#request(method, args);
    if (answer.kind === 'page') {
      const item = this.#runtime([answer.item, ...(answer.agentItem ? [answer.agentItem] : [])], false);
      return `${call(`return ${this.#prefix}Pages`, ['self._client', request, item], '', '        ')}`;
    }
    if (answer.kind === 'none') return `        ${wait}self._client.call(${request})`;
    const agent = answer.kind === 'json' ? answer.agent : null;
    return `        result: ${this.#returns(answer, agent, true)} = ${wait}self._client.call(${request})\n        return result`;
  }

  #stream({ path, queryParameters }: Method, args: Argument[]): string {
    const entries = queryParameters
      .filter(({ wireName }) => wireName !== 'after')
      .map((field) => entry(field, args));
    if (!args.some(({ name }) => name === 'after')) throw new Error(`${path} has no after`);
    const items = ['self._client', quote(path), `{${entries.join(', ')}}`, 'after'];
    return call(`return ${this.#prefix}EventStream`, items, '', '        ');
  }

  #request(method: Method, args: Argument[]): string {
    const { verb, path, pathParameters, queryParameters, headerParameters, body, idempotent, answer } =
      method;
    const filled = pathParameters.reduce(
      (text, { name }) => text.replace(`{${name}}`, `{quoted(${attribute(name)})}`),
      path,
    );
    const items = [quote(verb), pathParameters.length > 0 ? `f${quote(filled)}` : quote(path)];
    if (answer.kind === 'text') items.push('str');
    if (answer.kind === 'json')
      items.push(
        this.#runtime([answer.full, ...(answer.agent ? [answer.agent] : [])], answer.receipt !== null),
      );
    const dictionary = (fields: { wireName: string; name: string }[]) =>
      lay(fields.map((field) => entry(field, args)));
    if (queryParameters.length > 0) items.push(`query=${dictionary(queryParameters)}`);
    if (headerParameters.length > 0) items.push(`headers=${dictionary(headerParameters)}`);
    if (body.kind === 'file') items.push('file=read_file(file)');
    if (body.kind === 'json') {
      const fields = dictionary(body.fields.map((field) => ({ ...field, wireName: field.name })));
      items.push(`${body.required ? 'body' : 'optional_body'}=${fields}`);
    }
    if (idempotent) items.push('is_idempotent=True', 'idempotency_key=idempotency_key');
    if (args.some(({ name, type }) => name === 'types' && type))
      throw new Error(`${path}: types is a module`);
    return call('Call', [...items, 'options=options'], '', '        ').trimStart();
  }

  /** What the answer is read into: all that it may be. */
  #runtime(types: Type[], hasReceipt: boolean): string {
    const parts = new Set(types.flatMap((type) => this.#names.parts(type, 'answer', 'types.')));
    if (hasReceipt) parts.add('types.Receipt');
    return parts.size === 1 ? ([...parts][0] ?? '') : `Union[${[...parts].join(', ')}]`;
  }

  #returns(answer: Answer, agent: Type | null, both = false): string {
    const join = (full: Type): string[] => {
      const chosen = agent === null ? [full] : both ? [full, agent] : [agent];
      return [...new Set(chosen.flatMap((type) => this.#names.parts(type, 'answer', 'types.')))];
    };
    switch (answer.kind) {
      case 'none':
        return 'None';
      case 'text':
        return 'str';
      case 'events':
        return `${this.#prefix}EventStream`;
      case 'page': {
        const pages = (parts: string[]) => `${this.#prefix}Pages[${unite(parts)}]`;
        if (!both || agent === null) return pages(join(answer.item));
        return `Union[${this.#returns(answer, null)}, ${this.#returns(answer, agent)}]`;
      }
      case 'json': {
        const parts = [...join(answer.full), ...(answer.receipt ? ['R'] : [])];
        return answer.mayBeEmpty ? `Optional[${unite(parts)}]` : unite(parts);
      }
    }
  }
}

const unite = (parts: string[]): string =>
  parts.length === 1 ? (parts[0] ?? '') : `Union[${parts.join(', ')}]`;

/** How an argument stands in the request: a list is checked, because a string counts as a sequence of strings. */
function entry({ wireName, name }: { wireName: string; name: string }, args: readonly Argument[]): string {
  const own = attribute(name);
  const isList = args.some((argument) => argument.name === own && isOnlyList(argument.type));
  return `${quote(wireName)}: ${isList ? `listed(${quote(own)}, ${own})` : own}`;
}

const isOnlyList = (type: string): boolean => /^(?:Optional\[)?Sequence\[/.test(type);

const lay = (entries: string[]): string => {
  const line = `{${entries.join(', ')}}`;
  return line.length <= 90
    ? line
    : `{\n${entries.map((entry) => `            ${entry},\n`).join('')}        }`;
};

function orNotGiven(type: string): string {
  const inner = /^(?:Union|Optional)\[(.*)\]$/.exec(type)?.[1];
  if (type.startsWith('Optional[Union['))
    return `Union[${inner?.slice('Union['.length, -1)}, None, NotGiven]`;
  if (type.startsWith('Optional[')) return `Union[${inner}, None, NotGiven]`;
  return `Union[${type.startsWith('Union[') ? inner : type}, NotGiven]`;
}
