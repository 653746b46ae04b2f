import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from '@jest/globals';
import { findImages, PINNED_FILES, parseImage, pinImages } from '../../dev/pin-images.ts';

const cleanUps: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0)) await cleanUp();
});

const DIGEST = `sha256:${'a1'.repeat(32)}`;

/** A registry that asks for a token, as Docker Hub does, and knows `team/app:1.2.3`. */
async function startRegistry(digest: string | undefined = DIGEST) {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://registry');
    if (url.pathname === '/token') {
      asked.push(`token for ${url.searchParams.get('scope')}`);
      response.setHeader('content-type', 'application/json').end('{"token":"anonymous"}');
    } else if (request.headers.authorization !== 'Bearer anonymous') {
      const { port } = server.address() as AddressInfo;
      const challenge = `Bearer realm="http://127.0.0.1:${port}/token",service="registry",scope="repository:team/app:pull"`;
      response.writeHead(401, { 'www-authenticate': challenge }).end();
    } else if (url.pathname === '/v2/team/app/manifests/1.2.3') {
      asked.push(`${request.method} with ${request.headers.accept?.split(',')[0]}`);
      response.writeHead(200, digest ? { 'docker-content-digest': digest } : {}).end();
    } else response.writeHead(404).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanUps.push(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return { host: `127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

test('writes the digest of each tag, once looked up, and leaves the rest of the file as it is', async () => {
  const { host, asked } = await startRegistry();
  const text = [
    'services:',
    '  own:',
    '    image: agent-email:local',
    '  first:',
    `    image: ${host}/team/app:1.2.3`,
    '  second:',
    `    image: ${host}/team/app:1.2.3@sha256:${'0'.repeat(64)} # outdated`,
    `FROM ${host}/team/app:1.2.3 AS build`,
  ].join('\n');
  const pinned = await pinImages(text);
  expect(pinned.split('\n')).toEqual([
    'services:',
    '  own:',
    '    image: agent-email:local',
    '  first:',
    `    image: ${host}/team/app:1.2.3@${DIGEST}`,
    '  second:',
    `    image: ${host}/team/app:1.2.3@${DIGEST} # outdated`,
    `FROM ${host}/team/app:1.2.3@${DIGEST} AS build`,
  ]);
  expect(asked).toEqual([
    'token for repository:team/app:pull',
    'HEAD with application/vnd.oci.image.index.v1+json',
  ]);
  expect(await pinImages(pinned)).toBe(pinned);
});

test('fails for a tag that the registry does not have, and without a digest', async () => {
  const { host } = await startRegistry('not a digest');
  await expect(pinImages(`FROM ${host}/team/app:9.9.9`)).rejects.toThrow('returned 404');
  await expect(pinImages(`FROM ${host}/team/app:1.2.3`)).rejects.toThrow('returned no digest');
});

test.each([
  ['postgres:18.1', { registry: 'registry-1.docker.io', repository: 'library/postgres', tag: '18.1' }],
  ['temporalio/ui:2.54.1', { registry: 'registry-1.docker.io', repository: 'temporalio/ui', tag: '2.54.1' }],
  ['ghcr.io/a/b:v1', { registry: 'ghcr.io', repository: 'a/b', tag: 'v1' }],
])('reads %s as Docker does', (image, reference) => {
  expect(parseImage(image)).toEqual(reference);
});

test('every image of other projects has an exact version and a complete digest', () => {
  const files = PINNED_FILES.map((name) => readFileSync(new URL(`../../${name}`, import.meta.url), 'utf8'));
  const images = files.flatMap(findImages);
  expect(images.length).toBeGreaterThan(6);
  expect(images.filter((image) => !/:v?\d+\.\d+(?:\.\d+)?(?:-[\w.-]+)?$/.test(image))).toEqual([]);
  const named = files.flatMap((text) => text.match(/^\s*(?:image:|FROM) .*$/gm) ?? []);
  expect(named.filter((line) => /:latest\b|image: [^:]+$|\$\{/.test(line))).toEqual([]);
  const pinned = new Set(
    files.flatMap((text) =>
      Array.from(text.matchAll(/(\S+)@sha256:[0-9a-f]{64}(?=\s|$)/g), ([, image]) => image),
    ),
  );
  expect(images.filter((image) => !pinned.has(image))).toEqual([]);
  const references = files.flatMap((text) => text.match(/^\s*(?:image: |FROM )\S+:\S*$/gm) ?? []);
  expect(
    references.filter((line) => !/@sha256:[0-9a-f]{64}$/.test(line) && !line.endsWith(':local')),
  ).toEqual([]);
});
