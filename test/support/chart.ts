import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { CHART } from '../../dev/chart-schema.ts';
import { type Container, type KubernetesObject, type PodSpec, renderChart } from './helm.ts';

/** The example configurations of the chart. The one called `production` turns everything on. */
export const EXAMPLES = readdirSync(join(CHART, 'examples')).map((file) => file.replace('.yaml', ''));

export const exampleValues = (example: string): string[] => [
  '--values',
  join(CHART, 'examples', `${example}.yaml`),
];

const rendered = new Map<string, KubernetesObject[]>();

/** The objects of an example, which is rendered once. */
export function objectsOf(example: string): KubernetesObject[] {
  const objects = rendered.get(example) ?? renderChart(exampleValues(example));
  rendered.set(example, objects);
  return objects;
}

/** The process or job that an object belongs to. */
export const componentOf = ({ metadata }: KubernetesObject): string =>
  metadata.labels['app.kubernetes.io/component'] ?? '';

export const ofKind = (example: string, kind: string): KubernetesObject[] =>
  objectsOf(example).filter((object) => object.kind === kind);

export const withPods = (example: string): KubernetesObject[] =>
  objectsOf(example).filter(({ kind }) => ['Deployment', 'Job', 'Pod'].includes(kind));

export const podOf = (object: KubernetesObject): PodSpec => object.spec.template?.spec ?? object.spec;

export const containerOf = (object: KubernetesObject): Container => podOf(object).containers[0];

/** @throws Error if there is none. */
export function selectObject(
  objects: readonly KubernetesObject[],
  kind: string,
  component: string,
): KubernetesObject {
  const found = objects.find((object) => object.kind === kind && componentOf(object) === component);
  if (!found) throw new Error(`There is no ${kind} of ${component}`);
  return found;
}

export const findObject = (example: string, kind: string, component: string): KubernetesObject =>
  selectObject(objectsOf(example), kind, component);

/** The environment of a container as the process sees it, with a text for each key of a Secret. */
export const environmentOf = ({ env }: Container): Record<string, string> =>
  Object.fromEntries(
    env.map(({ name, value, valueFrom }) => [name, value ?? `value of ${valueFrom?.secretKeyRef.key}`]),
  );
