import { readFileSync } from 'node:fs';
import { ConfigError } from '../config.ts';
import { SETTINGS } from '../settings.ts';

/** Of Temporal's own settings, the one that is a secret and that Temporal itself reads from no file. */
const TEMPORAL_SECRET = 'TEMPORAL_API_KEY';
const NAMES = [...Object.keys(SETTINGS), TEMPORAL_SECRET];

/**
 * Gives each setting whose `NAME_FILE` is set the text of that file, without the line break at its end: so secrets need
 * not stand in an environment, which many tools show. An empty file is a setting that is not given.
 * @returns the same environment, changed; doing it again changes nothing more
 * @throws ConfigError when a file cannot be read, or says something else than the environment
 */
export function takeFromFiles(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  for (const name of NAMES) {
    const file = env[`${name}_FILE`];
    const text = file ? read(name, file) : '';
    if (text === '') continue;
    if (env[name] && env[name] !== text) {
      throw new ConfigError(`${name} and the file that ${name}_FILE names say different things: clear one of them`);
    }
    env[name] = text;
  }
  return env;
}

function read(name: string, file: string): string {
  try {
    return readFileSync(file, 'utf8').replace(/\r?\n$/, '');
  } catch (error) {
    const { code = 'unknown error' } = error as NodeJS.ErrnoException;
    const example = `${name}_FILE=/run/secrets/${name.toLowerCase()}`;
    throw new ConfigError(`${name}_FILE cannot be read (${code}): the file that holds ${name}, for example ${example}`);
  }
}
