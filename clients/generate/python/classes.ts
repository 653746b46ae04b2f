import type { Model } from '../model.ts';
import type { Field, NamedType, Type } from '../schema-types.ts';
import { attribute, docstring, header, quote, wrap } from './text.ts';
import { isWrittenByName, type Side, type TypeNames } from './types.ts';

type ObjectType = NamedType & { kind: 'object' };

const isObject = (named: NamedType): named is ObjectType => named.kind === 'object';

/** The classes of what the service answers. */
export function printAnswers(model: Model, names: TypeNames): string {
  const answers = model.groups.flatMap(({ methods }) => methods.map(({ answer }) => answer));
  const receipts = answers.flatMap((answer) =>
    answer.kind === 'json' && answer.receipt ? [answer.receipt] : [],
  );
  const read = answers.flatMap((answer): Type[] => {
    if (answer.kind === 'page') return [answer.item, ...(answer.agentItem ? [answer.agentItem] : [])];
    return answer.kind === 'json' ? [answer.full, ...(answer.agent ? [answer.agent] : [])] : [];
  });
  const types = names.reachable([...read, { kind: 'reference', name: 'Event' }]);
  const classes = [
    ...types.filter(isObject),
    mergeReceipts(names.reachable(receipts).filter(isObject), names),
  ];
  const aliases = types.filter((named) => isWrittenByName(named, 'answer'));
  return [
    header('What the service answers. Fields that the service leaves out are None.'),
    'from typing import Any, Dict, List, Literal, Optional, Union\n\nfrom ._model import Model\n',
    ...classes.map((named) => printModel(named, names)),
    ...aliases.map((named) => printAlias(named, names, 'answer')),
  ].join('\n');
}

/** One class for the receipts of all operations: each has only the fields of its own. */
function mergeReceipts(receipts: ObjectType[], names: TypeNames): ObjectType {
  const fields = new Map<string, Field>();
  for (const { name, type, ...field } of receipts.flatMap((receipt) => receipt.fields)) {
    const required = name === 'object';
    // The same field has other known values in other receipts.
    const open: Type = names.knownValues(type).length > 0 ? { kind: 'string', format: null } : type;
    fields.set(name, { ...field, name, required, type: open, description: null });
  }
  const description =
    'What a key gets for a change, if it may not read what it changed. Each operation answers some of these fields.';
  return { kind: 'object', name: 'Receipt', open: true, description, fields: [...fields.values()] };
}

function printModel({ name, description, fields }: ObjectType, names: TypeNames): string {
  const about = description ? `${docstring([description], '    ')}\n\n` : '';
  const lines = fields.map((field) => {
    const written = names.write(field.type, 'answer');
    const isNone = field.required || written.startsWith('Optional[') || written === 'Any';
    const doc = describeAnswer(field, names);
    const annotation = `    ${attribute(field.name)}: ${isNone ? written : `Optional[${written}]`}\n`;
    return annotation + (doc === null ? '' : `${docstring([doc], '    ')}\n`);
  });
  return `\nclass ${name}(Model):\n${about}${lines.join('') || '    pass\n'}`;
}

function describeAnswer(field: Field, names: TypeNames): string | null {
  const known = names.knownValues(field.type);
  const values = known.length === 0 ? null : `Known values: ${known.join(', ')}.`;
  return [field.description, values].filter((part) => part !== null).join(' ') || null;
}

/** The dictionaries that requests consist of; the fields of a body itself are arguments. */
export function printRequests(model: Model, names: TypeNames): string {
  const sent = model.groups.flatMap(({ methods }) =>
    methods.flatMap(({ body, queryParameters, pathParameters }) => [
      ...(body.kind === 'json' ? body.fields : []),
      ...queryParameters,
      ...pathParameters,
    ]),
  );
  const types = names.reachable(sent.map(({ type }) => type));
  const aliases = types.filter((named) => isWrittenByName(named, 'request'));
  return [
    header('The types of arguments.'),
    'from datetime import datetime\nfrom typing import Any, Literal, Mapping, Optional, Sequence, TypedDict, Union\n',
    ...types.filter(isObject).map((named) => printDictionary(named, names)),
    ...aliases.map((named) => printAlias(named, names, 'request')),
  ].join('\n');
}

/** Two classes where some fields are required and others are not: `NotRequired` came with Python 3.11. */
function printDictionary({ name, description, fields }: ObjectType, names: TypeNames): string {
  const keyword = fields.find((field) => attribute(field.name) !== field.name);
  if (keyword) throw new Error(`${name}.${keyword.name} cannot be a field of a class of Python`);
  const required = fields.filter((field) => field.required);
  const about = description ? `${docstring([description], '    ')}\n\n` : '';
  const body = (some: Field[]) =>
    some
      .map((field) => `${commentOf(field)}    ${field.name}: ${names.write(field.type, 'request')}\n`)
      .join('');
  if (required.length === fields.length) return `\nclass ${name}(TypedDict):\n${about}${body(fields)}`;
  const optional = fields.filter((field) => !field.required);
  if (required.length === 0) return `\nclass ${name}(TypedDict, total=False):\n${about}${body(optional)}`;
  const base = `_Required${name}`;
  return `\nclass ${base}(TypedDict):\n${body(required)}\n\nclass ${name}(${base}, total=False):\n${about}${body(optional)}`;
}

const commentOf = ({ description }: Field): string =>
  description === null
    ? ''
    : wrap(description, '    #: ')
        .map((line) => `    #: ${line}\n`)
        .join('');

function printAlias(named: NamedType, names: TypeNames, side: Side): string {
  if (named.kind !== 'alias') throw new Error(`${named.name} is no alias`);
  const doc = named.description
    ? `${wrap(named.description, '#: ')
        .map((line) => `#: ${line}\n`)
        .join('')}`
    : '';
  const parts = names.parts(named.type, side);
  if (parts.length > 1) return `\n${doc}${named.name} = ${list('Union', parts)}\n`;
  const values = named.type.kind === 'enumeration' ? named.type.values.map(quote) : [];
  return `\n${doc}${named.name} = ${list('Literal', values)}\n`;
}

const list = (kind: string, items: string[]): string =>
  `${kind}[\n${items.map((item) => `    ${item},\n`).join('')}]`;
