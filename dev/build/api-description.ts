import { pino } from 'pino';
import { makeApp } from '../../src/http/app.ts';
import type { HttpDeps } from '../../src/http/deps.ts';

/**
 * Returns the API description with the times for which its examples are written. It depends only on the routes: nothing
 * connects to a database, and no handler is called.
 */
export async function describeApi(): Promise<object> {
  const deps = {
    log: pino({ level: 'silent' }),
    secretKey: 'unused',
    trustedProxies: [],
    limits: {},
    senderDomains: {},
    webhookAllowCidrs: [],
    postmarkCallbacks: {},
    chatCallbacks: {},
    metrics: {},
  };
  const app = await makeApp(deps as unknown as HttpDeps);
  await app.ready();
  const description = app.swagger();
  await app.close();
  return description;
}
