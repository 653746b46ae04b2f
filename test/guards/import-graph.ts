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

/** Lists every TypeScript file in these folders and their subfolders, sorted. */
export function listSourceFiles(folders: readonly string[]): string[] {
  return folders.flatMap((folder) => globSync(`${folder}/**/*.ts`)).sort();
}

/** Finds the imports and re-exports of a source file, static and dynamic. */
export function parseImports(file: string, source = readFileSync(file, 'utf8')): Import[] {
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

/** The room of a file: its folder in `domain/`. Undefined for files outside `domain/` and files directly in it. */
export function roomOf(path: string): string | undefined {
  const [folder, room, rest] = path.split('/');
  return folder === 'domain' && rest !== undefined ? room : undefined;
}

/** Finds the imports between rooms, except foreign keys between entities, which may point in either direction. */
export function findRoomImports(imports: readonly Import[]): [string, string][] {
  const isEntity = (path: string) => path.endsWith('.entity.ts');
  return imports.flatMap(({ file, target }) => {
    const [from, to] = [roomOf(file), roomOf(target)];
    if (from === undefined || to === undefined || from === to) return [];
    return isEntity(file) && isEntity(target) ? [] : [[from, to] satisfies [string, string]];
  });
}

/** Finds the cycles of a directed graph, each as a path: `a → b → a`. */
export function findCycles(edges: readonly (readonly [string, string])[]): string[] {
  const targets = Map.groupBy(edges, ([from]) => from);
  const state = new Map<string, 'open' | 'done'>();
  const cycles = new Set<string>();
  const visit = (node: string, trail: readonly string[]): void => {
    if (state.get(node) === 'done') return;
    if (state.get(node) === 'open') {
      cycles.add([...trail.slice(trail.indexOf(node)), node].join(' → '));
      return;
    }
    state.set(node, 'open');
    for (const [, to] of targets.get(node) ?? []) visit(to, [...trail, node]);
    state.set(node, 'done');
  };
  for (const node of targets.keys()) visit(node, []);
  return [...cycles];
}

/** The files of each room that others import: its interface. Entities do not count, because foreign keys refer to them. */
export function findInterfaces(imports: readonly Import[]): Map<string, Set<string>> {
  const interfaces = new Map<string, Set<string>>();
  for (const { file, target } of imports) {
    const room = roomOf(target);
    if (room === undefined || room === roomOf(file) || target.endsWith('.entity.ts')) continue;
    interfaces.set(room, (interfaces.get(room) ?? new Set()).add(target));
  }
  return interfaces;
}
