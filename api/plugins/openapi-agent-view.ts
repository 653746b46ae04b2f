interface Schema {
  $ref?: string;
  title?: string;
  anyOf?: { $ref?: string }[];
  items?: Schema;
  properties?: Record<string, Schema>;
}

interface Operation {
  parameters?: { name: string; schema?: object }[];
  responses: Record<string, { content?: Record<string, { schema?: Schema }> }>;
}

const toReference = (name: string) => ({ $ref: `#/components/schemas/${name}` });
const MESSAGE = toReference('Message').$ref;
const AGENT_MESSAGE = toReference('AgentMessage');

/**
 * Documents what `view=agent` answers. Routes serialize it by itself, because with a union the serializer would validate each
 * message to choose. Call it before the bodies get their names.
 */
export function describeAgentView(operations: readonly Operation[]): void {
  for (const { parameters = [], responses } of operations) {
    if (!parameters.some(({ name, schema }) => name === 'view' && offersAgent(schema))) continue;
    for (const [status, { content }] of Object.entries(responses)) {
      const body = content?.['application/json'];
      if (status.startsWith('2') && body?.schema) body.schema = withAgentMessage(body.schema);
    }
  }
}

const offersAgent = (schema: { enum?: unknown[] } = {}) => schema.enum?.includes('agent') === true;

function withAgentMessage(schema: Schema): Schema {
  if (schema.$ref === MESSAGE) return { anyOf: [schema, AGENT_MESSAGE] };
  if (!schema.anyOf?.some(({ $ref }) => $ref === MESSAGE)) return schema;
  return {
    ...schema,
    anyOf: schema.anyOf.flatMap((branch) => (branch.$ref === MESSAGE ? [branch, AGENT_MESSAGE] : [branch])),
  };
}

/** Lists and threads hold messages of either view. Call it when the bodies have their names. */
export function describeListedAgentMessages(schemas: Record<string, Schema>): void {
  const addUnion = (title: string, other: string, items: Schema | undefined) => {
    if (!items) throw new Error(`${other} is not listed where it was`);
    schemas[title] = { title, anyOf: [toReference(other), AGENT_MESSAGE] };
    delete items.anyOf;
    items.$ref = toReference(title).$ref;
  };
  addUnion('ListedMessage', 'MessageListItem', schemas.MessageList?.properties?.data?.items);
  addUnion('ThreadMessage', 'MessageSummary', schemas.Thread?.properties?.messages?.items);
}
