import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { parseAllDocuments } from 'yaml';
import { CHART } from '../../dev/chart-schema.ts';

/** What `.ci/run` installs: Helm, and the JSON Schemas that the Python package kubernetes-validate has. */
const CACHE = join(homedir(), '.cache', 'agent-email');
const HELM = [process.env.HELM ?? '', join(CACHE, 'helm-3.19.5', 'helm'), 'helm'];
const SCHEMAS = process.env.KUBERNETES_SCHEMAS ?? join(CACHE, 'kubernetes-schemas-1.37.0');

/** The oldest version that the chart allows, and the newest that there are schemas for. */
export const KUBERNETES_VERSIONS = ['1.27.0', '1.37.0'];
const [, NEWEST = ''] = KUBERNETES_VERSIONS;

const helm = HELM.find((path) => path !== '' && !spawnSync(path, ['version']).error);

/** Why Helm cannot run here. Undefined if it can. */
export const findHelmObstacle = (): string | undefined =>
  helm === undefined
    ? 'helm is not installed (go install helm.sh/helm/v3/cmd/helm@v3.19.5, or set HELM)'
    : undefined;

/** Why objects cannot be checked against the schemas of Kubernetes. Undefined if they can. */
export const findSchemaObstacle = (): string | undefined =>
  existsSync(SCHEMAS) ? undefined : `there are no schemas in ${SCHEMAS} (.ci/run installs them)`;

export interface HelmResult {
  ok: boolean;
  output: string;
  errors: string;
}

export function runHelm(args: string[]): HelmResult {
  if (helm === undefined) throw new Error(findHelmObstacle());
  const { status, stdout, stderr } = spawnSync(helm, args, { encoding: 'utf8' });
  return { ok: status === 0, output: stdout, errors: stderr };
}

/** @param values arguments such as `--values FILE` and `--set name=value`. */
export const lintChart = (values: string[]): HelmResult =>
  runHelm(['lint', CHART, '--strict', '--kube-version', NEWEST, ...values]);

/** Renders the chart as the release `mail` in the namespace `mail`. */
export const templateChart = (values: string[]): HelmResult =>
  runHelm(['template', 'mail', CHART, '--namespace', 'mail', '--kube-version', NEWEST, ...values]);

export interface EnvironmentVariable {
  name: string;
  value?: string;
  valueFrom?: { secretKeyRef: { name: string; key: string; optional?: boolean } };
}

interface Probe {
  httpGet: { path: string; port: string };
}

export interface Container {
  name: string;
  image: string;
  args: string[];
  env: EnvironmentVariable[];
  ports?: { name: string; containerPort: number }[];
  startupProbe?: Probe;
  livenessProbe?: Probe;
  readinessProbe?: Probe;
  lifecycle?: { preStop: { exec: { command: string[] } } };
  resources: { requests: Record<string, string>; limits: Record<string, string> };
  securityContext: object;
  volumeMounts: { name: string; mountPath: string; readOnly?: boolean }[];
}

export interface PodSpec {
  containers: [Container];
  serviceAccountName?: string;
  terminationGracePeriodSeconds?: number;
  volumes: { name: string; secret?: { secretName: string; items?: { path: string }[] } }[];
}

/** A rendered object, with the parts that the tests read. */
export interface KubernetesObject {
  apiVersion: string;
  kind: string;
  metadata: {
    name: string;
    namespace?: string;
    labels: Record<string, string>;
    annotations?: Record<string, string>;
  };
  // biome-ignore lint/suspicious/noExplicitAny: its shape depends on the kind, and is checked against the schema of Kubernetes
  spec?: any;
  data?: Record<string, string>;
}

/** @throws Error with Helm's message if it does not render the chart. */
export function renderChart(values: string[]): KubernetesObject[] {
  const { ok, output, errors } = templateChart(values);
  if (!ok) throw new Error(errors);
  return parseAllDocuments(output)
    .map((document) => {
      if (document.errors.length > 0) throw document.errors[0];
      return document.toJS() as KubernetesObject | null;
    })
    .filter((object) => object !== null);
}

/** Checks objects against the schemas of one version of Kubernetes, which know every field and allow no other. */
export function createValidator(version: string): (object: KubernetesObject) => string[] {
  const folder = join(SCHEMAS, `v${version}-local-strict`);
  const read = (file: string) => JSON.parse(readFileSync(join(folder, file), 'utf8'));
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false });
  ajv.addSchema(read('_definitions.json'));
  const validators = new Map<string, ValidateFunction>();
  return (object) => {
    const file = schemaFile(object);
    const validate = validators.get(file) ?? ajv.compile(read(file));
    validators.set(file, validate);
    validate(object);
    const { kind, metadata } = object;
    return (validate.errors ?? []).map(
      ({ instancePath, message, params }) =>
        `${kind} ${metadata.name} ${instancePath} ${message} ${JSON.stringify(params)}`,
    );
  };
}

/** `apps/v1` Deployment → `deployment-apps-v1.json`. */
function schemaFile({ apiVersion, kind }: KubernetesObject): string {
  const [group = '', version] = apiVersion.includes('/') ? apiVersion.split('/') : ['', apiVersion];
  return `${[kind.toLowerCase(), group.split('.')[0], version].filter(Boolean).join('-')}.json`;
}
