import { existsSync } from 'node:fs';
import { loadEnvFile } from 'node:process';
import { ConfigError, readConfig, type Config, type SettingName } from '../config.ts';
import { takeFromFiles } from './setting-files.ts';

/**
 * The environment, completed by the file `.env` of the working directory and by the files that `…_FILE` names; what is
 * set in the environment and in `.env` stays as it is set. Ends the process when such a file cannot be read.
 */
export function readEnvironment(): NodeJS.ProcessEnv {
  if (existsSync('.env')) loadEnvFile('.env');
  return orEnd(() => takeFromFiles(process.env));
}

/**
 * The settings of this process from its environment and `.env`. Ends the process with status 1 and one line on standard
 * error when one is missing or malformed.
 * @param needed settings that this process cannot do without
 */
export function readSettings<N extends SettingName = never>(
  ...needed: N[]
): Config & { [K in N]: NonNullable<Config[K]> } {
  const environment = readEnvironment();
  return orEnd(() => readConfig(environment, ...needed));
}

function orEnd<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    console.error(error.message);
    process.exit(1);
  }
}
