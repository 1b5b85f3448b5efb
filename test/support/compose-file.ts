import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseEnv } from 'node:util';
import { parse } from 'yaml';

export const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** A service of docker-compose.yml, as far as we use it; short and long forms as they stand there. */
export interface Service {
  readonly image: string;
  readonly build?: { readonly target: string };
  readonly entrypoint?: readonly string[];
  readonly command?: string | readonly string[];
  readonly environment?: Readonly<Record<string, string | number>>;
  readonly env_file?: readonly (string | { readonly path: string; readonly required: boolean })[];
  readonly secrets?: readonly string[];
  readonly volumes?: readonly string[];
  readonly ports?: readonly string[];
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
}

/**
 * Reads docker-compose.yml as Compose does: anchors and merges resolved, then variables put in.
 * @param env what `.env`, or the file of `--env-file`, and the shell say
 */
export function readComposeFile(env: Readonly<Record<string, string>>): ComposeFile {
  const document: unknown = parse(readFileSync(`${ROOT}docker-compose.yml`, 'utf8'), { merge: true });
  return interpolate(document, env) as ComposeFile;
}

/** The variables of a file such as deploy/demo.env. */
export function readEnvFile(path: string): Record<string, string> {
  return parseEnv(readFileSync(`${ROOT}${path}`, 'utf8')) as Record<string, string>;
}

function interpolate(value: unknown, env: Readonly<Record<string, string>>): unknown {
  if (typeof value === 'string') return putIn(value, env);
  if (Array.isArray(value)) return value.map((one) => interpolate(one, env));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, interpolate(one, env)]));
}

/** https://docs.docker.com/reference/compose-file/interpolation/, of which the file uses `$$`, `${A:-b}` and `${A:?b}`. */
function putIn(text: string, env: Readonly<Record<string, string>>): string {
  return text.replace(/\$(?:(\$)|\{(\w+)(?::([-?])([^}]*))?\}|(.?))/gs, (whole, dollar, name, how, other, wrong) => {
    if (dollar !== undefined) return '$';
    if (wrong !== undefined) throw new Error(`not understood: ${whole} in ${text}`);
    const value = env[name as string];
    if (value) return value;
    if (how === '?') throw new Error(`${String(name)} is missing: ${String(other)}`);
    return (other as string | undefined) ?? '';
  });
}

/** Services in an order in which each comes after those that it depends on. */
export function inOrder(services: Readonly<Record<string, Service>>): string[] {
  const order = new Set<string>();
  const visit = (name: string, path: readonly string[]) => {
    if (path.includes(name)) throw new Error(`a circle: ${[...path, name].join(' → ')}`);
    for (const needed of Object.keys(services[name]?.depends_on ?? {})) visit(needed, [...path, name]);
    order.add(name);
  };
  for (const name of Object.keys(services)) visit(name, []);
  return [...order];
}

/** The words of a command; a text is split at its spaces, which is enough for ours. */
export function words(command: Service['command']): string[] {
  return typeof command === 'string' ? command.split(' ') : [...(command ?? [])];
}
