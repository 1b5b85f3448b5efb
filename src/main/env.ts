import { existsSync } from 'node:fs';
import { loadEnvFile } from 'node:process';
import { ConfigError, readConfig, type Config, type SettingName } from '../config.ts';

/** The environment, completed by the file `.env` of the working directory; what is set in both stays as it is set. */
export function readEnvironment(): NodeJS.ProcessEnv {
  if (existsSync('.env')) loadEnvFile('.env');
  return process.env;
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
  try {
    return readConfig(environment, ...needed);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    console.error(error.message);
    process.exit(1);
  }
}
