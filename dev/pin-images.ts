import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

/** Where images of other projects are named. */
export const PINNED_FILES = ['docker-compose.yml', 'Dockerfile', 'charts/agent-email/values.yaml'];

/**
 * Pins the container images of docker-compose.yml, Dockerfile and the Helm chart by digest: `npm run images:pin`. Asks each image's
 * registry (OCI Distribution Specification 1.1) which digest its tag has now, and writes it behind the tag. A tag can be
 * moved to other content; a digest cannot.
 */
export interface ImageReference {
  registry: string;
  repository: string;
  tag: string;
}

const DOCKER_HUB = 'registry-1.docker.io';
/** An index of all platforms comes first, so that the digest works on each of them. */
const MANIFEST_TYPES = [
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.docker.distribution.manifest.v2+json',
].join(', ');
const DIGEST = /^sha256:[0-9a-f]{64}$/;
const TIMEOUT_MS = 30_000;
/** In docker-compose.yml `image: name:tag`, in a Dockerfile `FROM name:tag`. Own images have no registry. */
const PINNABLE = /^(?<before>\s*image: |FROM )(?<image>[^\s@]+:[^\s@]+)(?<digest>@\S+)?(?<after>.*)$/gm;
const OWN_IMAGE = /:local$/;

/** @throws Error if the image has no tag. */
export function parseImage(image: string): ImageReference {
  const found = /^(?<name>.+):(?<tag>[\w.-]+)$/.exec(image)?.groups;
  if (!found?.name || !found.tag) throw new Error(`${image} has no tag`);
  const [first = '', ...rest] = found.name.split('/');
  // As Docker does: the first part is a registry if it looks like a host name.
  if (rest.length > 0 && /[.:]|^localhost$/.test(first))
    return { registry: first, repository: rest.join('/'), tag: found.tag };
  const repository = rest.length > 0 ? found.name : `library/${found.name}`;
  return { registry: DOCKER_HUB, repository, tag: found.tag };
}

/** Returns the digest of the tag. Gets an anonymous token if the registry asks for one. */
export async function resolveDigest({ registry, repository, tag }: ImageReference): Promise<string> {
  const isLocal = /^(?:localhost|127\.0\.0\.1)(?::|$)/.test(registry);
  const url = `${isLocal ? 'http' : 'https'}://${registry}/v2/${repository}/manifests/${tag}`;
  const ask = (token?: string) =>
    fetch(url, {
      method: 'HEAD',
      headers: { accept: MANIFEST_TYPES, ...(token ? { authorization: `Bearer ${token}` } : {}) },
      signal: AbortSignal.timeout(TIMEOUT_MS),
    }).catch((error: Error) => {
      throw new Error(`${registry} cannot be reached`, { cause: error });
    });
  let answer = await ask();
  if (answer.status === 401) answer = await ask(await requestToken(answer.headers.get('www-authenticate')));
  if (!answer.ok) throw new Error(`${url} returned ${answer.status}`);
  const digest = answer.headers.get('docker-content-digest') ?? '';
  if (!DIGEST.test(digest)) throw new Error(`${url} returned no digest`);
  return digest;
}

async function requestToken(challenge: string | null): Promise<string> {
  const parameters = new Map(
    Array.from((challenge ?? '').matchAll(/(\w+)="([^"]*)"/g), ([, name, value]) => [name, value ?? '']),
  );
  const realm = parameters.get('realm');
  if (!realm) throw new Error('The registry asks for credentials without saying where to get them');
  const url = new URL(realm);
  for (const name of ['service', 'scope']) url.searchParams.set(name, parameters.get(name) ?? '');
  const answer = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) });
  const body = (await answer.json()) as { token?: string; access_token?: string };
  const token = body.token ?? body.access_token;
  if (!answer.ok || !token) throw new Error(`${url.origin} issued no token (${answer.status})`);
  return token;
}

/** Returns the text with the current digest of every image. Each image is looked up once. */
export async function pinImages(text: string, resolve = resolveDigest): Promise<string> {
  const digests = new Map<string, string>();
  for (const image of findImages(text)) digests.set(image, await resolve(parseImage(image)));
  return text.replace(PINNABLE, (line, before, image, _digest, after) =>
    OWN_IMAGE.test(image) ? line : `${before}${image}@${digests.get(image)}${after}`,
  );
}

/** The images of other projects, with their tags. */
export function findImages(text: string): string[] {
  const images = Array.from(text.matchAll(PINNABLE), ({ groups }) => groups?.image ?? '');
  return [...new Set(images.filter((image) => !OWN_IMAGE.test(image)))];
}

async function main(): Promise<void> {
  const root = resolve(import.meta.dirname, '..');
  // All look-ups come before the first write.
  const files = await Promise.all(
    PINNED_FILES.map(async (name) => {
      const path = join(root, name);
      return { path, pinned: await pinImages(readFileSync(path, 'utf8')) };
    }),
  );
  for (const { path, pinned } of files) {
    writeFileSync(path, pinned);
    process.stdout.write(`${path}: ${findImages(pinned).length} image(s) pinned\n`);
  }
}

if (import.meta.main) {
  main().catch((error: unknown) => {
    process.stderr.write(`Nothing was changed: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  });
}
