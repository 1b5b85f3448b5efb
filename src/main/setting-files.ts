import { readFileSync } from 'node:fs';
import { ConfigError } from '../config.ts';
import { SETTINGS } from '../settings.ts';

/** The only secret among Temporal's own settings that Temporal cannot read from a file. */
const TEMPORAL_SECRET = 'TEMPORAL_API_KEY';
const NAMES = [...Object.keys(SETTINGS), TEMPORAL_SECRET];

/**
 * Sets each setting with a `NAME_FILE` to the content of that file without its final line break, so that secrets need not be in
 * the environment, which many tools show. An empty file leaves the setting unset. Idempotent.
 * @returns the same environment object
 * @throws ConfigError if a file cannot be read, or contradicts the environment
 */
export function readSettingFiles(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
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
