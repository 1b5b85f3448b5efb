import { isHttpsOrLocal, type Setting, SETTINGS } from './settings.ts';

/** A setting that is missing or malformed; the message is one line that names it, its meaning and an example. */
export class ConfigError extends Error {}

type Settings = typeof SETTINGS;
export type SettingName = keyof Settings;
/** All settings, parsed; those without a fallback may be undefined. */
export type Config = {
  readonly [N in SettingName]: Settings[N] extends { fallback: string }
    ? ReturnType<Settings[N]['parse']>
    : ReturnType<Settings[N]['parse']> | undefined;
};

/**
 * Reads every setting. An empty value counts as absent.
 * @param required settings that must be set
 * @throws ConfigError for the first one that is missing or malformed
 */
export function readConfig<N extends SettingName = never>(
  env: NodeJS.ProcessEnv,
  ...required: N[]
): Config & { [K in N]: NonNullable<Config[K]> } {
  const entries = Object.entries(SETTINGS).map(([name, setting]: [string, Setting<unknown>]) => {
    const given = env[name] || setting.fallback;
    if (given === undefined) {
      if ((required as string[]).includes(name)) throw new ConfigError(sentence(name, setting, 'is missing'));
      return [name, undefined];
    }
    try {
      return [name, setting.parse(given)];
    } catch {
      throw new ConfigError(sentence(name, setting, 'is malformed'));
    }
  });
  const config = Object.fromEntries(entries) as Config & { [K in N]: NonNullable<Config[K]> };
  // Temporal refuses such a policy, and would only do so when the first message is due.
  if (config.SEND_MAX_INTERVAL < config.SEND_INITIAL_INTERVAL) {
    throw new ConfigError(
      sentence('SEND_MAX_INTERVAL', SETTINGS.SEND_MAX_INTERVAL, 'is shorter than SEND_INITIAL_INTERVAL'),
    );
  }
  // The issuer redirects to this URL with a code.
  if (config.OIDC_ISSUER !== undefined && config.PUBLIC_URL !== undefined && !isHttpsOrLocal(config.PUBLIC_URL)) {
    throw new ConfigError(
      sentence('PUBLIC_URL', SETTINGS.PUBLIC_URL, 'must begin with https because OIDC_ISSUER is set'),
    );
  }
  return config;
}

function sentence(name: string, setting: Setting<unknown>, fault: string): string {
  return `${name} ${fault}: ${setting.meaning}, for example ${name}=${setting.example}`;
}
