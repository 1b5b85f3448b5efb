import { existsSync, readFileSync } from 'node:fs';
import { loadEnvFile } from 'node:process';
import { ConfigError, readConfig, type Config, type SettingName } from '../config.ts';
import { SETTINGS } from '../settings.ts';

/**
 * Returns the environment with the settings of `.env`, over which the environment takes precedence, and of files named by `…_FILE`
 * settings. Ends the process if a file cannot be read or contradicts another value of its setting, or if a switch of Temporal is
 * neither true nor false.
 */
export function readEnvironment(): NodeJS.ProcessEnv {
  if (existsSync('.env')) loadEnvFile('.env');
  return exitOnConfigError(() => checkTemporalSwitches(readSettingFiles(process.env)));
}

/**
 * Reads the settings of this process. Ends the process with status 1 and one line on standard error if one is missing or
 * malformed.
 * @param required settings that must be set
 */
export function readSettings<N extends SettingName = never>(
  ...required: N[]
): Config & { [K in N]: NonNullable<Config[K]> } {
  return parseSettings(readEnvironment(), ...required);
}

/** Like `readSettings`, for this environment. */
export function parseSettings<N extends SettingName = never>(
  environment: NodeJS.ProcessEnv,
  ...required: N[]
): Config & { [K in N]: NonNullable<Config[K]> } {
  return exitOnConfigError(() => readConfig(environment, ...required));
}

function exitOnConfigError<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    console.error(error.message);
    process.exit(1);
  }
}

/** The only secret among Temporal's own settings that Temporal cannot read from a file itself. */
const TEMPORAL_SECRET = 'TEMPORAL_API_KEY';
const NAMES = [...Object.keys(SETTINGS), TEMPORAL_SECRET];

/**
 * Sets each setting with a `NAME_FILE` to the content of that file without its final line break. Secrets then need not be in
 * the environment, which many tools display. An empty file leaves the setting unset. Idempotent.
 * @returns the same environment object
 * @throws ConfigError if a file cannot be read, or the setting has another value than its file
 */
export function readSettingFiles(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  for (const name of NAMES) {
    const file = env[`${name}_FILE`];
    const text = file ? read(name, file) : '';
    if (text === '') continue;
    if (env[name] && env[name] !== text) {
      throw new ConfigError(`${name} and the file that ${name}_FILE names have different values: unset one of them`);
    }
    env[name] = text;
  }
  return env;
}

/**
 * Returns the environment for a child process, without the files of settings that were read: they may have changed since, and two
 * different values would be refused.
 */
export function environmentOfChild(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const read = new Set(NAMES.filter((name) => env[name]).map((name) => `${name}_FILE`));
  return Object.fromEntries(Object.entries(env).filter(([name]) => !read.has(name)));
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

const TEMPORAL_SWITCHES = {
  TEMPORAL_TLS: 'whether connections to Temporal use TLS',
  TEMPORAL_TLS_DISABLE_HOST_VERIFICATION: "whether Temporal's certificate is accepted without a check",
} as const;
const SWITCH_VALUES = ['true', 'false', '1', '0'];

/**
 * Checks the settings that Temporal's own reader takes for false unless they are `true` or `1`: an API key would be sent without
 * TLS. An empty one is removed, since empty settings count as unset.
 * @returns the same environment object
 * @throws ConfigError
 */
export function checkTemporalSwitches(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  for (const [name, meaning] of Object.entries(TEMPORAL_SWITCHES)) {
    const value = env[name];
    if (value === '') Reflect.deleteProperty(env, name);
    else if (value !== undefined && !SWITCH_VALUES.includes(value)) {
      throw new ConfigError(`${name} is malformed: ${meaning}, true or false, for example ${name}=true`);
    }
  }
  return env;
}
