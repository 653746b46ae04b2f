import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import ajvFormats from 'ajv-formats';
import { eventSchemaName, eventSchemas } from '../../api/events/events.schemas.ts';
import { EVENT_TYPES } from '../../domain/events/event-types.ts';

const ajv = new Ajv2020({ strict: false, allErrors: true });
ajvFormats.default(ajv, ['date-time']);
for (const schema of eventSchemas) ajv.addSchema(schema);

/** @returns why a webhook's body does not match the schema of its event type; undefined if it matches. */
export function findSchemaError(body: string): string | undefined {
  const event = JSON.parse(body) as { type?: string };
  const type = EVENT_TYPES.find((name) => name === event.type);
  if (!type) return `${event.type} is no event type`;
  const validate = ajv.getSchema(eventSchemaName(type)) as ValidateFunction;
  return validate(event) ? undefined : `${type} ${ajv.errorsText(validate.errors)}: ${body.slice(0, 2_000)}`;
}
