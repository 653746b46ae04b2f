import { expect, test } from '@jest/globals';
import { readEnvExample, renderEnvExample } from '../../dev/env-example.ts';
import { ConfigSchema } from '../../platform/config.ts';

test('.env.example lists every setting with its description (npx node dev/env-example.ts updates it)', () => {
  const listed = [...readEnvExample().matchAll(/^(?:# )?([A-Z][A-Z0-9_]+)=/gm)].map(([, name]) => name);
  expect(listed).toEqual(Object.keys(ConfigSchema.properties));
  expect(readEnvExample()).toBe(renderEnvExample());
});
