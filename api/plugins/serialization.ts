import fastJsonStringify from 'fast-json-stringify';
import type { FastifyInstance } from 'fastify';

type Schema = Parameters<typeof fastJsonStringify>[0];
type Serialize = (value: unknown) => string;

/**
 * Serializes responses by their schemas, as Fastify does. Fastify compiles a serializer for each response of each
 * operation and processes every shared schema for each, which dominated the start-up time. Here, responses with the same
 * schema share one serializer, and each serializer gets only the schemas it refers to.
 *
 * @param shared schemas that responses refer to by name.
 */
export function installSerialization(app: FastifyInstance, shared: readonly object[]): void {
  const byId = new Map(shared.map((schema) => [(schema as { $id: string }).$id, schema]));
  const serializers = new Map<string, Serialize>();
  app.setSerializerCompiler<object>(({ schema }) => {
    const key = JSON.stringify(schema);
    const existing = serializers.get(key);
    if (existing) return existing;
    // Compiled with the first response, as requests are.
    let compiled: Serialize | undefined;
    const serialize: Serialize = (value) => {
      compiled ??= fastJsonStringify(schema as Schema, { schema: collectReferences(key, byId) });
      return compiled(value);
    };
    serializers.set(key, serialize);
    return serialize;
  });
}

const REFERENCE = /"\$ref":"([^"#]+)#"/g;

/** Collects the shared schemas that a schema refers to, transitively. @param schema as JSON. */
function collectReferences(schema: string, byId: ReadonlyMap<string, object>): Record<string, Schema> {
  const found = new Map<string, object>();
  const queue = [schema];
  for (let json = queue.pop(); json !== undefined; json = queue.pop()) {
    for (const [, name = ''] of json.matchAll(REFERENCE)) {
      const referred = byId.get(name);
      if (!referred || found.has(name)) continue;
      found.set(name, referred);
      queue.push(JSON.stringify(referred));
    }
  }
  return Object.fromEntries(found) as Record<string, Schema>;
}
