import { readFileSync } from 'node:fs';
import { parse } from 'yaml';

export interface ComposeService {
  image: string;
  build?: string | { context: string; target: string };
  user?: string;
  read_only?: boolean;
  cap_drop?: string[];
  security_opt?: string[];
  command?: string[];
  environment?: Record<string, string>;
  ports?: string[];
  networks?: string[];
  depends_on?: Record<string, { condition: string }>;
  healthcheck?: { test: string[] };
  deploy?: { replicas?: number };
  restart?: string;
  profiles?: string[];
  volumes?: string[];
  entrypoint?: string[];
}

export interface ComposeFile {
  services: Record<string, ComposeService>;
  configs: Record<string, { content: string }>;
  networks: Record<string, unknown>;
  volumes: Record<string, unknown>;
}

/** With merge keys resolved and variables not yet substituted. */
export function readComposeFile(): ComposeFile {
  const text = readFileSync(new URL('../../docker-compose.yml', import.meta.url), 'utf8');
  return parse(text, { merge: true }) as ComposeFile;
}

/** The services that run a process of this repository. */
export function ourServices({ services }: ComposeFile): [string, ComposeService][] {
  return Object.entries(services).filter(([, service]) => service.image === 'agent-email:local');
}

/** Substitutes `${NAME:?}`, `${NAME:-fallback}` and `$$`. */
export function interpolate(text: string, variables: Record<string, string>): string {
  return text.replace(
    /\$\$|\$\{(\w+)(?::([?-])([^}]*))?\}/g,
    (whole, name?: string, kind?: string, rest = '') => {
      if (whole === '$$') return '$';
      const value = variables[name ?? ''];
      if (value) return value;
      if (kind === '-') return rest;
      throw new Error(`${name} is required by the compose file`);
    },
  );
}
