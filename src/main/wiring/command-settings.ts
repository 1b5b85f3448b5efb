import { join } from 'node:path';
import type { SettingName } from '../../config.ts';
import { readDevFile, readRunningSettings } from '../dev-file.ts';
import { parseSettings, readEnvironment } from '../env.ts';

/**
 * Reads the settings of a command. Settings that the environment lacks are those of the `npm start` in `SENDWRIGHT_HOME`, so that
 * the command has the same keys, providers and addresses as the API. They are not used if `DATABASE_URL` names another database.
 * Ends the process if a required setting is missing or malformed.
 */
export async function readCommandSettings<N extends SettingName = never>(...required: N[]) {
  const environment = readEnvironment();
  const { SENDWRIGHT_HOME, DATABASE_URL } = parseSettings(environment);
  const { database_url: url } = (await readDevFile(join(SENDWRIGHT_HOME, 'dev.json'))) ?? {};
  if (typeof url !== 'string' || (DATABASE_URL ?? url) !== url) return parseSettings(environment, ...required);
  const settings = await readRunningSettings(join(SENDWRIGHT_HOME, 'settings.json'));
  const nonEmpty = Object.entries(environment).filter(([, value]) => value);
  return parseSettings({ ...settings, DATABASE_URL: url, ...Object.fromEntries(nonEmpty) }, ...required);
}
