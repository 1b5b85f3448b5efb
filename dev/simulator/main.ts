import { makeDns } from '../../src/providers/dns.ts';
import { type Simulator, startSimulator } from './simulator.ts';
import { exitWith, makeLog, notifyReady, stopOnSignals } from '../../src/main/process.ts';

/**
 * The process of the simulated providers, for development, tests and benchmarks. Its few settings are not the service's, so
 * they are read here and not in config.ts.
 */
const { env } = process;

function port(name: string): number {
  const value = env[name] || '0';
  if (/^\d+$/.test(value) && Number(value) <= 65_535) return Number(value);
  return exitWith(`${name} is malformed: a port, or 0 for a free one, for example ${name}=3025`);
}

function callback() {
  const { SIMULATOR_CALLBACK_URL: url, POSTMARK_WEBHOOK_USER: user, POSTMARK_WEBHOOK_PASSWORD: password } = env;
  if (!url) return null;
  if (!URL.canParse(url)) return exitWith('SIMULATOR_CALLBACK_URL is malformed: where delivery records are posted');
  if (!user || !password)
    return exitWith('SIMULATOR_CALLBACK_URL needs POSTMARK_WEBHOOK_USER and POSTMARK_WEBHOOK_PASSWORD');
  return { url, user, password };
}

/** Meta has one signed callback URL; Twilio gets one with each message. */
function metaCallback() {
  const { SIMULATOR_META_CALLBACK_URL: url, META_APP_SECRET: appSecret } = env;
  if (!url) return null;
  if (!URL.canParse(url)) return exitWith('SIMULATOR_META_CALLBACK_URL is malformed: where Meta posts its reports');
  if (!appSecret) return exitWith('SIMULATOR_META_CALLBACK_URL needs META_APP_SECRET');
  return { url, appSecret };
}

function twilioInbound() {
  const { SIMULATOR_TWILIO_INBOUND_URL: url, TWILIO_ACCOUNT_SID: sid, TWILIO_AUTH_TOKEN: token } = env;
  if (!url) return null;
  if (!URL.canParse(url)) {
    return exitWith('SIMULATOR_TWILIO_INBOUND_URL is malformed: where Twilio posts inbound messages');
  }
  if (!sid || !token) return exitWith('SIMULATOR_TWILIO_INBOUND_URL needs TWILIO_ACCOUNT_SID and TWILIO_AUTH_TOKEN');
  return { url, account: { sid, token } };
}

const log = makeLog('simulator', env['LOG_LEVEL'] || 'info');
const options = {
  host: env['SIMULATOR_HOST'] || '127.0.0.1',
  port: port('SIMULATOR_PORT'),
  smtpPort: port('SIMULATOR_SMTP_PORT'),
  folder: env['SIMULATOR_FOLDER'] || null,
  serverToken: env['POSTMARK_SERVER_TOKEN'] || null,
  accountToken: env['POSTMARK_ACCOUNT_TOKEN'] || null,
  dns: makeDns((env['DNS_SERVERS'] ?? '').split(',').flatMap((server) => server.trim() || [])),
  deliveryCallback: callback(),
  metaCallback: metaCallback(),
  twilioInbound: twilioInbound(),
  log,
};
let simulator: Simulator | undefined;
stopOnSignals(log, 30_000, async () => simulator?.close());

try {
  simulator = await startSimulator(options);
} catch (error) {
  exitWith(`The simulator cannot start: ${(error as Error).message}`);
}
const { postmarkUrl, chatUrl, smtpUrl, inboxUrl } = simulator;
const urls = { postmarkUrl, chatUrl, smtpUrl, inboxUrl };
log.info(urls, 'simulator listens');
notifyReady(urls);
