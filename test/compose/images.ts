import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { readComposeFile } from '../support/compose-file.ts';
import { ROOT } from '../support/root.ts';
import { buildStandIn, hasStandIn, LABEL } from './standins.ts';

const run = promisify(execFile);

/** Images that the project does not build: those of services, and the one that its own image begins with. */
export function baseImages(): string[] {
  const { services } = readComposeFile({});
  const pulled = Object.values(services).flatMap(({ image, pull_policy: policy, build }) =>
    build || policy === 'never' ? [] : [image],
  );
  const [, node = ''] = /^ARG NODE=(.+)$/m.exec(readFileSync(`${ROOT}Dockerfile`, 'utf8')) ?? [];
  return [...new Set([node, ...pulled])];
}

/** Where each image comes from. `none`: neither a registry nor a stand-in has it. */
export type Origin = 'registry' | 'stand-in' | 'none';

/**
 * Has every base image in the engine: from a registry where one can be reached, else as a stand-in.
 * @param folder where stand-ins are prepared; undefined in an engine that is not this run's own, which gets none
 */
export async function prepareImages(
  folder: string | undefined,
  print: (line: string) => void,
): Promise<ReadonlyMap<string, Origin>> {
  const origins = new Map<string, Origin>();
  for (const image of baseImages()) {
    const began = Date.now();
    const origin = (await presentOrigin(image)) ?? (await pullOrBuild(image, folder, print));
    origins.set(image, origin);
    print(`image ${image}: ${origin}, ${((Date.now() - began) / 1_000).toFixed(1)} s`);
  }
  return origins;
}

async function presentOrigin(image: string): Promise<Origin | undefined> {
  const format = `{{index .Config.Labels "${LABEL}"}}`;
  const found = await run('docker', ['image', 'inspect', '--format', format, image]).catch(() => undefined);
  if (!found) return undefined;
  return found.stdout.trim() === 'true' ? 'stand-in' : 'registry';
}

async function pullOrBuild(image: string, folder: string | undefined, print: (line: string) => void): Promise<Origin> {
  try {
    await run('docker', ['pull', '--quiet', image]);
    return 'registry';
  } catch (error) {
    if (folder === undefined) throw error;
    if (!hasStandIn(image)) return 'none';
    print(`image ${image}: no registry can be reached, building a stand-in`);
    await buildStandIn(image, folder);
    return 'stand-in';
  }
}
