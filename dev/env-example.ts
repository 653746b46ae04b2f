import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { ConfigSchema } from '../platform/config.ts';

export const ENV_EXAMPLE = fileURLToPath(new URL('../.env.example', import.meta.url));

interface Setting {
  description?: string;
  default?: string | number | boolean;
}

/** `.env.example`: every name of the configuration with what it means; optional ones are commented out. */
export function renderEnvExample(): string {
  const required = new Set<string>(ConfigSchema.required);
  const entries = Object.entries(ConfigSchema.properties as Record<string, Setting>).map(
    ([name, setting]) => {
      const fallback = setting.default;
      const comment = `# ${setting.description ?? ''}`;
      if (fallback !== undefined) return `${comment}\n# ${name}=${fallback}`;
      return required.has(name) ? `${comment} Required.\n${name}=` : `${comment}\n# ${name}=`;
    },
  );
  return [
    '# Settings of every process (platform/config.ts); `npm start` sets them itself.',
    '# A line that is commented out shows the default. Written by: npx node dev/env-example.ts',
    '',
    ...entries.flatMap((entry) => [entry, '']),
  ].join('\n');
}

export function readEnvExample(): string {
  return readFileSync(ENV_EXAMPLE, 'utf8');
}

if (import.meta.main) writeFileSync(ENV_EXAMPLE, renderEnvExample());
