import { existsSync } from 'node:fs';
import { loadEnvFile } from 'node:process';
import { ConfigError, readConfig, type Config, type SettingName } from '../config.ts';
import { readSettingFiles } from './setting-files.ts';

/**
 * Returns the environment with the settings of `.env` and of the files that `…_FILE` settings name. The environment and `.env`
 * take precedence. Ends the process if a file cannot be read.
 */
export function readEnvironment(): NodeJS.ProcessEnv {
  if (existsSync('.env')) loadEnvFile('.env');
  return exitOnConfigError(() => readSettingFiles(process.env));
}

/**
 * Reads the settings of this process. Ends the process with status 1 and one line on standard error if one is missing or
 * malformed.
 * @param required settings that must be set
 */
export function readSettings<N extends SettingName = never>(
  ...required: N[]
): Config & { [K in N]: NonNullable<Config[K]> } {
  const environment = readEnvironment();
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
