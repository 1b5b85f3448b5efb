import { readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { parse } from 'yaml';
import { ROOT } from './root.ts';

/** The used fields of a service of docker-compose.yml. */
export interface Service {
  readonly image: string;
  readonly build?: { readonly target: string };
  readonly pull_policy?: string;
  readonly attach?: boolean;
  readonly entrypoint?: readonly string[];
  readonly command?: string | readonly string[];
  readonly environment?: Readonly<Record<string, string | number>>;
  readonly env_file?: readonly (string | { readonly path: string; readonly required: boolean })[];
  readonly secrets?: readonly string[];
  readonly volumes?: readonly string[];
  readonly ports?: readonly string[];
  readonly networks?: readonly string[] | Readonly<Record<string, unknown>>;
  readonly profiles?: readonly string[];
  readonly depends_on?: Readonly<Record<string, { readonly condition: string; readonly required?: boolean }>>;
  readonly healthcheck?: { readonly test: readonly string[]; readonly interval: string; readonly retries: number };
  readonly restart: string;
  readonly init?: boolean;
  readonly stop_grace_period?: string;
  readonly deploy?: {
    readonly replicas?: number;
    readonly resources?: { readonly limits?: { readonly cpus?: string; readonly memory?: string } };
  };
}

export interface ComposeFile {
  readonly services: Readonly<Record<string, Service>>;
  readonly volumes: Readonly<Record<string, unknown>>;
  readonly secrets: Readonly<Record<string, { readonly file: string }>>;
  readonly networks: Readonly<Record<string, { readonly internal?: boolean } | null>>;
}

/**
 * Reads docker-compose.yml like Compose: resolves anchors and merges, then replaces variables.
 * @param env variables of `.env`, or of the file of `--env-file`, and of the shell
 */
export function readComposeFile(env: Readonly<Record<string, string>>): ComposeFile {
  const document: unknown = parse(readFileSync(`${ROOT}docker-compose.yml`, 'utf8'), { merge: true });
  return interpolate(document, env) as ComposeFile;
}

/** The names of a service's networks. */
export function networksOf({ networks = ['default'] }: Service): readonly string[] {
  return Array.isArray(networks) ? (networks as readonly string[]) : Object.keys(networks);
}

/** The variables of a file such as deploy/demo.env. */
export function readEnvFile(path: string): Record<string, string> {
  return parseEnv(readFileSync(`${ROOT}${path}`, 'utf8')) as Record<string, string>;
}

function interpolate(value: unknown, env: Readonly<Record<string, string>>): unknown {
  if (typeof value === 'string') return replaceVariables(value, env);
  if (Array.isArray(value)) return value.map((one) => interpolate(one, env));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, interpolate(one, env)]));
}

/**
 * Replaces variables: `$$`, `${A}`, `${A:-b}`, `${A-b}` and `${A:?b}`, whose default may hold variables in turn.
 * https://docs.docker.com/reference/compose-file/interpolation/
 */
function replaceVariables(text: string, env: Readonly<Record<string, string>>): string {
  const start = text.indexOf('$');
  if (start === -1) return text;
  const head = text.slice(0, start);
  if (text[start + 1] === '$') return `${head}$${replaceVariables(text.slice(start + 2), env)}`;
  const end = closingBrace(text, start + 1);
  const [, name, colon, how, other = ''] = /^\{(\w+)(?:(:?)([-?])(.*))?$/s.exec(text.slice(start + 1, end)) ?? [];
  if (name === undefined) throw new Error(`unknown interpolation in ${text}`);
  const value = env[name];
  const isSet = how === undefined || (colon === ':' ? Boolean(value) : value !== undefined);
  if (!isSet && how === '?') throw new Error(`${name} is missing: ${other}`);
  return head + (isSet ? (value ?? '') : replaceVariables(other, env)) + replaceVariables(text.slice(end + 1), env);
}

/** The index of the closing brace. */
function closingBrace(text: string, opening: number): number {
  let depth = 0;
  for (let index = opening; index < text.length; index++) {
    if (text[index] === '{') depth++;
    if (text[index] === '}' && --depth === 0) return index;
  }
  throw new Error(`unknown interpolation in ${text}`);
}

/** Names of services, each after those that it depends on. */
export function inOrder(services: Readonly<Record<string, Service>>): string[] {
  const order = new Set<string>();
  const visit = (name: string, path: readonly string[]) => {
    if (path.includes(name)) throw new Error(`circular dependency: ${[...path, name].join(' → ')}`);
    for (const needed of Object.keys(services[name]?.depends_on ?? {})) visit(needed, [...path, name]);
    order.add(name);
  };
  for (const name of Object.keys(services)) visit(name, []);
  return [...order];
}

/** The words of a command. A string is split at its spaces. */
export function words(command: Service['command']): string[] {
  return typeof command === 'string' ? command.split(' ') : [...(command ?? [])];
}
