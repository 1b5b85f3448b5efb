import type { Logger } from 'pino';
import type { Oidc } from '../../accounts/oidc.ts';
import type { Config } from '../../config.ts';
import { OIDC_CALLBACK } from '../../dashboard/oidc-flow.ts';
import { readSettings } from '../env.ts';

/** @returns null without `OIDC_ISSUER`; the library is then not loaded */
export async function openOidc({ OIDC_ISSUER: issuer, OIDC_NAME: name }: Config, log: Logger): Promise<Oidc | null> {
  if (issuer === undefined) return null;
  const needed = readSettings('OIDC_CLIENT_ID', 'OIDC_CLIENT_SECRET', 'PUBLIC_URL');
  const { makeOidc } = await import('../../accounts/oidc.ts');
  return makeOidc({
    name,
    issuer,
    clientId: needed.OIDC_CLIENT_ID,
    clientSecret: needed.OIDC_CLIENT_SECRET,
    callbackUrl: needed.PUBLIC_URL + OIDC_CALLBACK,
    log,
  });
}
