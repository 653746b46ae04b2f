import { globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

export interface Import {
  /** Repository path of the importing file. */
  file: string;
  /** Repository path of the imported file, or the name of a package. */
  target: string;
  typeOnly: boolean;
}

const STATEMENT = /^\s*(?:import|export)\s+(type\s)?(?:[^'"]*?\sfrom\s+)?['"]([^'"]+)['"]/gm;
const DYNAMIC = /\bimport\(\s*['"]([^'"]+)['"]/g;

/** Every TypeScript file below these folders, sorted. */
export function sourceFiles(folders: readonly string[]): string[] {
  return folders.flatMap((folder) => globSync(`${folder}/**/*.ts`)).sort();
}

/** What a source file imports or re-exports, statically and dynamically. */
export function importsIn(file: string, source = readFileSync(file, 'utf8')): Import[] {
  const found = [
    ...[...source.matchAll(STATEMENT)].map(([, type, name]) => ({
      name: name ?? '',
      typeOnly: type !== undefined,
    })),
    ...[...source.matchAll(DYNAMIC)].map(([, name]) => ({ name: name ?? '', typeOnly: false })),
  ];
  return found.map(({ name, typeOnly }) => ({
    file,
    typeOnly,
    target: name.startsWith('.') ? normalize(join(dirname(file), name)) : name,
  }));
}

/** The room of a file of `domain/`: its folder there. Undefined for files outside, and for those that no room owns. */
export function roomOf(path: string): string | undefined {
  const [folder, room, rest] = path.split('/');
  return folder === 'domain' && rest !== undefined ? room : undefined;
}

/** Imports between rooms; a foreign key from entity to entity is the one kind that may point either way. */
export function roomEdges(imports: readonly Import[]): [string, string][] {
  const isEntity = (path: string) => path.endsWith('.entity.ts');
  return imports.flatMap(({ file, target }) => {
    const [from, to] = [roomOf(file), roomOf(target)];
    if (from === undefined || to === undefined || from === to) return [];
    return isEntity(file) && isEntity(target) ? [] : [[from, to] satisfies [string, string]];
  });
}

/** Circles of a directed graph, each written as the path around it. */
export function circlesIn(edges: readonly (readonly [string, string])[]): string[] {
  const targets = Map.groupBy(edges, ([from]) => from);
  const state = new Map<string, 'open' | 'done'>();
  const circles = new Set<string>();
  const visit = (node: string, trail: readonly string[]): void => {
    if (state.get(node) === 'done') return;
    if (state.get(node) === 'open') {
      circles.add([...trail.slice(trail.indexOf(node)), node].join(' → '));
      return;
    }
    state.set(node, 'open');
    for (const [, to] of targets.get(node) ?? []) visit(to, [...trail, node]);
    state.set(node, 'done');
  };
  for (const node of targets.keys()) visit(node, []);
  return [...circles];
}

/** Folders that hold more than `max` files themselves, with their number. */
export function crowdedFolders(files: readonly string[], max: number): string[] {
  const byFolder = Map.groupBy(files, (file) => dirname(file));
  return [...byFolder]
    .filter(([, held]) => held.length > max)
    .map(([folder, held]) => `${folder}: ${held.length}`);
}
